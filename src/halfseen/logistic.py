"""Logistic regression with an L2 penalty, and how likely rows are that were held out of it.

It is scikit-learn's, at the same optimum (a test), without what it checks at each of the hundreds
of small fits that choosing a penalty takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.model_selection import StratifiedKFold

from halfseen.arrays import Floats

SMALLEST = 1e-12
FOLDS = 5


def fit_logistic(
    rows: Floats,
    shares: Floats,
    penalty: float,
    *,
    start: Floats | None = None,
    tolerance: float = 1e-4,
) -> Floats:
    r"""Return W and, as last column, b: a row for each class, of two classes for the second alone.

    .. math:: \min_{W, b} \; -\sum_{i, k} s_{ik} \log p_k(x_i) + \frac{1}{2 C} \|W\|^2

    `shares` s say how much a row counts for each class, 0 and 1 for plain labels; the larger the
    `penalty` C, the weaker it is. `start` is what another penalty gave, and `tolerance` the largest
    slope that is left of the mean over rows.
    """
    outputs = shares.shape[1] if shares.shape[1] > 2 else 1
    whole = np.hstack([rows, np.ones((len(rows), 1))])
    counts = shares.sum(axis=1, keepdims=True)
    every = 1.0 / counts.sum()

    def derivatives(flat: Floats) -> tuple[float, Floats]:
        weight = flat.reshape(outputs, -1)
        log_probability = log_softmax(_of_all_classes(whole @ weight.T), axis=1)
        slopes = weight[:, :-1] / penalty
        loss = 0.5 * (weight[:, :-1] * slopes).sum() - (shares * log_probability).sum()
        gradient = (np.exp(log_probability) * counts - shares)[:, -outputs:].T @ whole
        gradient[:, :-1] += slopes
        return every * float(loss), every * gradient.ravel()

    found = minimize(
        derivatives,
        np.zeros(outputs * whole.shape[1]) if start is None else start.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 1000, "gtol": tolerance, "ftol": 1e-14, "maxls": 50},
    )
    weight: Floats = found.x.reshape(outputs, -1)
    return weight


def logits(weight: Floats, rows: Floats) -> Floats:
    """Return the logits that weights of :func:`fit_logistic` give rows: one for each class."""
    return _of_all_classes(rows @ weight[:, :-1].T + weight[:, -1])


def likelihoods(
    rows: Floats, labels: npt.NDArray[Any], penalties: Sequence[float], folds: int = FOLDS
) -> Floats:
    """Return the mean log-likelihood of each fold under each penalty: (penalties, folds).

    Every class needs two rows at least; there are as many folds as the rarest class has rows, if
    it has fewer than asked for.
    """
    classes, positions, counts = np.unique(labels, return_inverse=True, return_counts=True)
    shares = np.eye(len(classes))[positions]
    split = StratifiedKFold(min(folds, int(counts.min())), shuffle=True, random_state=0)
    columns = []
    for training, held_out in split.split(rows, labels):
        column, weight = [], None
        # Each penalty starts where the one before ended: they are compared, not kept.
        for penalty in penalties:
            weight = fit_logistic(
                rows[training], shares[training], penalty, start=weight, tolerance=1e-3
            )
            said = log_softmax(logits(weight, rows[held_out]), axis=1)
            column.append(np.maximum(said, np.log(SMALLEST))[shares[held_out] > 0].mean())
        columns.append(column)
    return np.array(columns).T


def _of_all_classes(known: Floats) -> Floats:
    """Return a logit for each class: of two, the first one's is zero."""
    return np.hstack([np.zeros_like(known), known]) if known.shape[1] == 1 else known
