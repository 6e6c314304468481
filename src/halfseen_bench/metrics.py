"""How good predictions are, on rows whose labels are known: exact means, never means of means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from sklearn.metrics import f1_score, roc_auc_score

from halfseen.arrays import Floats, labels, probabilities, same_length
from halfseen.errors import OptionError
from halfseen.evidence import expected_calibration_error

__all__ = ["METRICS", "Metric", "measured", "metric_named", "row_losses"]

_SMALLEST = float(np.finfo(np.float64).eps)
"""A probability below this counts as this, as scikit-learn's log_loss has it."""


@dataclass(frozen=True)
class Metric:
    """How a metric is read and printed.

    Parameters
    ----------
    name, title
        The key in a record, and the words over a column.
    better
        Whether the "lower" or the "higher" of two values is the better one.
    scale, decimals
        What a value is multiplied by in print (100 for percent), and its digits.
    """

    name: str
    title: str
    better: Literal["lower", "higher"]
    scale: float = 1.0
    decimals: int = 4

    def best(self, values: list[float]) -> float:
        """Return the best of some values."""
        return min(values) if self.better == "lower" else max(values)


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "accuracy, %", "higher", 100.0, 1),
        Metric("macro_f1", "macro-F1, %", "higher", 100.0, 1),
        Metric("auc", "AUC, %", "higher", 100.0, 1),
        Metric("cross_entropy", "cross-entropy", "lower"),
        Metric("normalised_cross_entropy", "normalised cross-entropy", "lower"),
        Metric("calibration_error", "calibration error", "lower"),
        Metric("regret", "regret", "lower"),
    )
}
"""Every metric by name. ``regret`` is known on the simulator alone."""


def metric_named(name: str) -> Metric:
    """Return a metric, or say which there are."""
    if name not in METRICS:
        raise OptionError(f"There is no metric {name!r}; there are {', '.join(METRICS)}.")
    return METRICS[name]


def measured(predicted: npt.ArrayLike, y: npt.ArrayLike) -> dict[str, float | None]:
    """Return every metric of class probabilities beside the true labels.

    The normalised cross-entropy is the cross-entropy divided by that of the constant that knows
    these rows' own class frequencies: below 1, the model says more than the frequencies do. The
    AUC is that of the second of two classes, and None for more classes or a single one present.

    Examples
    --------
    >>> found = measured([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> round(found["accuracy"], 4), round(found["cross_entropy"], 4), found["auc"]
    (0.6667, 0.4149, 1.0)
    """
    array = probabilities("predicted", predicted)
    truth = labels("y", y, array.shape[1])
    same_length(predicted=array, y=truth)
    chosen = array.argmax(axis=1)
    present = np.unique(truth)
    cross_entropy = float(row_losses(array, truth).mean())
    share = np.bincount(truth, minlength=array.shape[1]) / len(truth)
    uncertainty = -float(np.sum(share[share > 0] * np.log(share[share > 0])))
    binary = array.shape[1] == 2 and len(present) == 2
    return {
        "accuracy": float((chosen == truth).mean()),
        "macro_f1": float(f1_score(truth, chosen, labels=present, average="macro")),
        "cross_entropy": cross_entropy,
        "normalised_cross_entropy": cross_entropy / uncertainty if uncertainty else None,
        "auc": float(roc_auc_score(truth, array[:, 1])) if binary else None,
        "calibration_error": expected_calibration_error(array, truth),
    }


def row_losses(predicted: Floats, y: npt.NDArray[np.int64]) -> Floats:
    """Return the cross-entropy of each row, in nats.

    Examples
    --------
    >>> row_losses(np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([0, 0])).round(4)
    array([0.6931, 0.    ])
    """
    given = predicted[np.arange(len(y)), y]
    losses: Floats = -np.log(np.maximum(given, _SMALLEST))
    return losses + 0.0  # no minus zero
