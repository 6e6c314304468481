"""The metrics of benchmarks: the library's, those that research adds, and how each is printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.metrics import f1_score

from halfseen.errors import OptionError
from halfseen.metrics import accuracy, auc, expected_calibration_error, predictions, row_losses

T = TypeVar("T")


@dataclass(frozen=True)
class Metric:
    """How a metric is read and printed."""

    name: str
    title: str
    better: Literal["lower", "higher"]
    scale: float = 1.0  # what a value is multiplied by in print: 100 for percent
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


def named(what: str, name: str, known: Mapping[str, T]) -> T:
    """Return a thing by its name, or say which there are."""
    if name not in known:
        raise OptionError(f"There is no {what} {name!r}; there are {', '.join(known)}.")
    return known[name]


def measured(predicted: npt.ArrayLike, y: npt.ArrayLike) -> dict[str, float | None]:
    """Return every metric of class probabilities beside the true labels.

    The normalised cross-entropy is the cross-entropy divided by that of the constant that knows
    these rows' own class frequencies: below 1, the model says more than the frequencies do. The
    other formulas are those of :mod:`halfseen.metrics`.
    """
    array, truth = predictions(predicted, y)
    present = np.unique(truth)
    cross_entropy = float(row_losses(array, truth).mean())
    share = np.bincount(truth, minlength=array.shape[1]) / len(truth)
    uncertainty = -float(np.sum(share[share > 0] * np.log(share[share > 0])))
    return {
        "accuracy": accuracy(array, truth),
        "macro_f1": float(f1_score(truth, array.argmax(axis=1), labels=present, average="macro")),
        "cross_entropy": cross_entropy,
        "normalised_cross_entropy": cross_entropy / uncertainty if uncertainty else None,
        "auc": auc(array, truth),
        "calibration_error": expected_calibration_error(array, truth),
    }
