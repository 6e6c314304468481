"""How numbers are scaled: column by column, or all by one scale, decided on the labelled source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from halfseen.data.row_stream import labelled_rows
from halfseen.data.schema import NumberColumn, TableSchema
from halfseen.splitting import rarest_class
from halfseen.targets import TargetType

Matrix = npt.NDArray[Any]
Labels = npt.NDArray[Any]

FEWEST_COLUMNS = 20
"""Columns of measurements from which a common scale is considered at all."""
MOST_ROWS = 100_000
"""A larger source has rows enough to learn each column's weight whatever its scale."""
COMPARED_ROWS = 2_000
PENALTIES = (1e-3, 1e-2, 0.1)
FOLDS = 5


def shared_scale(
    standardized: Matrix, labels: Labels, spreads: Matrix, kind: TargetType
) -> float | None:
    """Return the root mean square of the spreads where sharing it predicts better, else None.

    A ridge-penalised linear model is fitted with both scalings, each with its best of three
    penalties; the common scale must win by more than the standard error of the difference
    between its five folds. `spreads` are what the standardized columns were divided by.

    Examples
    --------
    One wide column carries the label, 99 narrow ones are noise:

    >>> from halfseen.targets import ClassTarget
    >>> rng = np.random.default_rng(0)
    >>> rows, spreads = rng.normal(size=(200, 100)), np.r_[10.0, np.ones(99)]
    >>> two = ClassTarget.of(2)
    >>> shared_scale(rows, (rows[:, 0] > 0).astype(int), spreads, two) is not None
    True
    >>> shared_scale(rows, (rows[:, 7] > 0).astype(int), spreads, two) is None
    True
    """
    some = np.random.default_rng(0).permutation(len(labels))[:COMPARED_ROWS]
    rows, labels = standardized[some].astype(np.float64), labels[some]
    if rarest_class(kind.strata(labels)) < FOLDS:
        return None
    common = float(np.sqrt(np.square(spreads).mean()))
    own, shared = (
        max(kind.linear_scores(x, labels, PENALTIES), key=np.mean)
        for x in (rows, rows * (spreads / common))
    )
    gain = shared - own
    error = float(gain.std(ddof=1)) / np.sqrt(FOLDS)
    return common if float(gain.mean()) > error else None


def select_scales(
    schema: TableSchema, sample: Sequence[Any], where: str, rows: int
) -> tuple[TableSchema, str | None]:
    """Return the schema with the scale that suits its columns of measurements, and a note.

    Principal components and embeddings come on one common scale, and their spread says how much
    they matter: scaling each to spread one drowns the first few in noise. Ages and blood
    pressures do not. The labels of some source rows tell the cases apart (:func:`shared_scale`).
    """
    columns = [c for c in schema.columns if _is_measurement(c)]
    if len(columns) < FEWEST_COLUMNS or rows > MOST_ROWS:
        return schema, None
    names = [column.name for column in columns]
    positions = [schema.inputs.index(name) for name in names]
    chunks = [labelled_rows(schema, batch, where=where) for batch in sample]
    inputs, labels = (np.concatenate(part) for part in zip(*chunks, strict=True))
    spreads = np.array([column.scale for column in columns])
    common = shared_scale(inputs[:, positions], labels, spreads, schema.target_type)
    if common is None:
        return schema, None
    scaled = tuple(
        c.model_copy(update={"scale": common}) if _is_measurement(c) else c for c in schema.columns
    )
    note = (
        f"{len(names)} columns of measurements share one scale, because the source's labels are "
        "predicted better so: their spreads mean something, as those of principal components do."
    )
    return schema.model_copy(update={"columns": scaled}), note


def _is_measurement(column: Any) -> TypeGuard[NumberColumn]:
    return isinstance(column, NumberColumn) and column.kind == "numeric"
