"""Intervals of amounts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from halfseen.arrays import Floats
from halfseen.errors import InputError

LEVEL = 0.9
"""Share of rows that an interval should hold."""
BINS, BIN_ROWS = 5, 60
"""Amounts of which the interval may have a width of its own, and the rows that each needs."""
OTHER = 0.2
"""What a target's mean errors differ by from what its observed columns let expect, as a share of
them: a standard deviation. An assumption, which five problems of benchmarks/amounts.py fit.
Intervals are so much wider where source rows do not cover the target."""
NARROWEST = 0.05
"""Least reach to one side, as a share of the widest, that a scale is applied to."""
ENOUGH_TO_NARROW = 30
"""Labelled rows from which intervals may become narrower; fewer can only widen them."""


class Target(NamedTuple):
    """How held-out source rows stand to a target.

    `weights` say how much more often each occurs there, `covered` whether they are enough to tell
    anything of it.
    """

    weights: Floats
    covered: bool


Look = Callable[[], Target | None]
"""Looks at a target; None where nothing can be told of it."""


@dataclass(frozen=True)
class IntervalReach:
    """How far the truth lies below and above an amount: the 90 % interval (split conformal).

    Quantiles of what held-out rows differ by, the same everywhere or by the predicted amount, in
    between which they are interpolated; for a target, at least those of rows that are weighted to
    look like it. `at` are predicted amounts, rising; the interval reaches `below` and `above` each.

    References
    ----------
    J. Lei, M. G'Sell, A. Rinaldo, R. Tibshirani, L. Wasserman, "Distribution-free predictive
    inference for regression", JASA 113, 2018.

    R. Tibshirani, R. Barber, E. Candès, A. Ramdas, "Conformal prediction under covariate shift",
    NeurIPS 2019.
    """

    at: tuple[float, ...]
    below: tuple[float, ...]
    above: tuple[float, ...]

    def __post_init__(self) -> None:
        arrays = [np.array(part, dtype=np.float64) for part in (self.at, self.below, self.above)]
        alike = len({array.shape for array in arrays}) == 1 and arrays[0].ndim == 1
        if not alike or not len(self.at) or not all(np.isfinite(a).all() for a in arrays):
            raise InputError("its interval is not one finite number below and above each amount.")
        if (np.diff(arrays[0]) <= 0).any() or min(a.min() for a in arrays[1:]) < 0:
            raise InputError("its interval does not reach from below each amount to above it.")

    @classmethod
    def fitted(cls, amounts: Floats, labels: Floats) -> IntervalReach:
        """Return the reach that suits held-out rows: by amount where that shortens intervals."""
        most = max(1, min(BINS, len(amounts) // BIN_ROWS))
        dealt = np.random.default_rng(0).permutation(len(amounts))
        halves = dealt[::2], dealt[1::2]

        def score(bins: int) -> float:
            return sum(
                cls._of(amounts[one], labels[one], bins).score(amounts[other], labels[other])
                for one, other in (halves, halves[::-1])
            )

        chosen = 1 if most == 1 else min((1, most), key=score)
        return cls._of(amounts, labels, chosen)

    @classmethod
    def _of(cls, amounts: Floats, labels: Floats, bins: int) -> IntervalReach:
        parts = np.array_split(np.argsort(amounts, kind="stable"), bins)
        found: dict[float, tuple[float, float]] = {}
        for part in parts:
            difference, rows = np.sort(labels[part] - amounts[part]), len(part)
            # The ranks that hold the level for one row more.
            tail = (1.0 - LEVEL) / 2 * (rows + 1)
            low = difference[max(int(np.floor(tail)) - 1, 0)]
            high = difference[min(int(np.ceil(rows + 1 - tail)) - 1, rows - 1)]
            found[float(np.median(amounts[part]))] = max(0.0, -low), max(0.0, high)
        below, above = zip(*found.values(), strict=True)
        return cls(tuple(found), tuple(map(float, below)), tuple(map(float, above)))

    def for_target(self, differences: Floats, weights: Floats, *, covered: bool) -> IntervalReach:
        """Return the wider of this reach and that of weighted rows, and more if rows cover little.

        `differences` are those of the truth and held-out rows' amounts; the others are as in
        :class:`Target`.
        """
        further = 1.0 if covered else 1.0 + OTHER
        low, high = (max(0.0, _weighted_end(sign * differences, weights)) for sign in (-1, 1))
        return IntervalReach(
            self.at,
            tuple(further * max(low, side) for side in self.below),
            tuple(further * max(high, side) for side in self.above),
        )

    def scale_for(self, amounts: Floats, labels: Floats) -> float:
        """Return how many times as wide intervals must be to hold the level of labelled rows.

        Split conformal, of what each row misses as a multiple of the interval's side.
        """
        ends = self.times(1.0).around(amounts)
        missed = labels - amounts
        needed = np.sort(
            np.abs(missed) / np.where(missed < 0, amounts - ends[:, 0], ends[:, 1] - amounts)
        )
        rank = int(np.ceil(LEVEL * (len(labels) + 1)))
        scale = float(needed[min(rank, len(labels)) - 1])
        return scale if len(labels) >= ENOUGH_TO_NARROW else max(scale, 1.0)

    def times(self, scale: float) -> IntervalReach:
        """Return the reach so many times as wide, no side of it being next to nothing."""
        least = NARROWEST * max(*self.below, *self.above) or 1.0
        sides = (
            tuple(scale * max(each, least) for each in side) for side in (self.below, self.above)
        )
        return IntervalReach(self.at, *sides)

    def around(self, amounts: Floats) -> Floats:
        """Return the lower and the upper end for each amount: (rows, 2)."""
        below, above = (np.interp(amounts, self.at, side) for side in (self.below, self.above))
        return np.stack([amounts - below, amounts + above], axis=1)

    def score(self, amounts: Floats, labels: Floats) -> float:
        """Return the interval score: its length, and what misses it times 2 / (1 - level)."""
        low, high = self.around(amounts).T
        missed = np.maximum(low - labels, 0.0) + np.maximum(labels - high, 0.0)
        return float((high - low + 2.0 / (1.0 - LEVEL) * missed).mean())


def _weighted_end(differences: Floats, weights: Floats) -> float:
    """Return the weighted quantile that one side reaches to.

    A target's row has a weight too: what such rows have on average, at the far end.
    """
    if not weights.any():
        return float(differences.max())
    order = np.argsort(differences)
    whole = weights.sum() + np.square(weights).sum() / weights.sum()
    rank = np.searchsorted(np.cumsum(weights[order]), (1.0 + LEVEL) / 2 * whole)
    return float(differences[order][min(int(rank), len(order) - 1)])
