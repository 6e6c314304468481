"""Rows to compare with, and how far a row is from the source."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from halfseen.arrays import Floats, Matrix
from halfseen.errors import InputError
from halfseen.evidence.neighbours import neighbours_of
from halfseen.front.preprocessing import as_categories, as_numbers, transform
from halfseen.front.schema import NumberColumn, Shape, TableSchema

TYPICAL = 19
"""Typical rows: one for each twentieth between the ends."""
MOST_COMPARED = 5_000
"""Source rows at most that distances are measured to."""
SMALLEST = 1e-9


def typical_rows(schema: TableSchema, *, seed: int = 0) -> Matrix:
    """Return made-up rows in which every column is spread as it is in the source.

    Each column holds the source's quantiles (5 %, 10 %, ... 95 %), or its categories in their
    shares, and gaps as often as the source has them, in an order of its own: the rows are
    nobody's, and columns are independent of each other.
    """
    random = np.random.default_rng(seed)
    columns = {}
    for column in schema.observed:
        if column.shape is None:
            raise InputError(
                f"The model does not hold how column {column.name!r} is distributed: fit again, "
                "or give source rows to compare with."
            )
        is_number = isinstance(column, NumberColumn)
        values = _typical_values(column.shape, is_number=is_number)
        order = random.permutation(TYPICAL)
        kind = pa.float64() if is_number else pa.string()
        columns[column.name] = pa.array([values[place] for place in order], kind)
    return transform(schema, pa.table(columns), where="the typical rows")


def _typical_values(shape: Shape, *, is_number: bool) -> list[Any]:
    gaps = min(TYPICAL, round(TYPICAL * shape.gaps))
    known: list[Any] = list(shape.quantiles[1:-1]) if is_number else _apportioned(shape)
    if not known:
        return [None] * TYPICAL
    steps = np.linspace(0, len(known) - 1, TYPICAL - gaps)
    return [known[round(step)] for step in steps] + [None] * gaps


def _apportioned(shape: Shape) -> list[str]:
    """Return categories as often as their shares say, the most frequent first."""
    places = (np.arange(TYPICAL) + 0.5) / TYPICAL
    shares = np.cumsum(list(shape.shares.values())) / max(sum(shape.shares.values()), SMALLEST)
    names = list(shape.shares)
    return [names[min(int(np.searchsorted(shares, p)), len(names) - 1)] for p in places]


def outside_columns(schema: TableSchema, table: Any) -> list[tuple[str, ...]]:
    """Name for each row the columns whose value the source never had, or never as extreme."""
    found: list[list[str]] = [[] for _ in range(table.num_rows)]
    for column in schema.observed:
        shape, values = column.shape, table.column(column.name)
        if shape is None:
            continue
        if isinstance(column, NumberColumn):
            if not shape.quantiles:
                continue
            numbers = as_numbers(values, column.name, where="the rows", strays=column.strays)
            outside = (numbers < shape.quantiles[0]) | (numbers > shape.quantiles[-1])
        else:
            # Where not all categories are listed, any other may have been among the rest.
            if not shape.distinct or shape.distinct > len(shape.shares):
                continue
            texts = as_categories(values, column.name, where="the rows").to_pylist()
            outside = np.array([t is not None and t not in shape.shares for t in texts])
        for place in np.flatnonzero(outside):
            found[place].append(column.name)
    return [tuple(names) for names in found]


def distances(rows: Matrix, source: Matrix) -> Floats:
    """Return how many times farther rows are from source rows than those are from each other.

    The distance to the fifth neighbour among source rows, over its median for source rows.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> source = random.normal(size=(500, 2)).astype(np.float32)
    >>> near, far = distances(np.array([[0, 0], [6, 6]], np.float32), source)
    >>> bool(near < 1.5), bool(far > 10)
    (True, True)
    """
    some = source[np.random.default_rng(0).permutation(len(source))[:MOST_COMPARED]]
    within, across = neighbours_of(some, rows)
    found: Floats = across.distance / max(float(np.median(within.distance)), SMALLEST)
    return found
