"""What the missing columns would have held, in their own units."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeCV

from halfseen.arrays import Floats, Matrix
from halfseen.front.schema import CategoryColumn, NumberColumn, TableSchema

PENALTIES = (1e-1, 1.0, 1e1, 1e2, 1e3, 1e4)
TELLS = 0.02
"""Share of a column's variance from which it can be said to be told."""


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
    half = np.random.default_rng(0).permutation(len(source)) % 2 == 0
    found, start = [], 0
    for column in schema.columns:
        stop = start + len(column.inputs)
        if column.role == "missing":
            width = 1 if isinstance(column, NumberColumn) else stop - start - column.indicator
            truth = source[:, start : start + width].astype(np.float64)
            guess = RidgeCV(PENALTIES).fit(seen[half], truth[half]).predict(seen[~half])
            explained = _explained(truth[~half], guess.reshape(-1, width))
            values: tuple[Any, ...] = (None,) * len(asked)
            if explained >= TELLS:
                all_rows = RidgeCV(PENALTIES).fit(seen, truth)
                guess = all_rows.predict(asked).reshape(-1, width)
                values = _values(column, np.clip(guess, truth.min(0), truth.max(0)))
            found.append(ExpectedColumn(column.name, explained, values))
        start = stop
    return found


def _explained(truth: Floats, guess: Floats) -> float:
    """Return the share of the variance that is explained; 0 of a constant."""
    total = float(np.square(truth - truth.mean(0)).sum())
    return 1.0 - float(np.square(truth - guess).sum()) / total if total > 0 else 0.0


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
