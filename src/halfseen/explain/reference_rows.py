"""Rows beside the source: typical ones, how far each is, what its missing columns would hold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from halfseen.arrays import Floats, Matrix
from halfseen.data.preprocessing import ReadRows, inputs_of, outside
from halfseen.data.schema import CategoryColumn, NumberColumn, Shape, TableSchema
from halfseen.data.values import Unread
from halfseen.errors import InputError
from halfseen.evidence.neighbours import neighbours_of

TYPICAL = 19
"""Typical rows: one for each twentieth between the ends."""
MOST_COMPARED = 5_000
"""Source rows at most that distances are measured to."""
SMALLEST = 1e-9
PENALTIES = (1e-1, 1.0, 1e1, 1e2, 1e3, 1e4)
TELLS = 0.02
"""Share of a column's variance from which it can be said to be told."""


def typical_rows(schema: TableSchema, *, seed: int = 0) -> Matrix:
    """Return made-up rows in which every column is spread as it is in the source.

    Each column holds the source's quantiles (5 %, 10 %, ... 95 %), or its categories in their
    shares, and gaps as often as the source has them, in an order of its own: the rows are
    nobody's, and columns are independent of each other.
    """
    random = np.random.default_rng(seed)
    columns: dict[str, Any] = {}
    for column in schema.observed:
        if column.shape is None:
            raise InputError(
                f"The model does not hold how column {column.name!r} is distributed: fit again, "
                "or give source rows to compare with."
            )
        is_number = isinstance(column, NumberColumn)
        values = _typical_values(column.shape, is_number=is_number)
        order = random.permutation(TYPICAL)
        ordered = [values[place] for place in order]
        columns[column.name] = (
            np.array(ordered, dtype=np.float64) if is_number else pa.array(ordered, pa.string())
        )
    return inputs_of(schema, ReadRows(columns, TYPICAL, 1, Unread()))


def _typical_values(shape: Shape, *, is_number: bool) -> list[Any]:
    """Return a column's quantiles, or its categories as often as their shares say, and gaps."""
    gaps = min(TYPICAL, round(TYPICAL * shape.gaps))
    known: list[Any] = list(shape.quantiles[1:-1])
    if not is_number:
        shares = np.cumsum(list(shape.shares.values())) / max(sum(shape.shares.values()), SMALLEST)
        places = np.searchsorted(shares, (np.arange(TYPICAL) + 0.5) / TYPICAL)
        names = list(shape.shares)
        known = [names[min(int(place), len(names) - 1)] for place in places]
    if not known:
        return [None] * TYPICAL
    steps = np.linspace(0, len(known) - 1, TYPICAL - gaps)
    return [known[round(step)] for step in steps] + [None] * gaps


def outside_columns(schema: TableSchema, read: ReadRows) -> list[tuple[str, ...]]:
    """Name for each row the columns whose value the source never had, or never as extreme."""
    found: list[list[str]] = [[] for _ in range(read.rows)]
    for column in schema.observed:
        for place in outside(column, read.columns[column.name]):
            found[place].append(column.name)
    return [tuple(names) for names in found]


def distances(rows: Matrix, source: Matrix) -> Floats:
    """Return how many times farther rows are from source rows than those are from each other.

    The distance to the fifth neighbour among source rows, over its median for source rows.
    """
    some = source[np.random.default_rng(0).permutation(len(source))[:MOST_COMPARED]]
    within, across = neighbours_of(some, rows)
    found: Floats = across.distance / max(float(np.median(within.distance)), SMALLEST)
    return found


@dataclass(frozen=True, eq=False)
class ExpectedColumn:
    """A missing column as it would be expected in some rows."""

    name: str
    explained: float
    """Share of its variance that is told, on source rows that had no part in it."""
    values: tuple[Any, ...]
    """A number, or the most probable category, for each row; None where nothing tells."""


def expected_columns(
    schema: TableSchema, seen: Floats, source: Matrix, asked: Floats
) -> list[ExpectedColumn]:
    """Regress the missing columns of source rows on what is known of them, and predict others.

    Ridge regression on one half of the source rows says how much is told of the other, then all
    of them predict. `seen` and `asked` are what is known of source rows and of those to say
    something about: imputed latents or observed inputs.
    """
    from sklearn.linear_model import RidgeCV  # which takes its time to import, and few fits need

    half = np.random.default_rng(0).permutation(len(source)) % 2 == 0
    found, start = [], 0
    for column in schema.columns:
        stop = start + len(column.inputs)
        if column.role == "missing":
            width = 1 if isinstance(column, NumberColumn) else stop - start - column.indicator
            truth = source[:, start : start + width].astype(np.float64)
            guess = RidgeCV(PENALTIES).fit(seen[half], truth[half]).predict(seen[~half])
            rest = truth[~half]
            total = float(np.square(rest - rest.mean(0)).sum())
            error = float(np.square(rest - guess.reshape(-1, width)).sum())
            explained = 1.0 - error / total if total > 0 else 0.0
            values: tuple[Any, ...] = (None,) * len(asked)
            if explained >= TELLS:
                all_rows = RidgeCV(PENALTIES).fit(seen, truth)
                guess = all_rows.predict(asked).reshape(-1, width)
                values = _values(column, np.clip(guess, truth.min(0), truth.max(0)))
            found.append(ExpectedColumn(column.name, explained, values))
        start = stop
    return found


def _values(column: NumberColumn | CategoryColumn, guess: Floats) -> tuple[Any, ...]:
    """Return scaled inputs as a person would write them."""
    if isinstance(column, CategoryColumn):
        names = [*column.categories, *(["another"] if column.other else [])]
        return tuple(names[k] for k in guess.argmax(1))
    numbers = guess[:, 0] * column.scale + column.mean
    if column.log:
        return tuple(float(f"{np.sign(n) * np.expm1(abs(n)):.3g}") for n in numbers)
    decimals = 2 - math.floor(math.log10(column.scale))  # what is finer means nothing
    return tuple(round(float(number), decimals) + 0.0 for number in numbers)
