"""What a generator imputes, against what was there: on source rows whose missing block is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import RidgeCV

from halfseen.front.schema import CategoryColumn, NumberColumn, TableSchema
from halfseen.members import Sample
from halfseen.networks.predictor import Predictor
from halfseen.report.facts import Histogram, ImputationFacts, ImputedColumn
from halfseen.report.facts.columns import MOST_BARS, OTHERS, number_histogram

__all__ = ["imputation_facts"]

DRAWS = 20
"""Imputations of each row, where the generator takes noise."""
MOST_COLUMNS = 50

Floats = npt.NDArray[np.float64]


def imputation_facts(
    model: Predictor,
    schema: TableSchema,
    training: Sample,
    measured: Sample,
) -> ImputationFacts:
    """Compare ẑ2 with z2 on rows that the networks were not trained on.

    Latents have no unit, so the missing columns are read off them by a ridge regression that is
    fitted on true latents of training rows: how much of a column it finds in z2 is what g2 kept,
    and how much of it in ẑ2 is what r recovered.
    """
    true, imputed = _latents(model, measured)
    known, _ = _latents(model, training)
    missing = list(schema.blocks.missing)
    reader = RidgeCV(alphas=np.logspace(-3, 3, 7)).fit(known, training.inputs[:, missing])
    kept, recovered = (_read(reader, z, len(missing)) for z in (true, imputed))
    noise = None
    if model.networks.noise_size:
        draws = np.stack([_latents(model, measured, draw)[1] for draw in range(DRAWS)])
        around = (draws - draws.mean(0)).reshape(-1, draws.shape[-1])
        noise = _spread(around) / max(_spread(true), 1e-12)
    return ImputationFacts(
        rows=len(measured),
        explained=_explained(true, imputed),
        spread=_spread(imputed) / max(_spread(true), 1e-12),
        noise=noise,
        columns=_columns(schema, measured.inputs[:, missing].astype(np.float64), kept, recovered),
    )


def _columns(
    schema: TableSchema, truth: Floats, kept: Floats, recovered: Floats
) -> tuple[ImputedColumn, ...]:
    found: list[ImputedColumn] = []
    start = 0
    for column in schema.missing:
        part = slice(start, start + len(column.inputs))
        start = part.stop
        if len(found) == MOST_COLUMNS or not truth[:, part].std(0).any():
            continue
        found.append(
            ImputedColumn(
                name=column.name,
                kept=_explained(truth[:, part], kept[:, part]),
                recovered=_explained(truth[:, part], recovered[:, part]),
                spread=_spread(recovered[:, part]) / _spread(truth[:, part]),
                histogram=_histogram(column, truth[:, part], recovered[:, part]),
            )
        )
    return tuple(found)


def _histogram(column: NumberColumn | CategoryColumn, truth: Floats, read: Floats) -> Histogram:
    """Draw numbers in their own unit, and the most likely category of each row."""
    if isinstance(column, NumberColumn):
        scaled = (values[:, 0] * column.scale + column.mean for values in (truth, read))
        raw = [np.sign(v) * np.expm1(np.abs(v)) if column.log else v for v in scaled]
        return number_histogram(*raw, log=column.log)
    names = [*column.categories, *([OTHERS] if column.other else [])]
    counts = [
        np.bincount(values[:, : len(names)].argmax(1), minlength=len(names)) / len(values)
        for values in (truth, read)
    ]
    shown = sorted(np.argsort(-counts[0], kind="stable")[:MOST_BARS])
    return Histogram(
        labels=tuple(names[i] for i in shown),
        source=tuple(float(counts[0][i]) for i in shown),
        target=tuple(float(counts[1][i]) for i in shown),
    )


def _latents(model: Predictor, rows: Sample, draw: int = 0) -> tuple[Floats, Floats]:
    """Return z2 and ẑ2 of source rows."""
    hidden = model.networks.blocks.hide(rows.inputs)
    with model.source_statistics(hidden):
        true = model.complete_latents(rows.inputs)
        imputed = model.latents(hidden, draw=draw)
    width = true.shape[1] - model.networks.missing_size
    return true[:, width:].astype(np.float64), imputed[:, width:].astype(np.float64)


def _read(reader: Any, latents: Floats, width: int) -> Floats:
    return np.asarray(reader.predict(latents), dtype=np.float64).reshape(len(latents), width)


def _explained(truth: Floats, found: Floats) -> float:
    total = float(np.square(truth - truth.mean(0)).sum())
    return 1.0 - float(np.square(truth - found).sum()) / total if total else 0.0


def _spread(values: Floats) -> float:
    """Return the root of the summed variances."""
    return float(np.sqrt(np.square(values - values.mean(0)).sum() / max(len(values), 1)))
