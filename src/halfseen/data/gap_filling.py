"""Gaps of the rows that a model is asked about, filled by what their other inputs let expect.

A column that the model observes and a table lacks is a gap in each of its rows: how a row is filled
depends on the row and the model alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from halfseen.arrays import Floats, Matrix, Tensor
from halfseen.data.preprocessing import ReadRows
from halfseen.data.schema import CategoryColumn, NumberColumn, TableSchema
from halfseen.errors import InputError

RIDGE = 0.01
"""What is added to the diagonal of the correlations."""
MOST_INPUTS, MOST_ROWS = 256, 20_000
"""Of wider rows gaps keep their medians; rows of each domain that the moments are taken from."""
STEPS = 8
"""Of conjugate gradients: exact for as many gaps, and near enough for more."""
SMALLEST = 1e-12


@dataclass(frozen=True, eq=False)
class GapFilling:
    r"""The mean of gaps M given the other inputs O, as if all were normal.

    With :math:`v = (x - \text{mean}) / \text{scale}`, where the scale is what the other inputs
    leave of a deviation, `links` is the precision of v, of diagonal one, and
    :math:`\text{links}_{MM} v_M = -\text{links}_{MO} v_O`. Means are those of the target's rows,
    correlations those within both domains.
    """

    mean: Floats
    scale: Floats
    links: Floats

    @classmethod
    def fitted(cls, source: Matrix, target: Matrix) -> Self:
        """Take the moments of the observed inputs of both domains."""
        random = np.random.default_rng(0)
        here, there = (
            rows[random.permutation(len(rows))[:MOST_ROWS]].astype(np.float64)
            for rows in (source, target)
        )
        centred = np.concatenate([here - here.mean(0), there - there.mean(0)])
        spread = centred.std(0)
        spread[spread < SMALLEST] = 1.0
        correlation = (centred / spread).T @ (centred / spread) / len(centred)
        np.fill_diagonal(correlation, 1.0 + RIDGE)
        precision = np.linalg.inv(correlation)
        own = 1.0 / np.sqrt(np.diag(precision))
        return cls(there.mean(0), spread * own, precision * np.outer(own, own))

    def filled(self, inputs: Floats, gaps: npt.NDArray[np.bool_]) -> Floats:
        """Return inputs with the mean of each gap given the rest of its row."""
        found = np.where(gaps, 0.0, (inputs - self.mean) / self.scale)
        left = np.where(gaps, -(found @ self.links), 0.0)
        step, size = left, np.square(left).sum(1, keepdims=True)
        for _ in range(STEPS):
            along = np.where(gaps, step @ self.links, 0.0)
            length = size / np.maximum((step * along).sum(1, keepdims=True), SMALLEST)
            found, left = found + length * step, left - length * along
            before, size = size, np.square(left).sum(1, keepdims=True)
            step = left + size / np.maximum(before, SMALLEST) * step
        return np.where(gaps, self.mean + self.scale * found, inputs)

    def tensors(self) -> dict[str, Tensor]:
        return asdict(self)

    @classmethod
    def restored(cls, tensors: Mapping[str, Tensor], inputs: int) -> Self:
        """Rebuild it; refuse what does not fit together."""
        shapes = {name: tensor.shape for name, tensor in tensors.items()}
        if shapes != {"mean": (inputs,), "scale": (inputs,), "links": (inputs, inputs)}:
            raise InputError(f"what fills gaps has the shapes {shapes} for {inputs} inputs.")
        return cls(**tensors)


def fills(column: NumberColumn | CategoryColumn) -> bool:
    """Say whether gaps of a column are filled.

    One that had gaps in the source keeps its median and its mark, as members learned them.
    """
    return column.role == "observed" and not column.indicator


def fill_gaps(filling: GapFilling, schema: TableSchema, read: ReadRows, inputs: Matrix) -> Matrix:
    """Return prepared rows with their gaps filled; of categories the likeliest is taken."""
    gaps, observed = np.zeros(inputs.shape, dtype=bool), list(schema.blocks.observed)
    groups, start = [], 0
    for column in schema.columns:
        own, start = slice(start, start + len(column.inputs)), start + len(column.inputs)
        values = read.columns.get(column.name)
        if values is None or not fills(column):
            continue
        is_category = isinstance(column, CategoryColumn)
        found = values.is_null().to_numpy(zero_copy_only=False) if is_category else np.isnan(values)
        gaps[:, own] = found[:, None]
        groups += [(own, found)] if is_category and found.any() else []
    rows = np.flatnonzero(gaps.any(1))
    if not len(rows):
        return inputs
    some = inputs[rows][:, observed].astype(np.float64)
    filled = inputs.copy()
    found = filling.filled(some, gaps[rows][:, observed])
    filled[rows[:, None], observed] = np.clip(found, -schema.clip, schema.clip)
    for own, are in groups:
        likeliest = filled[are, own].argmax(1)
        filled[are, own] = np.eye(own.stop - own.start, dtype=np.float32)[likeliest]
    return filled
