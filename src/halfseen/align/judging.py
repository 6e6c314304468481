"""Whether columns have drifted, and which map of them is plausible: no label of the target."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import softmax
from sklearn.neighbors import NearestNeighbors

from halfseen.arrays import Floats, Matrix

MOST_COMPARED = 1_500
NEIGHBOURS = 5
FAR = 2.0
"""Target rows so many times as far from source rows as those are from each other: drift."""
TEMPERATURE = 0.15
"""How much less plausible, in nats, a map must be to count 1/e as much."""
SHARES, DISTANCE = 0.5, 0.5
"""How much odd class shares, and rows away from the source's, speak against a map."""
SMALLEST = 1e-9


def drift_of(source: Matrix, target: Matrix, seed: int = 0) -> float:
    """Return how many times farther target rows are from source rows than those from each other.

    The geometric mean of the distances to the fifth neighbour in the source, of target rows over
    source rows. A change of how often rows occur leaves it near one; a sensor that reads
    otherwise does not.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> rows, others = random.normal(size=(2, 500, 3)).astype(np.float32)
    >>> drift_of(rows, others) < 1.2, drift_of(rows, others + 5) > 3
    (True, True)
    """
    random = np.random.default_rng(seed)
    some, others = (
        rows[random.permutation(len(rows))[:MOST_COMPARED]] for rows in (source, target)
    )
    neighbours = min(NEIGHBOURS, len(some) - 1)
    search = NearestNeighbors(n_neighbors=neighbours + 1).fit(some)
    # A source row is its own first neighbour.
    within = search.kneighbors(some)[0][:, -1]
    across = search.kneighbors(others, n_neighbors=neighbours)[0][:, -1]
    logs = [np.log(np.maximum(distance, SMALLEST)).mean() for distance in (across, within)]
    return float(np.exp(logs[0] - logs[1]))


def implausibility(log_probabilities: Floats, prior: Floats, distance: float = 1.0) -> float:
    r"""Return how little a map's answer about the target is to be believed, in nats.

    .. math:: E_x H(Y | x) + \tfrac12 KL(q \| \pi) + \tfrac12 \log d

    with q the mean prediction, π the source's class proportions and d how many times farther
    mapped rows are from source rows than those from each other (:func:`drift_of`). Rows of the
    wrong scale fall between the classes (high entropy), into a few of them (odd shares), or where
    no source row is; each of the three alone is right on some drifts and wrong on others.

    References
    ----------
    A. Krause, P. Perona, R. Gomes, "Discriminative clustering by regularized information
    maximization", NIPS 2010: the same trade of certainty for plausible shares.

    Examples
    --------
    >>> sure, torn = np.log([[0.9, 0.1], [0.1, 0.9]]), np.log([[0.5, 0.5], [0.5, 0.5]])
    >>> one_class = np.log([[0.9, 0.1], [0.9, 0.1]])
    >>> [round(implausibility(a, np.array([0.5, 0.5])), 2) for a in (sure, torn, one_class)]
    [0.33, 0.69, 0.51]
    """
    probability = np.exp(log_probabilities)
    entropy = -(probability * log_probabilities).sum(axis=1).mean()
    shares = np.maximum(probability.mean(axis=0), SMALLEST)
    divergence = (shares * np.log(shares / prior)).sum()
    return float(entropy + SHARES * divergence + DISTANCE * np.log(distance))


def judged_weights(implausibilities: Sequence[float] | Floats) -> Floats:
    """Return how much each map should count: clear cases alone, close ones hedged."""
    weights: Floats = softmax(-np.array(implausibilities) / TEMPERATURE)
    return weights
