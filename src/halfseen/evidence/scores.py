"""Scores of a model's predictions on the target that no label enters."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import entr

from halfseen.arrays import probabilities
from halfseen.errors import InputError


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
    return float(entr(array.mean(axis=0)).sum() - entr(array).sum(axis=1).mean())


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
