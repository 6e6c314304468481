"""How far rows lie from those that were learned from, and whether two domains touch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.neighbors import NearestNeighbors

from halfseen.arrays import Floats, Matrix

NEIGHBOURS = 5
SMALLEST = 1e-9
ERROR = 0.05
"""Shares of both domains on the wrong side, summed, up to which a threshold divides them."""
DENSITY = 0.7
"""Times the usual density that rows have at least where one population was cut in two. Cut tables
mostly had one or more; where columns are read otherwise three of four had less than a half."""
NEAR = 0.05
"""Share of all rows, on each side of a threshold, that its density is that of."""
RIDGE = 0.01


class Neighbours(NamedTuple):
    """How far some rows are from their fifth neighbour in the source.

    `isolation` is the logarithm of that distance over the geometric mean of the neighbours'
    distances to theirs: near zero also where source rows are rare.
    """

    distance: Floats
    isolation: Floats


def neighbours_of(source: Matrix, others: Matrix) -> tuple[Neighbours, Neighbours]:
    """Return the neighbours of source rows, and of other rows, in the source.

    References
    ----------
    M. Breunig, H.-P. Kriegel, R. Ng, J. Sander, "LOF: identifying density-based local outliers",
    SIGMOD 2000.

    Examples
    --------
    >>> line = np.arange(20, dtype=np.float32)[:, None] ** 2  # rows get rarer
    >>> within, across = neighbours_of(line, np.float32([[225.5], [1500]]))
    >>> float(within.distance[0]), across.distance.tolist(), (across.isolation > 1).tolist()
    (25.0, [63.5, 1275.0], [False, True])
    """
    neighbours = min(NEIGHBOURS, len(source) - 1)
    search = NearestNeighbors(n_neighbors=neighbours + 1).fit(source)
    # A source row is its own first neighbour.
    found, near = search.kneighbors(source)
    within, near = found[:, -1], near[:, 1:]
    logs = np.log(np.maximum(within, SMALLEST))
    found, near_others = search.kneighbors(others, n_neighbors=neighbours)
    across = found[:, -1]
    other_logs = np.log(np.maximum(across, SMALLEST))
    return (
        Neighbours(within, logs - logs[near].mean(axis=1)),
        Neighbours(across, other_logs - logs[near_others].mean(axis=1)),
    )


def is_cut(source: Floats, target: Floats) -> bool:
    """Say whether one column, or one sum of columns, was cut in two: no gap lies between.

    Where instruments changed, two whole populations stand beside each other; columns in which they
    are apart have few rows in between.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(800, 3))
    >>> is_cut(rows[rows[:, 0] < 0.3], rows[rows[:, 0] >= 0.3]), is_cut(rows[:400], rows[400:] + 4)
    (True, False)
    """
    inner = (len(source) * np.cov(source.T) + len(target) * np.cov(target.T)) / (
        len(source) + len(target)
    )
    columns = source.shape[1]
    shift = target.mean(axis=0) - source.mean(axis=0)
    together = np.linalg.solve(np.atleast_2d(inner) + RIDGE * np.eye(columns), shift)
    directions = np.column_stack([np.eye(columns), together])
    found = map(best_threshold, (source @ directions).T, (target @ directions).T)
    error, density = min(found, key=lambda threshold: threshold[0])
    return error <= ERROR and density >= DENSITY


def best_threshold(source: Floats, target: Floats) -> tuple[float, float]:
    """Return the least error of a threshold between two domains, and how dense rows are there.

    The error is the share of source rows on the wrong side plus that of target rows; the density
    how many times as dense as usual both together are around the threshold.
    """
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
    return float(below[place]), float((last - first) / len(values) / width / usual)
