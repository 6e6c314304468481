"""Penalised logistic regression: the baseline that every model of a table must stand beside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression

from halfseen.networks.training.scaling import likelihoods

__all__ = ["Regression", "fit_regression"]

Matrix = npt.NDArray[Any]
Labels = npt.NDArray[np.int64]

PENALTIES = (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)
"""scikit-learn's C: the larger, the weaker the penalty."""
MOST_REGRESSED = 100_000
"""Rows that logistic regression is fitted on: more would not change what it says."""
MOST_COMPARED = 5_000
"""Rows among which its penalty is chosen."""


@dataclass(frozen=True, eq=False)
class Regression:
    """Multinomial logistic regression: the logits W x + b."""

    weight: npt.NDArray[np.float64]
    bias: npt.NDArray[np.float64]

    def logits(self, rows: Matrix) -> npt.NDArray[np.float64]:
        """Return one row of logits for each row of inputs."""
        values: npt.NDArray[np.float64] = rows @ self.weight.T + self.bias
        return values


def fit_regression(rows: Matrix, labels: Labels, n_classes: int) -> Regression:
    """Fit logistic regression with an L2 penalty chosen by likelihood over five folds.

    It is the strongest penalty within one standard error of the best: the folds cannot tell the
    two apart, and on a shifted target the simpler one is the safer. A class that the rows lack
    gets the odds of half a row.
    """
    some = np.random.default_rng(0).permutation(len(labels))[:MOST_REGRESSED]
    rows, labels = rows[some].astype(np.float64), labels[some]
    present = np.unique(labels)
    weight = np.zeros((n_classes, rows.shape[1]))
    bias = np.full(n_classes, np.log(0.5 / len(labels)))
    if len(present) == 1:
        bias[present] = 0.0
        return Regression(weight, bias)
    classifier = LogisticRegression(C=_penalty(rows, labels), max_iter=1000)
    classifier.fit(rows, labels)
    if len(present) == 2:  # scikit-learn keeps the difference of the two alone
        weight[present] = np.vstack([-classifier.coef_, classifier.coef_]) / 2
        bias[present] = np.concatenate([-classifier.intercept_, classifier.intercept_]) / 2
    else:
        weight[present], bias[present] = classifier.coef_, classifier.intercept_
    return Regression(weight, bias)


def _penalty(rows: Matrix, labels: Labels) -> float:
    """Return scikit-learn's C by the one-standard-error rule.

    References
    ----------
    L. Breiman, J. Friedman, R. Olshen, C. Stone, "Classification and regression trees", 1984.
    """
    some = slice(MOST_COMPARED)  # the rows were shuffled
    if np.unique(labels[some], return_counts=True)[1].min() < 2:
        return 0.01  # nothing to compare on
    found = likelihoods(rows[some], labels[some], PENALTIES)
    mean, best = found.mean(1), found.mean(1).argmax()
    error = found[best].std(ddof=1) / np.sqrt(found.shape[1])
    return PENALTIES[int(np.flatnonzero(mean >= mean[best] - error)[0])]
