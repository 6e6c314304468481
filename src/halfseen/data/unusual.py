"""What the source never had, cell by cell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfseen.arrays import Integers
from halfseen.data.schema import CategoryColumn, NumberColumn, Shape


def outside(column: NumberColumn | CategoryColumn, values: Any, ranges: float = 0.0) -> Integers:
    """Return the places of what the source never had, or of numbers so many ranges beyond it."""
    shape = column.shape
    if shape is None:
        return np.empty(0, dtype=np.int64)
    if isinstance(column, NumberColumn):
        if not shape.quantiles:
            return np.empty(0, dtype=np.int64)
        low, high = shape.quantiles[0], shape.quantiles[-1]
        margin = ranges * (high - low)
        return np.flatnonzero((values < low - margin) | (values > high + margin))
    if not lists_all(shape):
        return np.empty(0, dtype=np.int64)
    known = pc.is_in(values, value_set=pa.array(list(shape.shares), pa.string()))
    unseen = pc.and_not(pc.is_valid(values), known)
    return np.flatnonzero(unseen.to_numpy(zero_copy_only=False))


def lists_all(shape: Shape) -> bool:
    """Whether all categories are listed; where they are not, any may have been among the rest."""
    return 0 < shape.distinct <= len(shape.shares)
