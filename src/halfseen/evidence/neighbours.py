"""How far rows are from those that were learned from."""

from __future__ import annotations

from sklearn.neighbors import NearestNeighbors

from halfseen.arrays import Floats, Matrix

NEIGHBOURS = 5


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
