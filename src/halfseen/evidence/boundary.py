"""Where two domains meet: rows that a cut divided lie close on both sides of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from halfseen.arrays import Floats

ERROR = 0.05
"""Shares of both domains on the wrong side, summed, up to which a threshold divides them."""
DENSITY = 0.7
"""Times the usual density that rows have at least where one population was cut in two. Cut tables
mostly had one or more; where columns are read otherwise three of four had less than a half."""
NEAR = 0.05
"""Share of all rows, on each side of a threshold, that its density is that of."""
RIDGE = 0.01


class Threshold(NamedTuple):
    """The value that tells two domains apart best."""

    error: float
    """Share of source rows above it, plus that of target rows below; or the other way round."""
    density: float
    """How many times as dense as usual both domains together are around it."""


def is_cut(source: Floats, target: Floats) -> bool:
    """Say whether one column, or one sum of columns, was cut in two: no gap lies between.

    Where instruments changed, two whole populations stand beside each other; columns in which they
    are apart have few rows in between.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(800, 3))
    >>> is_cut(rows[rows[:, 0] < 0.3], rows[rows[:, 0] >= 0.3])
    True
    >>> is_cut(rows[:400], rows[400:] + 4.0)
    False
    """
    inner = (len(source) * np.cov(source.T) + len(target) * np.cov(target.T)) / (
        len(source) + len(target)
    )
    columns = source.shape[1]
    shift = target.mean(axis=0) - source.mean(axis=0)
    together = np.linalg.solve(np.atleast_2d(inner) + RIDGE * np.eye(columns), shift)
    directions = np.column_stack([np.eye(columns), together])
    found = map(best_threshold, (source @ directions).T, (target @ directions).T)
    best = min(found, key=lambda threshold: threshold.error)
    return best.error <= ERROR and best.density >= DENSITY


def best_threshold(source: Floats, target: Floats) -> Threshold:
    """Return the threshold of least error between values of two domains."""
    if source.mean() > target.mean():
        source, target = -source, -target
    values = np.concatenate([source, target])
    order = np.argsort(values)
    values, is_target = values[order], order >= len(source)
    below = np.cumsum(is_target) / len(target) + 1.0 - np.cumsum(~is_target) / len(source)
    below[:-1][values[:-1] == values[1:]] = 1.0  # no threshold lies between equal values
    place = int(below.argmin())
    near = max(int(NEAR * len(values)), 5)
    first, last = max(place - near, 0), min(place + near, len(values) - 1)
    low, high = np.quantile(values, [0.05, 0.95])
    usual = 0.9 / max(high - low, np.finfo(float).tiny)
    width = max(values[last] - values[first], np.finfo(float).tiny)
    return Threshold(float(below[place]), float((last - first) / len(values) / width / usual))
