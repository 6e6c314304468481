"""Two understood tables as a search over settings of the models that `halfseen fit` fits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from halfseen.estimators import AdaptationImputationClassifier, AdaptationImputationRegressor
from halfseen.front.inference import Understanding
from halfseen.front.labels import row_weights
from halfseen.front.preprocessing import as_numbers
from halfseen.front.schema import NumberColumn, TableSchema
from halfseen.front.summary import TableSummary
from halfseen.front.tables import ArrowTable
from halfseen.members import NETWORKS
from halfseen.model.fitting import is_resident
from halfseen.model.rows import HELD_OUT
from halfseen.model.settings import FitSettings
from halfseen.networks.methods import method_named
from halfseen.tuning.searching import SearchResult, SearchTrial, search
from halfseen.tuning.spaces import Estimator

MOST_ROWS = 20_000
"""Rows of a table that is too large for memory that stand for all in a search."""


def search_tables(
    found: Understanding,
    settings: FitSettings,
    *,
    score: str,
    trials: int,
    storage: str | Path,
    n_jobs: int = 1,
    on_trial: Callable[[SearchTrial], None] = lambda trial: None,
) -> SearchResult:
    """Search the settings of the models asked for, one after another.

    Those of networks over the paper's grids; without networks over members and effort.
    Tables that :func:`~halfseen.model.fitting.fit_tables` would stream are sampled.
    """
    schema, resident = found.schema, is_resident(found, settings)
    names = [column.name for column in schema.columns]
    apart = [schema.label, *([] if schema.weight is None else [schema.weight])]
    source, target = (
        _rows(part, columns, schema, resident, settings.seed)
        for part, columns in (
            (found.source, [*names, *apart]),
            (found.target, [column.name for column in schema.observed]),
        )
    )
    labels = np.array(source.column(schema.label).to_pylist())
    weights = (
        None
        if schema.weight is None
        else row_weights(ArrowTable(source, found.source.table.where), schema.weight)
    )
    ended: list[SearchTrial] = []
    networks = NETWORKS in settings.members_for("table", schema.label_kind)
    for model in settings.models if networks else settings.models[:1]:
        result = search(
            estimator_for(model, found, settings),
            source.select(names),
            labels,
            target,
            sample_weight=weights,
            score=score,
            trials=trials,
            held_out=HELD_OUT,
            storage=storage,
            n_jobs=n_jobs,
            seed=settings.seed,
            on_trial=on_trial,
        )
        ended += result.trials
    return SearchResult(score, tuple(ended))


def estimator_for(model: str, found: Understanding, settings: FitSettings) -> Estimator:
    """Return the estimator that fits what `halfseen fit` would fit to these tables."""
    schema = found.schema
    shared: dict[str, Any] = {
        "missing": [column.name for column in schema.missing] or None,
        "keep": [column.name for column in schema.observed],
        "categorical": [column.name for column in schema.columns if column.kind == "categorical"],
        "members": settings.members,
        "effort": settings.effort,
        "random_state": settings.seed,
        "seeds": settings.seeds,
    }
    if not schema.label_kind.networks:
        return AdaptationImputationRegressor(**shared)
    return AdaptationImputationClassifier(
        **shared,
        model=model,
        align=settings.align,
        class_weight=settings.class_weight,
        preset=settings.preset,
        divergence=settings.divergence,
        refine=settings.refine and method_named(model).adapts,
        options=dict(settings.options) or None,
        device=settings.device,
    )


def _rows(
    part: TableSummary, names: list[str], schema: TableSchema, resident: bool, seed: int
) -> pa.Table:
    """Return a table's rows, or a random part of a long one; texts among numbers are gaps."""
    random = np.random.default_rng(seed)

    def some(batch: pa.RecordBatch) -> pa.RecordBatch:
        chosen: npt.NDArray[np.bool_] = random.random(batch.num_rows) < MOST_ROWS / part.rows
        return batch if resident else batch.filter(pa.array(chosen))

    rows = pa.Table.from_batches([some(batch) for batch in part.table.batches(names)])
    for column in schema.columns:
        if isinstance(column, NumberColumn) and column.strays and column.name in names:
            texts = rows.column(column.name)
            numbers = as_numbers(texts, column.name, where=part.table.where, strays=True)
            place = names.index(column.name)
            rows = rows.set_column(place, column.name, pa.array(numbers, from_pandas=True))
    return rows
