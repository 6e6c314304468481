"""How much each member counts: shares of a mixture, fitted on rows held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp

from halfseen.arrays import Floats

__all__ = ["Weights", "across_halves", "fit_bias", "fit_weights"]

Labels = npt.NDArray[Any]

PRIOR_ROWS = 30.0
"""How many rows equal shares count for: under shift the source is a partial witness."""
BIAS_RIDGE = 5.0
"""The ridge on what is added to each class's logarithm: about so many rows that speak for none."""
TURNS = 200
"""Steps of expectation and maximisation; the shares of a few members settle long before."""


@dataclass(frozen=True)
class Weights:
    """The share of each member in the answer, p(y | x1) = Σ w_m p_m(y | x1).

    A mixture and not a product of opinions: on a shifted target one member may run far beyond what
    it was fitted on, and in a product its sureness would outvote the others. Where columns have
    drifted, members speak under maps of which most are wrong and then mostly unsure: there the
    product Π p_m^w_m, which lets the sure ones speak, is the better answer.

    Parameters
    ----------
    members
        The shares, of sum one.
    product
        Whether opinions are multiplied instead of mixed.
    bias
        What is added to the logarithm of each class's probability, where target labels said so.

    Examples
    --------
    >>> sure, torn = np.log([[0.9, 0.1]]), np.log([[0.5, 0.5]])
    >>> np.exp(Weights((0.5, 0.5)).combined([sure, torn])).round(3)
    array([[0.7, 0.3]])
    """

    members: tuple[float, ...]
    product: bool = False
    bias: tuple[float, ...] = ()

    def combined(self, log_probabilities: Sequence[Floats]) -> Floats:
        """Return the log-probabilities of what the members say together."""
        together = self._together(log_probabilities)
        if not self.bias:
            return together
        shifted: Floats = log_softmax(together + np.array(self.bias), axis=1)
        return shifted

    def _together(self, log_probabilities: Sequence[Floats]) -> Floats:
        if self.members == (1.0,):
            return log_probabilities[0]
        answers = np.stack(log_probabilities)
        if self.product:
            return np.asarray(log_softmax(np.tensordot(self.members, answers, 1), axis=1))
        return _mixed(np.array(self.members), answers)


def fit_weights(
    log_probabilities: Sequence[Floats], labels: Labels, start: Sequence[float] | None = None
) -> tuple[float, ...]:
    """Return the shares with the highest likelihood on held-out rows, held near equal ones.

    Expectation and maximisation with :data:`PRIOR_ROWS` rows that every member explains equally
    well: where few rows speak, none is left out.

    Parameters
    ----------
    log_probabilities
        What each member says of rows that it was not fitted on.
    labels
        Their classes.
    start
        The shares to be held near, instead of equal ones.

    Examples
    --------
    A member that knows nothing gets little:

    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 2, 500)
    >>> right = rng.random(500) < 0.8
    >>> knows = np.log(np.where((labels == np.arange(2)[:, None]) == right, 0.8, 0.2)).T
    >>> torn = np.log(np.full((500, 2), 0.5))
    >>> first, second = fit_weights([torn, knows], labels)
    >>> first < 0.3 < second, round(first + second, 6)
    (True, 1.0)
    """
    rows = np.arange(len(labels))
    likelihood = np.exp(np.stack([answer[rows, labels] for answer in log_probabilities]))
    likelihood = np.maximum(likelihood, 1e-300)
    count = len(likelihood)
    near = np.full(count, 1.0 / count) if start is None else np.array(start) / np.sum(start)
    shares = near
    for _ in range(TURNS):
        explained = shares[:, None] * likelihood
        explained /= explained.sum(axis=0)
        shares = explained.sum(axis=1) + PRIOR_ROWS * near
        shares /= shares.sum()
    return tuple(float(share) for share in shares)


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

    def loss(bias: Floats) -> tuple[float, Floats]:
        fitted = log_softmax(log_probabilities + bias, axis=1)
        error = np.exp(fitted)
        error[rows, labels] -= 1.0
        value = BIAS_RIDGE * (bias @ bias) / 2 - fitted[rows, labels].sum()
        return float(value), error.sum(axis=0) + BIAS_RIDGE * bias

    found = minimize(loss, np.zeros(classes), jac=True, method="BFGS").x
    return tuple(float(value) for value in found - found.mean())


def across_halves(log_probabilities: Sequence[Floats], labels: Labels) -> Floats:
    """Return the mixture's log-probabilities of held-out rows; each half by the other's shares."""
    dealt = np.random.default_rng(0).permutation(len(labels))
    halves = dealt[::2], dealt[1::2]
    combined = np.empty_like(log_probabilities[0])
    for rows, others in (halves, halves[::-1]):
        fitted = others if len(others) else rows
        shares = fit_weights([m[fitted] for m in log_probabilities], labels[fitted])
        combined[rows] = _mixed(np.array(shares), np.stack([m[rows] for m in log_probabilities]))
    return combined


def _mixed(shares: Floats, log_probabilities: Floats) -> Floats:
    """Mix log-probabilities of shape (members, rows, classes)."""
    mixed: Floats = logsumexp(log_probabilities, axis=0, b=shares[:, None, None])
    return mixed
