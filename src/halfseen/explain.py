"""Why a model answers as it does: what each column adds, what is missing, how far a row is.

Columns are compared with those of typical rows, which are made of the source's quantiles that a
model's schema holds: no row of anybody is kept for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from halfseen.arrays import Floats, Integers, Matrix
from halfseen.data.preprocessing import ReadRows, inputs_of, outside
from halfseen.data.schema import CategoryColumn, NumberColumn, Shape, TableSchema
from halfseen.data.values import Unread
from halfseen.errors import InputError
from halfseen.evidence.distances import neighbours_of

MOST_ASKED = 10_000
"""Changed copies of one row that a model is asked about where columns are many."""
MOST_NUMBERS = 10_000_000
"""Numbers in the copies that are made at once, about."""
FEWEST_PAIRS = 2
TYPICAL = 19
"""Typical rows: one for each twentieth between the ends."""
MOST_COMPARED = 5_000
"""Source rows at most that distances are measured to."""
DISTANT = 2.0
"""Times the usual distance from which the answer about a row is called a guess."""
SMALLEST = 1e-9
PENALTIES = (1e-1, 1.0, 1e1, 1e2, 1e3, 1e4)
TELLS = 0.02
"""Share of a column's variance from which it can be said to be told."""


# --- what each column adds ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Contributions:
    """What each column adds to `base`, the mean answer about the background, one per output.

    `values` are (rows, columns, outputs), and all columns together give the answer about the row;
    `errors` are their standard errors, orders and background rows being a sample.
    """

    base: Floats
    values: Floats
    errors: Floats


