"""What the answers lose where a column that a model observes is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from halfseen.arrays import Matrix
from halfseen.data.dates import date_names
from halfseen.data.gap_filling import fill_gaps
from halfseen.data.preprocessing import ReadRows, inputs_of
from halfseen.data.schema import NumberColumn
from halfseen.data.values import Unread

if TYPE_CHECKING:
    from halfseen.model.model import Model

MOST_ROWS, MOST_ASKED = 100, 5_000
"""Rows that are asked about once more for each column, and for all of them together."""


def gap_costs(model: Model, target: Matrix) -> dict[str, float]:
    """Return what a row costs more on average without each column, as far as the model is right.

    Of classes that is KL(p || p without the column), in nats of cross-entropy; of amounts the mean
    squared difference. No label is needed for it.
    """
    schema, kind, gaps = model.schema, model.target_type, model.tables.gaps
    cells, made = schema.cells(), date_names(schema.dates)
    some = np.random.default_rng(0).permutation(len(target))
    rows = target[some[: max(20, min(MOST_ROWS, MOST_ASKED // len(cells)))]]

    def without(name: str) -> Matrix:
        gone = [c for c in schema.observed if made.get(c.name, c.name) == name]
        nothing = ReadRows(
            {
                c.name: np.full(len(rows), np.nan)
                if isinstance(c, NumberColumn)
                else pa.nulls(len(rows), pa.string())
                for c in gone
            },
            len(rows),
            1,
            Unread(),
        )
        inputs, start = rows.copy(), 0
        empty = inputs_of(schema, nothing)
        for column in schema.columns:
            own = slice(start, start := start + len(column.inputs))
            if column in gone:
                inputs[:, own] = empty[:, own]
        return inputs if gaps is None else fill_gaps(gaps, schema, nothing, inputs)

    asked = np.concatenate([rows, *map(without, cells)])
    shown = kind.to_predictions(model.raw_prediction(asked)).reshape(len(cells) + 1, len(rows), -1)
    costs = [float(kind.moved(gone, shown[0]).mean()) for gone in shown[1:]]
    return {name: max(0.0, cost) for name, cost in zip(cells, costs, strict=True)}
