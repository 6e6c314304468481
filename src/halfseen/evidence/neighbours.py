"""How far rows are from those that were learned from."""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import NearestNeighbors

from halfseen.arrays import Floats, Matrix

NEIGHBOURS = 5
SMALLEST = 1e-9


def neighbour_distances(source: Matrix, others: Matrix) -> tuple[Floats, Floats]:
    """Return how far source rows, and other rows, are from their fifth neighbour in the source.

    Examples
    --------
    >>> import numpy as np
    >>> line = np.arange(10, dtype=np.float32)[:, None]
    >>> within, across = neighbour_distances(line, np.float32([[20]]))
    >>> float(within[0]), float(across[0])
    (5.0, 15.0)
    """
    neighbours = min(NEIGHBOURS, len(source) - 1)
    search = NearestNeighbors(n_neighbors=neighbours + 1).fit(source)
    # A source row is its own first neighbour.
    within: Floats = search.kneighbors(source)[0][:, -1]
    across: Floats = search.kneighbors(others, n_neighbors=neighbours)[0][:, -1]
    return within, across


def outlyingness(source: Matrix, others: Matrix) -> tuple[Floats, Floats]:
    """Return how isolated source rows, and other rows, are for the place where they are.

    The logarithm of a row's distance to its fifth neighbour in the source, over the geometric
    mean of its neighbours' distances to theirs: near zero also where source rows are rare.

    References
    ----------
    M. Breunig, H.-P. Kriegel, R. Ng, J. Sander, "LOF: identifying density-based local outliers",
    SIGMOD 2000.

    Examples
    --------
    >>> line = np.arange(20, dtype=np.float32)[:, None] ** 2  # rows get rarer
    >>> among, beyond = outlyingness(line, np.float32([[225.5], [1500]]))[1]
    >>> bool(among < 0.1), bool(beyond > 1)
    (True, True)
    """
    neighbours = min(NEIGHBOURS, len(source) - 1)
    search = NearestNeighbors(n_neighbors=neighbours + 1).fit(source)
    distances, near = search.kneighbors(source)
    own = np.log(np.maximum(distances[:, -1], SMALLEST))
    there, near_others = search.kneighbors(others, n_neighbors=neighbours)
    across = np.log(np.maximum(there[:, -1], SMALLEST))
    return own - own[near[:, 1:]].mean(axis=1), across - own[near_others].mean(axis=1)
