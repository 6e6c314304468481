"""Two understood tables as a search over settings of the model that `halfseen fit` fits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from halfseen.classifier import AdaptationImputationClassifier
from halfseen.front.inference import Understanding
from halfseen.front.tables import Table
from halfseen.model.fitting import is_resident
from halfseen.model.rows import HELD_OUT
from halfseen.model.settings import FitSettings
from halfseen.networks.methods import method_named
from halfseen.selection import SearchResult, SearchTrial, search

__all__ = ["MOST_ROWS", "estimator_for", "search_tables"]

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
    prune: bool = True,
    on_trial: Callable[[SearchTrial], None] = lambda trial: None,
) -> SearchResult:
    """Search the settings of the models asked for, over the paper's grids.

    Tables that :func:`~halfseen.model.fitting.fit_tables` would stream are sampled.
    """
    schema, resident = found.schema, is_resident(found, settings)
    names = [column.name for column in schema.columns]
    whole = _rows(
        found.source.table, [*names, schema.label], found.source.rows, resident, settings.seed
    )
    observed = [column.name for column in schema.observed]
    target = _rows(found.target.table, observed, found.target.rows, resident, settings.seed)
    return search(
        {name: estimator_for(name, found, settings) for name in settings.models},
        whole.select(names),
        np.array(whole.column(schema.label).to_pylist()),
        target,
        score=score,
        trials=trials,
        held_out=HELD_OUT,
        storage=storage,
        n_jobs=n_jobs,
        prune=prune,
        seed=settings.seed,
        back=_way_back(settings),
        on_trial=on_trial,
    )


def estimator_for(
    model: str, found: Understanding, settings: FitSettings
) -> AdaptationImputationClassifier:
    """Return the estimator that fits what `halfseen fit` would fit to these tables."""
    schema = found.schema
    return AdaptationImputationClassifier(
        missing=[column.name for column in schema.missing] or None,
        keep=[column.name for column in schema.observed],
        categorical=[column.name for column in schema.columns if column.kind == "categorical"],
        model=model,
        members=settings.members,
        preset=settings.preset,
        divergence=settings.divergence,
        refine=settings.refine and method_named(model).adapts,
        options=dict(settings.options) or None,
        device=settings.device,
        random_state=settings.seed,
    )


def _way_back(settings: FitSettings) -> AdaptationImputationClassifier:
    """Return the model that learns back from the target, on the columns that both have."""
    return AdaptationImputationClassifier(
        model="Adaptation-Full",
        members=settings.members,
        preset=settings.preset,
        divergence=settings.divergence,
        options=dict(settings.options) or None,
        random_state=settings.seed,
    )


def _rows(table: Table, names: list[str], rows: int, resident: bool, seed: int) -> pa.Table:
    """Return a table's rows as they are, or a random part of a long one."""
    random = np.random.default_rng(seed)

    def some(batch: pa.RecordBatch) -> pa.RecordBatch:
        chosen: npt.NDArray[np.bool_] = random.random(batch.num_rows) < MOST_ROWS / rows
        return batch if resident else batch.filter(pa.array(chosen))

    return pa.Table.from_batches([some(batch) for batch in table.batches(names)])
