"""How much of a model's answer is its networks', and how much logistic regression's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import log_softmax

__all__ = ["Blend", "fit_blend", "fit_scale"]

Matrix = npt.NDArray[Any]
Labels = npt.NDArray[np.int64]

RIDGE_ROWS = 10.0


@dataclass(frozen=True)
class Blend:
    """How much the networks' logits and those of the regression count."""

    network: float
    regression: float

    def logits(self, network: Matrix, regression: Matrix) -> npt.NDArray[np.float64]:
        """Return the blended logits, as log-probabilities."""
        mixed = self.network * network + self.regression * regression
        normed: npt.NDArray[np.float64] = log_softmax(mixed, axis=1)
        return normed


def fit_blend(network: Matrix, regression: Matrix, labels: Labels) -> Blend:
    """Return the weights between zero and one with the highest likelihood on held-out rows.

    Both can be cooled and neither sharpened: on a shifted target sureness is the costlier
    mistake. A ridge of ten rows' strength holds them at the regression alone where few rows
    speak.

    Parameters
    ----------
    network, regression
        Logits of rows that neither was fitted on, up to a constant per row.
    labels
        Their classes.

    Examples
    --------
    Where the networks know nothing, the regression is left as it is:

    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 2, 500)
    >>> noise, logits = rng.normal(size=(500, 2)), np.zeros((500, 2))
    >>> logits[:, 1] = np.where(rng.random(500) < 0.75, 1.1, -1.1) * np.where(labels, 1, -1)
    >>> blend = fit_blend(noise, logits, labels)
    >>> blend.network < 0.1, abs(blend.regression - 1) < 0.2
    (True, True)
    """
    weights = _likeliest(np.stack([network, regression]), labels, np.array([0.0, 1.0]))
    return Blend(float(weights[0]), float(weights[1]))


def fit_scale(network: Matrix, labels: Labels) -> float:
    """Return the factor (one over the temperature) that makes held-out logits most likely."""
    return float(_likeliest(network[None], labels, np.array([1.0]))[0])


def _likeliest(experts: Matrix, labels: Labels, start: Matrix) -> Matrix:
    """Minimise the mean cross-entropy of weighted sums of logits, of shape (experts, rows, k)."""
    rows = np.arange(len(labels))

    def loss(weights: Matrix) -> tuple[float, Matrix]:
        fitted = log_softmax(np.tensordot(weights, experts, 1), axis=1)
        error = np.exp(fitted)
        error[rows, labels] -= 1.0
        ridge = RIDGE_ROWS * (weights - start) / len(labels)
        value = -fitted[rows, labels].mean() + (ridge * (weights - start)).sum() / 2
        return float(value), (experts * error).sum(axis=(1, 2)) / len(labels) + ridge

    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(0.0, 1.0)] * len(start))
    weights: Matrix = found.x
    return weights
