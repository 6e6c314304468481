"""Is this the problem that imputation under shift can solve? Checked before any training.

Two conditions can be checked on inputs alone. Imputation rests on p(x2 | x1), so x2 must depend
on x1 at all; and what is learned on the source reaches the target only where the domains overlap
in x1. That p(x2 | x1) and p(y | x1, x2) are the same in both domains cannot be seen in them: the
target has neither x2 nor y.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import train_test_split
from sklearn.multioutput import MultiOutputRegressor
from sklearn.preprocessing import StandardScaler

from halfseen.arrays import Floats, matrix, same_length
from halfseen.errors import InputError
from halfseen.evidence.features import DomainSeparation, domain_separation

__all__ = ["Dependence", "ImputationVerdict", "imputation_verdict", "missing_block_dependence"]

SIGNIFICANCE = 0.01
"""Largest p-value at which the missing block is called dependent on the observed one."""
LEAST_R2 = 0.01
"""Explaining less than this share of x2 is not worth imputing it, however significant."""
LEAST_OVERLAP = 0.05
"""Below this hardly a source row is like any of the target's."""
PERMUTATIONS = 999
FEWEST_ROWS = 20
MOST_COMPONENTS = 8
"""Boosting predicts this many principal components of x2, each with its own trees."""

Verdict = Literal[
    "imputation can help here",
    "the missing block is unrelated to what you observe: ignore it",
    "the domains barely overlap",
]


@dataclass(frozen=True)
class Dependence:
    """How well the missing block is predicted from the observed one, on held-out source rows.

    `r2` is the share of the variance of the standardised x2 that the better of two regressions
    explains (zero or less: nothing), `p_value` the chance of it if x2 did not depend on x1.
    """

    r2: float
    p_value: float
    r2_by_regression: dict[str, float]


@dataclass(frozen=True)
class ImputationVerdict:
    """What the source and the target's x1 say about imputing x2, and the figures behind it."""

    verdict: Verdict
    dependence: Dependence
    separation: DomainSeparation

    @property
    def imputation_can_help(self) -> bool:
        """Whether no check spoke against it."""
        return self.verdict == "imputation can help here"

    @property
    def evidence(self) -> str:
        """The figures behind the verdict, as a sentence."""
        return (
            f"On held-out source rows x1 explains {max(self.dependence.r2, 0.0):.1%} of x2 "
            f"(p = {self.dependence.p_value:.3f}); a classifier tells the domains apart in x1 "
            f"with an AUC of {self.separation.auc:.3f}, and on the target the source rows are "
            f"worth {self.separation.overlap:.1%} of their number."
        )


def imputation_verdict(
    x1_source: npt.ArrayLike,
    x2_source: npt.ArrayLike,
    x1_target: npt.ArrayLike,
    *,
    random_state: int = 0,
) -> ImputationVerdict:
    """Say whether imputing the missing block can help here.

    A missing block that the observed one says nothing about is to be ignored, whatever the
    overlap, so this is said first; then whether the domains overlap in x1.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x1, x1_target = rng.normal(size=(600, 2)), rng.normal(size=(600, 2)) + 0.5
    >>> x2 = x1[:, :1] + rng.normal(size=(600, 1))
    >>> imputation_verdict(x1, x2, x1_target).verdict
    'imputation can help here'
    >>> imputation_verdict(x1, rng.normal(size=(600, 1)), x1_target).verdict
    'the missing block is unrelated to what you observe: ignore it'
    >>> imputation_verdict(x1, x2, x1_target + 6).verdict
    'the domains barely overlap'
    """
    dependence = missing_block_dependence(x1_source, x2_source, random_state=random_state)
    separation = domain_separation(x1_source, x1_target, random_state=random_state)
    verdict: Verdict
    if dependence.p_value > SIGNIFICANCE or dependence.r2 < LEAST_R2:
        verdict = "the missing block is unrelated to what you observe: ignore it"
    elif separation.overlap < LEAST_OVERLAP:
        verdict = "the domains barely overlap"
    else:
        verdict = "imputation can help here"
    return ImputationVerdict(verdict, dependence, separation)


