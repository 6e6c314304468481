"""Two understood tables as a search over settings of the models that `halfseen fit` fits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from halfseen.arrays import Floats
from halfseen.data.label_column import some_labels
from halfseen.data.preprocessing import read_rows
from halfseen.data.schema import TableSchema
from halfseen.data.schema_inference import InferredTables
from halfseen.data.table_summary import TableSummary
from halfseen.data.values import as_numbers
from halfseen.estimators import HalfSeenClassifier, HalfSeenRegressor
from halfseen.fitting.pipeline import is_resident
from halfseen.fitting.prepared_rows import HELD_OUT
from halfseen.members import NETWORKS
from halfseen.networks.variants import variant_named
from halfseen.settings import FitSettings
from halfseen.tuning.searching import SearchResult, SearchTrial, search
from halfseen.tuning.spaces import Estimator

MOST_ROWS = 20_000
"""Rows of a table that is too large for memory that stand for all in a search."""


def search_tables(
    found: InferredTables,
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
    Tables that :func:`~halfseen.fitting.pipeline.fit_tables` would stream are sampled.
    """
    schema, resident = found.schema, is_resident(found, settings)
    source, labels, weights = _rows(found.source, schema, resident, settings.seed, is_source=True)
    target, _, _ = _rows(found.target, schema, resident, settings.seed, is_source=False)
    ended: list[SearchTrial] = []
    networks = NETWORKS in settings.members_for("table", classes=schema.target_type.networks)
    models = [variant.name for variant in settings.variants("table")]
    for model in models if networks else models[:1]:
        result = search(
            estimator_for(model, found, settings),
            source,
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


def estimator_for(model: str, found: InferredTables, settings: FitSettings) -> Estimator:
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
    if not schema.target_type.networks:
        return HalfSeenRegressor(**shared)
    asks = "networks" in settings.members_for("table")
    return HalfSeenClassifier(
        **shared,
        models=(model,) if asks else None,
        align=settings.align,
        class_weight=settings.class_weight,
        preset=settings.preset,
        divergence=settings.divergence,
        refine=settings.refine and variant_named(model).adapts,
        options=dict(settings.options),
        device=settings.device,
    )


def _rows(
    part: TableSummary, schema: TableSchema, resident: bool, seed: int, *, is_source: bool
) -> tuple[pa.Table, npt.NDArray[Any], Floats | None]:
    """Return a table's rows as the schema reads them, or a random part of a long one.

    Those of the source are labelled; with them come their labels, and weights where there are some.
    """
    random, where = np.random.default_rng(seed), part.table.where
    apart = [schema.label, *([] if schema.weight is None else [schema.weight])]
    names = [*schema.cells(complete=is_source), *(apart if is_source else ())]
    tables, labels, weights = [], [], []
    for whole in part.table.batches(names):
        chosen = random.random(whole.num_rows) < MOST_ROWS / part.rows
        batch = whole if resident else whole.filter(pa.array(chosen))
        if is_source:
            positions = some_labels(schema, batch.column(schema.label), schema.label, where)
            known = schema.target_type.known(positions)
            batch = batch.filter(pa.array(known))
            labels.append(positions[known])
        if is_source and schema.weight is not None:
            written = schema.written.get(schema.weight)
            given = batch.column(schema.weight)
            weights.append(as_numbers(given, schema.weight, where=where, written=written))
        read = read_rows(schema, batch, complete=is_source, where=where)
        columns = {
            name: pa.array(values, from_pandas=True) if isinstance(values, np.ndarray) else values
            for name, values in read.columns.items()
        }
        tables.append(pa.table(columns))
    found = np.concatenate(labels) if labels else np.empty(0)
    if schema.classes and len(found):
        found = np.array(schema.classes)[found]
    return pa.concat_tables(tables), found, np.concatenate(weights) if weights else None
