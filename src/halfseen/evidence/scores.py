"""The label-free scores as rows of one table, and those that read target predictions alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import entr

from halfseen.arrays import probabilities
from halfseen.errors import InputError
from halfseen.evidence.risk import (
    deep_embedded_validation,
    importance_weighted_validation,
    source_validation,
)


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


@dataclass(frozen=True)
class Score:
    """One way to compare models without target labels.

    `function` takes what `needs` names, in that order, and returns a number, or a risk with its
    interval.
    """

    name: str
    better: Literal["lower", "higher"]
    needs: tuple[str, ...]
    function: Callable[..., Any]

    def best(self, values: Sequence[float]) -> int:
        """Return the position of the best value; the first one of equals, never a NaN.

        Examples
        --------
        >>> SCORES["dev"].best([0.3, 0.1, float("nan")])
        1
        >>> SCORES["mutual_information"].best([0.3, 0.1])
        0
        """
        array = np.asarray(values, dtype=np.float64)
        if array.ndim != 1 or np.isnan(array).all():
            raise InputError(f"No value of {self.name} is a number: there is nothing to choose.")
        return int(np.nanargmin(array) if self.better == "lower" else np.nanargmax(array))


_ON_SOURCE = ("source_loss", "weight")

SCORES: dict[str, Score] = {
    score.name: score
    for score in (
        Score("dev", "lower", _ON_SOURCE, deep_embedded_validation),
        Score("importance_weighted", "lower", _ON_SOURCE, importance_weighted_validation),
        Score("source_loss", "lower", ("source_loss",), source_validation),
        Score("mutual_information", "higher", ("target_probabilities",), mutual_information_score),
        Score("agreement", "higher", ("probabilities_of_runs",), agreement),
    )
}
"""Every score by name. A function returns its natural number; `better` says which way is up."""