def missing_block_dependence(
    x1: npt.ArrayLike, x2: npt.ArrayLike, *, random_state: int = 0
) -> Dependence:
    r"""Test whether the missing block x2 depends on the observed block x1 at all.

    A ridge regression, and gradient boosting of eight principal components of x2, are fitted on
    half of the rows; on the others :math:`R^2 = 1 - \sum_i \| x_{2,i} - \hat x_2(x_{1,i}) \|^2 /
    \sum_i \| x_{2,i} - \bar x_2 \|^2`, with x2 standardised and its mean taken from the first
    half. The p-value is the share of permutations of the held-out x2 whose R² is as large: exact
    for independent blocks, because the fitted regression knows none of those rows. The smaller
    one counts, doubled.

    References
    ----------
    P. Good, "Permutation, Parametric and Bootstrap Tests of Hypotheses", Springer 2005.

    Examples
    --------
    A parabola: no linear trace, and trees find it.

    >>> rng = np.random.default_rng(0)
    >>> x1 = rng.normal(size=(1000, 1))
    >>> found = missing_block_dependence(x1, x1**2 + 0.1 * rng.normal(size=(1000, 1)))
    >>> found.r2_by_regression["ridge"] < 0.1 < 0.7 < found.r2_by_regression["boosting"]
    True
    >>> found.p_value < 0.01
    True
    """
    first, second = matrix("x1", x1), matrix("x2", x2)
    same_length(x1=first, x2=second)
    if len(first) < FEWEST_ROWS:
        raise InputError(
            f"{len(first)} rows are too few to fit and to test a regression; give at least "
            f"{FEWEST_ROWS}."
        )
    fitting, testing = train_test_split(
        np.arange(len(first)), test_size=0.5, random_state=random_state
    )
    varying = second[fitting].std(axis=0) > 0
    if not varying.any():
        raise InputError(
            "Every column of x2 is constant on the source: there is nothing to impute; drop it."
        )
    inputs = StandardScaler().fit(first[fitting]).transform(first)
    values = StandardScaler().fit(second[fitting][:, varying]).transform(second[:, varying])
    rng = np.random.default_rng(random_state)
    truth, r2, p_values = values[testing], {}, []
    for name, predict in (("ridge", _ridge), ("boosting", _boosting)):
        predicted = predict(inputs[fitting], values[fitting], inputs[testing], random_state)
        r2[name] = _explained(truth, predicted)
        by_chance = [_explained(rng.permutation(truth), predicted) for _ in range(PERMUTATIONS)]
        p_values.append((1 + sum(r >= r2[name] for r in by_chance)) / (1 + PERMUTATIONS))
    return Dependence(max(r2.values()), min(1.0, len(p_values) * min(p_values)), r2)


def _ridge(x1: Floats, x2: Floats, asked: Floats, random_state: int) -> Floats:
    model = RidgeCV(alphas=np.logspace(-2, 4, 7)).fit(x1, x2)
    return np.asarray(model.predict(asked)).reshape(len(asked), -1)


def _boosting(x1: Floats, x2: Floats, asked: Floats, random_state: int) -> Floats:
    components = PCA(min(MOST_COMPONENTS, *x2.shape), random_state=random_state).fit(x2)
    trees = HistGradientBoostingRegressor(max_iter=50, random_state=random_state)
    model: Any = MultiOutputRegressor(trees).fit(x1, components.transform(x2))
    predicted: Floats = components.inverse_transform(model.predict(asked))
    return predicted


def _explained(truth: Floats, predicted: Floats) -> float:
    """Return 1 - SSE / SST; `truth` is centred on the fitting rows."""
    return float(1.0 - np.square(truth - predicted).sum() / np.square(truth).sum())
