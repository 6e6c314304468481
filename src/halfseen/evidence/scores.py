"""Scores of a model's predictions on the target that no label enters."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import entr, logsumexp

from halfseen.arrays import Floats, matrix, probabilities
from halfseen.errors import InputError, OptionError

__all__ = [
    "agreement",
    "entropy_score",
    "mutual_information_score",
    "soft_neighbourhood_density",
]

_ROWS_AT_ONCE = 1024
"""Similarities are held for this many rows at a time, so that memory grows with n, not n²."""


def entropy_score(target_probabilities: npt.ArrayLike) -> float:
    r"""Return the mean entropy of the target predictions, in nats. Lower is better.

    .. math:: \frac{1}{n} \sum_i H(p_i) , \qquad H(p) = - \sum_k p_k \log p_k .

    It is lowest for a model that puts every row in one class with certainty: never use it alone
    where training itself minimises it.

    References
    ----------
    P. Morerio, J. Cavazza, V. Murino, "Minimal-entropy correlation alignment for unsupervised
    deep domain adaptation", ICLR 2018.

    Examples
    --------
    >>> entropy_score([[1.0, 0.0], [0.0, 1.0]])
    0.0
    >>> round(entropy_score([[0.5, 0.5]]), 4)  # log 2
    0.6931
    """
    return float(_entropy(probabilities("target_probabilities", target_probabilities)).mean())


def mutual_information_score(target_probabilities: npt.ArrayLike) -> float:
    r"""Return the information between row and predicted class, in nats. Higher is better.

    .. math:: H \Big( \frac{1}{n} \sum_i p_i \Big) - \frac{1}{n} \sum_i H(p_i) :

    predictions are to be certain one by one and spread over the classes together. The first
    term prefers balanced classes, which the target need not have.

    References
    ----------
    J. S. Bridle, A. J. R. Heading, D. J. C. MacKay, "Unsupervised classifiers, mutual
    information and 'phantom targets'", NIPS 1991.

    Examples
    --------
    >>> round(mutual_information_score([[1.0, 0.0], [0.0, 1.0]]), 4)  # log 2
    0.6931
    >>> mutual_information_score([[1.0, 0.0], [1.0, 0.0]])
    0.0
    """
    array = probabilities("target_probabilities", target_probabilities)
    between = float(_entropy(array.mean(axis=0, keepdims=True))[0])
    return between - float(_entropy(array).mean())


def soft_neighbourhood_density(
    features_or_probabilities: npt.ArrayLike, temperature: float = 0.05
) -> float:
    r"""Return the mean entropy of each target row's soft neighbourhood. Higher is better.

    With every row (class probabilities, as the authors recommend, or latents) of length one,

    .. math:: S_{ij} = \langle f_i, f_j \rangle , \qquad
              P_{ij} = \frac{\exp(S_{ij} / \tau)}{\sum_{j' \ne i} \exp(S_{ij'} / \tau)} , \qquad
              \frac{1}{n} \sum_i H(P_{i \cdot}) :

    it is large when a row has many near neighbours. Its largest value, log(n - 1), is also that
    of a model that sends every row to one point, so look at it beside
    :func:`mutual_information_score`; and compare it only on the same rows.

    References
    ----------
    K. Saito, D. Kim, P. Teterwak, S. Sclaroff, T. Darrell, K. Saenko, "Tune it the right way:
    unsupervised validation of domain adaptation via soft neighborhood density", ICCV 2021.

    Examples
    --------
    Two tight pairs: every row has one neighbour, and the entropy is that of a sure thing.

    >>> pairs = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
    >>> round(soft_neighbourhood_density(pairs), 4)
    0.0
    >>> triples = [[1.0, 0.0]] * 3 + [[0.0, 1.0]] * 3
    >>> round(soft_neighbourhood_density(triples), 4)  # log 2
    0.6931
    """
    features = matrix("features_or_probabilities", features_or_probabilities)
    if not (np.isfinite(temperature) and temperature > 0):
        raise OptionError(f"temperature={temperature} must be a positive number.")
    if len(features) < 3:
        raise InputError(
            f"A neighbourhood's entropy needs at least 3 target rows; there are {len(features)}."
        )
    length = np.linalg.norm(features, axis=1, keepdims=True)
    features = features / np.where(length > 0, length, 1.0)
    total = 0.0
    for first in range(0, len(features), _ROWS_AT_ONCE):
        rows = features[first : first + _ROWS_AT_ONCE]
        exponent = rows @ features.T / temperature
        # A row is no neighbour of itself.
        exponent[np.arange(len(rows)), first + np.arange(len(rows))] = -np.inf
        exponent -= logsumexp(exponent, axis=1, keepdims=True)
        total += float(entr(np.exp(exponent)).sum())
    return total / len(features)


def agreement(probabilities_of_runs: npt.ArrayLike) -> float:
    """Return how often two independently seeded runs predict the same class. Higher is better.

    The mean over the rows and pairs of runs of an array (runs, target rows, classes). Where the
    runs' ensemble is calibrated, the expected disagreement equals the expected error; under shift
    it says too little, because runs that learned the same source share mistakes.

    References
    ----------
    Y. Jiang, V. Nagarajan, C. Baek, J. Z. Kolter, "Assessing generalization of SGD via
    disagreement", ICLR 2022.
    """
    try:
        runs = np.asarray(probabilities_of_runs, dtype=np.float64)
    except ValueError as error:
        raise InputError(
            "probabilities_of_runs must hold the same rows and classes for each run."
        ) from error
    if runs.ndim != 3 or len(runs) < 2:
        raise InputError(
            "probabilities_of_runs must have the shape (runs, rows, classes) with at least two "
            f"runs, but its shape is {runs.shape}."
        )
    chosen = np.stack([probabilities(f"run {r}", run).argmax(axis=1) for r, run in enumerate(runs)])
    votes = (chosen[:, :, None] == np.arange(runs.shape[2])).sum(axis=0)
    return float((votes * (votes - 1)).sum(axis=1).mean() / (len(runs) * (len(runs) - 1)))


def _entropy(array: Floats) -> Floats:
    entropy: Floats = entr(array).sum(axis=1)
    return entropy
