"""How much each member counts: weighted sums of log-probabilities, fitted on rows held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import log_softmax

from halfseen.arrays import Floats

__all__ = ["Weights", "across_halves", "fit_bias", "fit_weights"]

Matrix = npt.NDArray[Any]
Labels = npt.NDArray[np.int64]

RIDGE_ROWS = 100.0
"""How many rows the starting weights count for: under shift the source is a partial witness."""
BIAS_RIDGE = 5.0
"""The ridge on what is added to each class's logarithm: about so many rows that speak for none."""


@dataclass(frozen=True)
class Weights:
    """The weight of each member, and the scale of log-probabilities of complete rows.

    `bias`, where there is one, is added to the logarithm of each class's probability.

    Examples
    --------
    >>> one = np.log([[0.9, 0.1]])
    >>> other = np.log([[0.5, 0.5]])
    >>> np.exp(Weights((1.0, 0.5)).combined([one, other])).round(3)
    array([[0.9, 0.1]])
    """

    members: tuple[float, ...]
    complete: float = 1.0
    bias: tuple[float, ...] = ()

    def combined(self, log_probabilities: Sequence[Floats]) -> Floats:
        """Return the log-probabilities of the weighted sum of what the members say."""
        if self.members == (1.0,):
            return self._shifted(log_probabilities[0])
        return self._shifted(_combined(np.array(self.members), np.stack(log_probabilities)))

    def tempered(self, log_probabilities: Floats) -> Floats:
        """Return log-probabilities of rows whose missing block is there, at their own scale."""
        if self.complete == 1.0:
            return self._shifted(log_probabilities)
        return self._shifted(log_softmax(self.complete * log_probabilities, axis=1))

    def _shifted(self, log_probabilities: Floats) -> Floats:
        if not self.bias:
            return log_probabilities
        shifted: Floats = log_softmax(log_probabilities + np.array(self.bias), axis=1)
        return shifted


def fit_weights(
    log_probabilities: Sequence[Floats],
    labels: Labels,
    start: Sequence[float],
    row_weights: Floats | None = None,
) -> tuple[float, ...]:
    """Return the weights, of sum one at most, with the highest likelihood on held-out rows.

    Members can be cooled and not sharpened, alone or together: on a shifted target sureness is
    the costlier mistake. A ridge of some rows' strength holds the weights at `start` where few
    rows speak.

    Parameters
    ----------
    log_probabilities
        What each member says of rows that it was not fitted on.
    labels
        Their classes.
    start
        The weights that no row speaks against.
    row_weights
        How much each row counts, of mean one; equally by default.

    Examples
    --------
    Where the first member knows nothing, the second is left as it is:

    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 2, 500)
    >>> noise, logits = rng.normal(size=(500, 2)), np.zeros((500, 2))
    >>> logits[:, 1] = np.where(rng.random(500) < 0.75, 1.1, -1.1) * np.where(labels, 1, -1)
    >>> first, second = fit_weights([noise, logits], labels, start=[0.0, 1.0])
    >>> first < 0.1, abs(second - 1) < 0.2
    (True, True)
    """
    experts, begin = np.stack(log_probabilities), np.array(start, dtype=np.float64)
    rows = np.arange(len(labels))
    counts = np.ones(len(labels)) if row_weights is None else row_weights

    def loss(weights: Matrix) -> tuple[float, Matrix]:
        fitted = _combined(weights, experts)
        error = np.exp(fitted)
        error[rows, labels] -= 1.0
        error *= counts[:, None]
        ridge = RIDGE_ROWS * (weights - begin) / len(labels)
        value = -(counts * fitted[rows, labels]).mean() + (ridge * (weights - begin)).sum() / 2
        return float(value), (experts * error).sum(axis=(1, 2)) / len(labels) + ridge

    found = minimize(
        loss,
        begin,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(begin),
        constraints={
            "type": "ineq",
            "fun": lambda w: 1.0 - w.sum(),
            "jac": lambda w: -np.ones_like(w),
        },
    )
    best = np.clip(found.x, 0.0, 1.0)
    return tuple(float(weight) for weight in best / max(1.0, best.sum()))


def fit_bias(log_probabilities: Floats, labels: Labels) -> tuple[float, ...]:
    """Return what to add to each class's logarithm for the highest likelihood, held at zero.

    Where p(x | y) is the same in both domains, this is the logarithm of how much more frequent
    the class is on the target.

    Examples
    --------
    Answers that know no class, and a first class that is three times as frequent:

    >>> bias = fit_bias(np.full((4000, 2), np.log(0.5)), np.repeat([0, 1], [3000, 1000]))
    >>> round(bias[0] - bias[1], 1)  # log 3
    1.1
    """
    rows, classes = np.arange(len(labels)), log_probabilities.shape[1]

    def loss(bias: Matrix) -> tuple[float, Matrix]:
        fitted = log_softmax(log_probabilities + bias, axis=1)
        error = np.exp(fitted)
        error[rows, labels] -= 1.0
        value = BIAS_RIDGE * (bias @ bias) / 2 - fitted[rows, labels].sum()
        return float(value), error.sum(axis=0) + BIAS_RIDGE * bias

    found = minimize(loss, np.zeros(classes), jac=True, method="BFGS").x
    return tuple(float(value) for value in found - found.mean())


def across_halves(
    log_probabilities: Sequence[Floats],
    labels: Labels,
    start: Sequence[float],
    row_weights: Floats | None = None,
) -> Floats:
    """Return combined log-probabilities of held-out rows; each half by the other half's weights."""
    dealt = np.random.default_rng(0).permutation(len(labels))
    halves = dealt[::2], dealt[1::2]
    combined = np.empty_like(log_probabilities[0])
    for rows, others in (halves, halves[::-1]):
        fitted = others if len(others) else rows
        counts = None if row_weights is None else row_weights[fitted]
        weights = fit_weights([m[fitted] for m in log_probabilities], labels[fitted], start, counts)
        combined[rows] = _combined(
            np.array(weights), np.stack([m[rows] for m in log_probabilities])
        )
    return combined


def _combined(weights: Matrix, experts: Matrix) -> Floats:
    """Weigh log-probabilities of shape (members, rows, classes)."""
    summed: Floats = log_softmax(np.tensordot(weights, experts, 1), axis=1)
    return summed