def shapley_values(
    answer: Callable[[Matrix], Floats],
    rows: Matrix,
    background: Matrix,
    columns: Sequence[Sequence[int]],
    *,
    seed: int = 0,
) -> Contributions:
    r"""Return what each column adds to the answer about each row.

    A row of the background is turned into the explained row, column by column in random order;
    what the answer changes by when a column's turn comes is noted. The mean over all orders is
    the column's Shapley value,

    .. math:: \phi_j = \frac{1}{d!} \sum_{\pi} \left[ v(S_{\pi j} \cup \{j\}) - v(S_{\pi j})
              \right] ,

    with :math:`v(S)` the mean answer where the columns of S are the row's and the others the
    background's. Each background row is used with one random order and its reverse, whose errors
    cancel in part. Steps of one order add up, so the values do, exactly. `columns` are the inputs
    that each column of the user became.

    References
    ----------
    E. Strumbelj, I. Kononenko, "Explaining prediction models and individual predictions with
    feature contributions", Knowledge and Information Systems 41, 2014.

    R. Mitchell, J. Cooper, E. Frank, G. Holmes, "Sampling permutations for Shapley value
    estimation", JMLR 23, 2022: orders in pairs.

    Examples
    --------
    Of a sum, each column adds its own part:

    >>> rows, background = np.array([[3.0, 5.0]]), np.array([[1.0, 1.0], [1.0, 3.0]])
    >>> found = shapley_values(lambda x: x.sum(1, keepdims=True), rows, background, [[0], [1]])
    >>> found.base, found.values[0, :, 0]
    (array([3.]), array([2., 3.]))
    """
    random = np.random.default_rng(seed)
    count = len(columns)
    pairs = max(FEWEST_PAIRS, MOST_ASKED // (2 * (count + 1)))
    shown = background[:pairs]
    column_of = np.full(rows.shape[1], count)  # inputs of no column never change
    for number, positions in enumerate(columns):
        column_of[list(positions)] = number
    orders = np.array([random.permutation(count) for _ in shown])
    # turn[t, j]: when column j becomes the row's, in one order and in its reverse
    turns = np.argsort(np.concatenate([orders, orders[:, ::-1]]), axis=1)
    changes_at = np.column_stack([turns, np.full(len(turns), count)])[:, column_of]
    steps = np.arange(count + 1)[:, None]
    base = answer(shown).mean(0)
    run_parallel = max(1, MOST_NUMBERS // ((count + 1) * rows.shape[1]))
    paths = [(row, path) for row in range(len(rows)) for path in range(len(turns))]
    changes = np.empty((len(rows), len(turns), count, len(base)))
    for first in range(0, len(paths), run_parallel):
        some = paths[first : first + run_parallel]
        asked = [
            np.where(changes_at[path] < steps, rows[row], shown[path % len(shown)])
            for row, path in some
        ]
        answers = answer(np.concatenate(asked)).reshape(len(some), count + 1, -1)
        for (row, path), along in zip(some, answers, strict=True):
            changes[row, path] = np.diff(along, axis=0)[turns[path]]
    paired = (changes[:, : len(shown)] + changes[:, len(shown) :]) / 2
    spread = paired.std(1, ddof=1) if len(shown) > 1 else np.zeros_like(paired[:, 0])
    return Contributions(base, paired.mean(1), spread / np.sqrt(len(shown)))


# --- rows beside the source ---------------------------------------------------------------------


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
    """A missing column as it would be expected in some rows; its values are None if nothing tells.

    `explained` is the share of its variance that is told on source rows that had no part in it.
    """

    name: str
    explained: float
    values: tuple[Any, ...]


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


# --- an explanation as data, and as sentences ---------------------------------------------------


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a model answers as it does about some rows.

    `contributions` are what each of the observed `columns` adds to the log-odds of a class, or to
    the amount, (rows, columns), beginning with `base`, those of typical rows. They speak of one
    class in each row (`spoken_of`): the positive one of two, or the predicted. `outside` names the
    columns whose value the source never had, or never as extreme; `distances` say how many times
    farther a row is from source rows than those are from each other. Without source rows there are
    no `distances` and no `missing`, which is what the missing columns would have held.
    """

    columns: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    class_names: tuple[str, ...]
    shown: Floats
    spoken_of: Integers
    base: Floats
    contributions: Floats
    errors: Floats
    outside: Sequence[tuple[str, ...]]
    distances: Floats | None
    missing: Sequence[ExpectedColumn] | None
    compared_with: str
    missing_by: str

    def __len__(self) -> int:
        return len(self.shown)

    @property
    def moved(self) -> str:
        """What columns add to: the log-odds of a class, or the amount."""
        return "log_odds" if self.class_names else "amount"

    @property
    def importance(self) -> dict[str, float]:
        """How much each column moves the answer, on average over the rows; the most first."""
        mean = np.abs(self.contributions).mean(0)
        order = np.argsort(-mean, kind="stable")
        return {self.columns[k]: float(mean[k]) for k in order}

    def row(self, number: int) -> dict[str, Any]:
        """Return everything about one row as plain data, the columns that move it most first."""
        order = np.argsort(-np.abs(self.contributions[number]), kind="stable")
        place = self.spoken_of[number]
        value = float(self.shown[number, place])
        answer = {"amount": value}
        if self.class_names:
            answer = {"class": self.class_names[place], "probability": value}
        told: dict[str, Any] = {
            **answer,
            "base": float(self.base[number]),
            "contributions": [
                {
                    "column": self.columns[k],
                    "value": self.values[number][k],
                    self.moved: float(self.contributions[number, k]),
                    "standard_error": float(self.errors[number, k]),
                }
                for k in order
            ],
            "outside": list(self.outside[number]),
        }
        if self.distances is not None:
            told["distance"] = float(self.distances[number])
        if self.missing is not None:
            told["missing"] = {column.name: column.values[number] for column in self.missing}
        return told

    def to_dict(self) -> dict[str, Any]:
        explained = None
        if self.missing is not None:
            explained = {column.name: column.explained for column in self.missing}
        return {
            "compared_with": self.compared_with,
            "importance": self.importance,
            "missing_by": self.missing_by,
            "missing_explained": explained,
            "rows": [self.row(number) for number in range(len(self))],
        }

    def told(self, number: int, most: int = 5) -> list[str]:
        """Return what there is to say about one row, in sentences."""
        row, digits = self.row(number), "+.2f" if self.class_names else "+.4g"
        moves = ", ".join(
            f"{c['column']} = {shown(c['value'])} {c[self.moved]:{digits}}"
            for c in row["contributions"][:most]
            if c[self.moved]
        )
        rest = len(row["contributions"]) - most
        more = f", {rest} more columns" if rest > 0 else ""
        if self.class_names:
            typical = 1.0 / (1.0 + np.exp(-row["base"]))
            says = (
                f"Class {row['class']!r} has {row['probability']:.1%}; typical rows have "
                f"{typical:.1%}. In log-odds"
            )
        else:
            says = f"The amount is {row['amount']:.4g}; typical rows have {row['base']:.4g}. To it"
        sentences = [f"{says}: {moves or 'no column matters'}{more}."]
        if row["outside"]:
            sentences.append(f"Outside of what the source had: {', '.join(row['outside'])}.")
        if row.get("distance", 0.0) >= DISTANT:
            sentences.append(
                f"It is {row['distance']:.1f} times as far from source rows as those usually are "
                "from each other: take the answer for a guess."
            )
        known = {name: v for name, v in row.get("missing", {}).items() if v is not None}
        if known:
            held = ", ".join(f"{name} about {shown(value)}" for name, value in known.items())
            sentences.append(f"Missing columns, as {self.missing_by}: {held}.")
        return sentences


def shown(value: Any) -> str:
    """Return a value as people write it."""
    if value is None:
        return "empty"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
