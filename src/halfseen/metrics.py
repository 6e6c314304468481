"""How good predictions are on rows whose labels are known: each formula once.

Those of classes take probabilities, one row per example, and class positions; those of amounts
take a matrix whose first column is the amount, the next two the ends of its interval, and the true
amounts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from halfseen.arrays import Floats, Integers, labels, probabilities, same_length

BINS = 15
"""Of confidence, in the calibration error."""
SMALLEST = float(np.finfo(np.float64).eps)
"""A probability below this counts as this, as scikit-learn's log_loss has it."""

Labels = npt.NDArray[Any]
"""Class positions or amounts, one each; or soft labels, one row each."""


class Measure(NamedTuple):
    """Something measured on labelled rows: its words, and its value (None where undefined)."""

    words: str
    of: Callable[[Floats, Labels], float | None]


class Expected(NamedTuple):
    """Something that can be expected on a target: a mean of row losses, read in some way.

    `other` is what a target's mean differs by from what its observed columns let expect, a
    standard deviation found on development problems.
    """

    losses: Floats
    other: float
    read: Callable[[float], float]


def predictions(predicted: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Floats, Integers]:
    """Return probabilities and class positions, checked against each other."""
    array = probabilities("the predicted probabilities", predicted)
    positions = labels("y", y, array.shape[1])
    same_length(probabilities=array, y=positions)
    return array, positions


def accuracy(probability: Floats, y: Integers) -> float:
    """Return the share of rows whose most probable class is theirs."""
    return float((probability.argmax(axis=1) == y).mean())


def balanced_accuracy(probability: Floats, y: Integers) -> float:
    """Return the mean over the classes that are present of the share found of each."""
    right = probability.argmax(axis=1) == y
    return float(np.mean([right[y == label].mean() for label in np.unique(y)]))


def row_losses(probability: Floats, y: Integers) -> Floats:
    """Return the cross-entropy of each row, in nats."""
    given = probability[np.arange(len(y)), y]
    losses: Floats = -np.log(np.maximum(given, SMALLEST))
    return losses + 0.0  # no minus zero


def auc(probability: Floats, y: Integers) -> float | None:
    """Return the area under the ROC curve, or None where a class is absent.

    Of two classes it is that of the second. Of more it is the mean over all pairs of classes, each
    pair by itself (one against one, unweighted: Hand and Till, 2001), which does not depend on how
    frequent the classes are.
    """
    if len(np.unique(y)) < probability.shape[1]:
        return None
    from sklearn.metrics import roc_auc_score  # which takes its time to import

    score = probability[:, 1] if probability.shape[1] == 2 else probability
    return float(roc_auc_score(y, score, multi_class="ovo"))


def weighted_auc(score: Floats, y: Integers, weights: Floats) -> float:
    """Return the area under the ROC curve of weighted rows, y being 0 or 1; a half of one class.

    >>> weighted_auc(np.array([0.1, 0.4, 0.4, 0.8]), np.array([0, 0, 1, 1]), np.ones(4))
    0.875
    """
    _, place = np.unique(score, return_inverse=True)
    ones, zeros = (np.bincount(place, weights * (y == label)) for label in (1, 0))
    whole = ones.sum() * zeros.sum()
    return float(ones @ (np.cumsum(zeros) - zeros / 2.0) / whole) if whole > 0.0 else 0.5


def expected_calibration_error(predicted_probabilities: npt.ArrayLike, y: npt.ArrayLike) -> float:
    r"""Return the gap between confidence and accuracy, averaged over bins of confidence.

    .. math:: \sum_b \frac{n_b}{n} \, | \mathrm{accuracy}_b - \mathrm{confidence}_b | ,

    with the confidence :math:`\max_k p_k` in 15 bins of equal width (Guo, Pleiss, Sun and
    Weinberger, "On calibration of modern neural networks", ICML 2017). Lower is better; needs
    labels, so on the target it belongs in evaluations alone.
    """
    array, y = predictions(predicted_probabilities, y)
    confidence, right = array.max(axis=1), array.argmax(axis=1) == y
    position = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    gap = np.bincount(position, weights=right - confidence, minlength=BINS)
    return float(np.abs(gap).sum() / len(y))


def metrics_of(probability: Floats, y: Integers) -> dict[str, Any]:
    """Return what is shown of predictions: rounded, the AUC None where a class is absent."""
    area = auc(probability, y)
    return {
        "rows": len(y),
        "accuracy": round(accuracy(probability, y), 4),
        "balanced_accuracy": round(balanced_accuracy(probability, y), 4),
        "cross_entropy": round(float(row_losses(probability, y).mean()), 4),
        "auc": None if area is None else round(area, 4),
    }


def root_mean_squared_error(shown: Floats, y: Floats) -> float:
    """Return the root of the mean squared error."""
    return float(np.sqrt(np.square(shown[:, 0] - y).mean()))


def mean_absolute_error(shown: Floats, y: Floats) -> float:
    """Return the mean absolute error."""
    return float(np.abs(shown[:, 0] - y).mean())


def r_squared(shown: Floats, y: Floats) -> float | None:
    """Return the share of the variance that is explained, or None where there is none."""
    spread = float(np.square(y - y.mean()).sum())
    return 1.0 - float(np.square(shown[:, 0] - y).sum()) / spread if spread > 0 else None


def coverage(shown: Floats, y: Floats) -> float | None:
    """Return the share of rows in their interval, or None where predictions have none."""
    if shown.shape[1] < 3:
        return None
    return float(((shown[:, 1] <= y) & (y <= shown[:, 2])).mean())
