"""How far rows are from those that were learned from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.neighbors import NearestNeighbors

from halfseen.arrays import Floats, Matrix

NEIGHBOURS = 5
SMALLEST = 1e-9


class Neighbours(NamedTuple):
    """How far some rows are from their fifth neighbour in the source."""

    distance: Floats
    isolation: Floats
    """The logarithm of that distance over the geometric mean of the neighbours' distances to
    theirs: near zero also where source rows are rare."""


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
    >>> float(within.distance[0]), across.distance.tolist()
    (25.0, [63.5, 1275.0])
    >>> (across.isolation > 1).tolist()
    [False, True]
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
