"""Whether a conditional distribution is the same in two groups where both sides are known.

The paper's third assumption is that p(z2 | z1) is the same in both domains, the fourth that
p(y | ẑ) is. On the target neither z2 nor y is known, so neither can be tested there. They can be
tested between two groups of source rows: a rehearsal slice and the rest, or groups that are known
to differ as the domains do (another hospital, another month).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.preprocessing import StandardScaler

from halfseen.arrays import Floats, labels, same_length
from halfseen.errors import InputError
from halfseen.evidence.density_ratio import compact_domain_classifier, stacked, two_domains
from halfseen.splitting import folds

__all__ = ["Change", "conditional_change", "posterior_change"]

SIGNIFICANCE = 0.01
"""Largest p-value at which a conditional is called changed."""
NEGLIGIBLE_VALUE = 0.1
"""Changes of a mean by less than this many standard deviations are let pass."""
NEGLIGIBLE_PROBABILITY = 0.03
"""Changes of a class probability by less than this are let pass."""
_MOST_COMPONENTS = 8
_FOLDS = 3


@dataclass(frozen=True)
class Change:
    """How much a conditional mean differs between two groups.

    Parameters
    ----------
    largest
        The largest change over the values' directions: in standard deviations for values, as a
        probability for classes.
    p_value
        Chance of such a change if the conditional were the same, corrected for the number of
        directions.
    negligible
        Changes below this are let pass, however significant.
    """

    largest: float
    p_value: float
    negligible: float

    @property
    def changed(self) -> bool:
        """Whether the change is neither by chance nor negligible."""
        return self.p_value < SIGNIFICANCE and self.largest > self.negligible


def conditional_change(
    given: npt.ArrayLike,
    values: npt.ArrayLike,
    other_given: npt.ArrayLike,
    other_values: npt.ArrayLike,
    *,
    random_state: int = 0,
) -> Change:
    r"""Test whether the mean of `values` given `given` differs between two groups (assumption 3).

    With d the group of a row, the generalised covariance measure is the mean of

    .. math:: R_i = (d_i - \hat E[d \mid g_i]) \, (v_i - \hat E[v \mid g_i]) ,

    both expectations fitted on other folds. It is zero if v does not depend on d given g, and
    :math:`\sqrt n \, \bar R / \mathrm{sd}(R)` is then standard normal. The change reported is
    :math:`\sum R_i / \sum (d_i - \hat E[d \mid g_i])^2`. Wide values are reduced to their eight
    leading principal components, each scaled to unit variance; the p-value is corrected for
    their number. A change that leaves every mean where it was is not seen.

    Parameters
    ----------
    given, values
        Rows of one group: z1 and z2, or x1 and x2.
    other_given, other_values
        Rows of the other group.
    random_state
        Seed of the folds and trees.

    References
    ----------
    R. D. Shah, J. Peters, "The hardness of conditional independence testing and the generalised
    covariance measure", Annals of Statistics 48(3), 2020.

    P. M. Robinson, "Root-N-consistent semiparametric regression", Econometrica 56, 1988.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x1, other = rng.normal(size=(600, 2)), rng.normal(size=(600, 2)) + 0.5
    >>> def x2(x1, moved=0.0):
    ...     return x1[:, :1] + rng.normal(size=(600, 1)) + moved
    >>> conditional_change(x1, x2(x1), other, x2(other)).changed
    False
    >>> conditional_change(x1, x2(x1), other, x2(other, moved=1.0)).changed
    True
    """
    first, second = two_domains(values, other_values, least=2 * _FOLDS)
    value = np.vstack([first, second])
    varying = value.std(axis=0) > 0
    if not varying.any():
        raise InputError("Every value is constant in both groups: there is nothing to compare.")
    scaled = StandardScaler().fit_transform(value[:, varying])
    if scaled.shape[1] > 1:
        components = min(_MOST_COMPONENTS, *scaled.shape)
        whitened = PCA(components, whiten=True, random_state=random_state)
        scaled = whitened.fit_transform(scaled)
    return _change(given, other_given, scaled, len(first), NEGLIGIBLE_VALUE, random_state)


def posterior_change(
    given: npt.ArrayLike,
    y: npt.ArrayLike,
    other_given: npt.ArrayLike,
    other_y: npt.ArrayLike,
    *,
    random_state: int = 0,
) -> Change:
    """Test whether class probabilities given `given` differ between two groups (assumption 4).

    As :func:`conditional_change`, with an indicator of each class as the values and the change
    as a probability.

    Parameters
    ----------
    given, y
        Rows of one group, latents ẑ or inputs, and their classes as positions from 0.
    other_given, other_y
        Of the other group.
    random_state
        Seed of the folds and trees.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z, other = rng.normal(size=(800, 1)), rng.normal(size=(800, 1)) + 0.5
    >>> y, other_y = ((k + rng.normal(size=k.shape) > 0.5)[:, 0] for k in (z, other))
    >>> posterior_change(z, y, other, other_y).changed
    False
    >>> posterior_change(z, y, other, ~other_y).changed
    True
    """
    classes = int(max(np.max(y), np.max(other_y))) + 1
    first, second = labels("y", y, classes), labels("other_y", other_y, classes)
    indicator = np.eye(classes)[np.concatenate([first, second])]
    indicator = indicator[:, indicator.std(axis=0) > 0]
    if indicator.shape[1] < 2:
        raise InputError("Both groups hold one class alone: there is nothing to compare.")
    if indicator.shape[1] == 2:
        indicator = indicator[:, 1:]  # the other column mirrors it
    return _change(given, other_given, indicator, len(first), NEGLIGIBLE_PROBABILITY, random_state)


def _change(
    given: npt.ArrayLike,
    other_given: npt.ArrayLike,
    value: Floats,
    rows: int,
    negligible: float,
    random_state: int,
) -> Change:
    known, domain = stacked(*two_domains(given, other_given, least=2 * _FOLDS))
    same_length(given=known, values=value)
    if np.count_nonzero(domain == 0) != rows:
        raise InputError(
            f"The first group has {np.count_nonzero(domain == 0)} rows of one side and {rows} of "
            "the other: each row needs both."
        )
    divided = folds(domain, _FOLDS, random_state)
    surprise = np.empty(len(known))
    residual = np.empty_like(value)
    for fitting, testing in divided.split(known, domain):
        classifier = compact_domain_classifier(known.shape[1], len(fitting))
        classifier.fit(known[fitting], domain[fitting])
        surprise[testing] = domain[testing] - classifier.predict_proba(known[testing])[:, 1]
        expected = _regressed(known[fitting], value[fitting], known[testing], random_state)
        residual[testing] = value[testing] - expected
    product = surprise[:, None] * residual
    statistic = np.sqrt(len(product)) * product.mean(axis=0) / product.std(axis=0)
    p_value = 2 * stats.norm.sf(np.abs(statistic).max()) * value.shape[1]
    change = np.abs(product.sum(axis=0)) / np.square(surprise).sum()
    return Change(float(change.max()), float(min(1.0, p_value)), negligible)


def _regressed(known: Floats, value: Floats, asked: Floats, random_state: int) -> Floats:
    """Predict values by a ridge, and by trees what it leaves."""
    scaler = StandardScaler().fit(known)
    known, asked = scaler.transform(known), scaler.transform(asked)
    linear = RidgeCV(alphas=np.logspace(-1, 4, 6)).fit(known, value)
    predicted: Floats = np.asarray(linear.predict(asked)).reshape(len(asked), -1)
    left = value - np.asarray(linear.predict(known)).reshape(value.shape)
    for k in range(value.shape[1]):
        trees = HistGradientBoostingRegressor(
            max_iter=40, learning_rate=0.05, min_samples_leaf=30, random_state=random_state
        )
        predicted[:, k] += trees.fit(known, left[:, k]).predict(asked)
    return predicted
