"""Two understood tables as a search over settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from halfseen.estimators import AdaptationImputationClassifier, DomainAdaptationClassifier
from halfseen.front.inference import Understanding
from halfseen.front.schema import TableSchema
from halfseen.front.streaming import RowStream
from halfseen.model.domains import HELD_OUT
from halfseen.model.fitting import Settings, is_resident
from halfseen.networks.methods import Method, method_named
from halfseen.selection import SearchResult, SearchTrial, search

__all__ = ["MOST_ROWS", "estimator_for", "search_tables"]

MOST_ROWS = 20_000
"""Rows of a table that is too large for memory that stand for all in a search."""


def search_tables(
    found: Understanding,
    settings: Settings,
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
    schema = found.schema
    source = RowStream(found.source.table, schema, is_source=True, seed=settings.seed)
    target = RowStream(found.target.table, schema, is_source=False, seed=settings.seed)
    if is_resident(found, settings):
        (X, y), (X_target, _) = source.all(), target.all()
    else:
        X, y = source.some(MOST_ROWS / found.source.rows)
        X_target, _ = target.some(MOST_ROWS / found.target.rows)
    methods = [method_named(name) for name in settings.models]
    balanced = settings.options_for(methods[0], resident=True).training.balanced
    shares = np.bincount(y)[np.unique(y)] / len(y)
    return search(
        {method.name: estimator_for(method, schema, settings) for method in methods},
        X,
        y,
        X_target,
        score=score,
        trials=trials,
        held_out=HELD_OUT,
        storage=storage,
        n_jobs=n_jobs,
        prune=prune,
        seed=settings.seed,
        # What `fit` does after balanced training, so that a score sees what a user would get.
        prior=tuple(shares.tolist()) if balanced else None,
        back=_way_back(settings),
        on_trial=on_trial,
    )


def estimator_for(method: Method, schema: TableSchema, settings: Settings) -> Any:
    """Return the estimator of a model for inputs that the schema has prepared."""
    common = _common(settings) | {
        "missing": schema.blocks,
        "refine": settings.refine and method.adapts,
    }
    if method.imputes:
        return AdaptationImputationClassifier(**common)
    return DomainAdaptationClassifier(view=method.target_view, adapt=method.adapts, **common)


def _way_back(settings: Settings) -> DomainAdaptationClassifier:
    """Return the model that learns back from the target, on the columns that both have."""
    return DomainAdaptationClassifier(view="full", **_common(settings))


def _common(settings: Settings) -> dict[str, Any]:
    return {
        "preset": settings.preset,
        "divergence": settings.divergence,
        "options": dict(settings.options),
        "random_state": settings.seed,
    }
