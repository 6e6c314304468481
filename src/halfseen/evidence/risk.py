"""Comparing models without target labels: risks from weighted source losses, and other scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import stats
from scipy.special import entr

from halfseen.arrays import Floats, probabilities, same_length, vector
from halfseen.errors import InputError, OptionError
from halfseen.evidence.density_ratio import check_weights, effective_sample_size


@dataclass(frozen=True)
class RiskEstimate:
    """An estimate of the mean loss on the target; lower is better.

    Its interval covers the sampling of source rows, not an error in the weights: below about a
    hundred effective rows, or a few per cent of the rows, do not trust it.
    """

    risk: float
    interval: tuple[float, float]
    effective_sample_size: float
    standard_error: float = 0.0

    def widened(self, *errors: float, level: float) -> tuple[float, float]:
        """Return an interval that covers further errors, given as standard deviations.

        >>> found = source_validation([0.0, 1.0] * 50)
        >>> [round(end, 3) for end in found.widened(0.1, level=0.9)]
        [0.316, 0.684]
        """
        total = math.hypot(self.standard_error, *errors)
        reach = float(stats.norm.ppf(0.5 + level / 2.0)) * total
        return self.risk - reach, self.risk + reach


def source_validation(loss: npt.ArrayLike, *, level: float = 0.95) -> RiskEstimate:
    """Return the plain mean of held-out source losses: the risk where nothing has shifted."""
    loss = vector("loss", loss)
    return importance_weighted_validation(loss, np.ones_like(loss), level=level)


def importance_weighted_validation(
    loss: npt.ArrayLike, weight: npt.ArrayLike, *, level: float = 0.95
) -> RiskEstimate:
    r"""Estimate the target risk by the weighted mean of held-out source losses.

    .. math:: \hat R = \frac{1}{n} \sum_i w_i \ell_i , \qquad w = p_T / p_S ,

    with Student's interval. Unbiased when the weights, from
    :func:`halfseen.evidence.fit_density_ratio` on other rows, are exact and p(y | x) is the same
    in both domains.

    References
    ----------
    M. Sugiyama, M. Krauledat, K.-R. Müller, "Covariate shift adaptation by importance weighted
    cross validation", JMLR 8, 2007.

    Examples
    --------
    >>> estimate = importance_weighted_validation([0.0, 1.0, 1.0, 0.0], [0.5, 1.5, 1.5, 0.5])
    >>> estimate.risk, round(estimate.effective_sample_size, 6)
    (0.75, 3.2)
    """
    loss, weight = _checked(loss, weight, level)
    product = loss * weight
    error = float(product.std(ddof=1)) / np.sqrt(len(product))
    return _estimate(float(product.mean()), error, len(product) - 1, weight, level)


def deep_embedded_validation(
    loss: npt.ArrayLike, weight: npt.ArrayLike, *, level: float = 0.95
) -> RiskEstimate:
    r"""Estimate the target risk by weighted source losses with a control variate (DEV).

    The weights have mean one on the source: what their sample mean misses is taken off the
    estimate, in proportion to how the weighted loss moves with the weight,

    .. math:: \hat R = \overline{w \ell} + \eta \, (\overline{w} - 1) ,
              \qquad \eta = - \widehat{\mathrm{Cov}}(w \ell, w) / \widehat{\mathrm{Var}}(w) .

    This is the intercept of the least-squares line of :math:`w \ell` on :math:`w - 1`, and the
    interval is that intercept's, with the heteroscedasticity-consistent (HC3) standard error.
    Weights must not be scaled to mean one: nothing would be left to correct.

    References
    ----------
    K. You, X. Wang, M. Long, M. I. Jordan, "Towards accurate model selection in deep
    unsupervised domain adaptation", ICML 2019.

    J. G. MacKinnon, H. White, "Some heteroskedasticity-consistent covariance matrix estimators
    with improved finite sample properties", Journal of Econometrics 29, 1985.

    Examples
    --------
    A constant loss is its own risk (plain importance weighting says 0.95):

    >>> estimate = deep_embedded_validation([0.5] * 4, [0.4, 1.2, 2.0, 4.0])
    >>> round(estimate.risk, 12)
    0.5
    """
    loss, weight = _checked(loss, weight, level)
    if len(loss) < 3:
        raise InputError(
            f"Deep embedded validation fits a line to the products of loss and weight and needs "
            f"at least 3 rows; it was given {len(loss)}."
        )
    product, centred = loss * weight, weight - weight.mean()
    spread = float(np.square(centred).sum())
    if spread <= np.finfo(float).eps * float(np.square(weight).sum()):
        # Equal weights carry no control variate: the plain weighted mean remains.
        return importance_weighted_validation(loss, weight, level=level)
    slope = float(centred @ product) / spread  # -eta
    risk = float(product.mean()) - slope * float(weight.mean() - 1.0)
    # The intercept is a linear combination of the products, with these coefficients.
    coefficient = 1.0 / len(loss) - (weight.mean() - 1.0) * centred / spread
    leverage = 1.0 / len(loss) + np.square(centred) / spread
    residual = product - product.mean() - slope * centred
    # A row of leverage one determines its own fit and leaves no residual to inflate.
    inflated = residual / np.maximum(1.0 - leverage, 1e-12)
    error = float(np.sqrt(np.square(coefficient * inflated).sum()))
    return _estimate(risk, error, len(loss) - 2, weight, level)


def _checked(loss: npt.ArrayLike, weight: npt.ArrayLike, level: float) -> tuple[Floats, Floats]:
    losses, weights = vector("loss", loss), check_weights(weight)
    same_length(loss=losses, weight=weights)
    if len(losses) < 2:
        raise InputError("A risk with an interval needs at least 2 rows; it was given 1.")
    if not 0.0 < level < 1.0:
        raise OptionError(f"level={level} must lie strictly between 0 and 1, for instance 0.95.")
    return losses, weights


def _estimate(
    risk: float, error: float, freedom: int, weight: Floats, level: float
) -> RiskEstimate:
    reach = float(stats.t.ppf(0.5 + level / 2.0, freedom)) * error
    interval = risk - reach, risk + reach
    return RiskEstimate(risk, interval, effective_sample_size(weight), error)


def mutual_information_score(target_probabilities: npt.ArrayLike) -> float:
    r"""Return the information between row and predicted class, in nats. Higher is better.

    .. math:: H \Big( \frac{1}{n} \sum_i p_i \Big) - \frac{1}{n} \sum_i H(p_i) :

    predictions are to be certain one by one and spread over the classes together. The first
    term prefers balanced classes, which the target need not have.

    References
    ----------
    J. S. Bridle, A. J. R. Heading, D. J. C. MacKay, "Unsupervised classifiers, mutual
    information and 'phantom targets'", NIPS 1991.

    Examples
    --------
    >>> round(mutual_information_score([[1.0, 0.0], [0.0, 1.0]]), 4)  # log 2
    0.6931
    """
    array = probabilities("target_probabilities", target_probabilities)
    return float(entr(array.mean(axis=0)).sum() - entr(array).sum(axis=1).mean())


def agreement(probabilities_of_runs: npt.ArrayLike) -> float:
    """Return how often two independently seeded runs predict the same class. Higher is better.

    The mean over rows and pairs of runs of an array (runs, target rows, classes). Where the runs'
    ensemble is calibrated, the expected disagreement is the expected error; under shift it is too
    small, because runs share mistakes.

    References
    ----------
    Y. Jiang, V. Nagarajan, C. Baek, J. Z. Kolter, "Assessing generalization of SGD via
    disagreement", ICLR 2022.
    """
    try:
        runs = np.asarray(probabilities_of_runs, dtype=np.float64)
    except ValueError as error:
        raise InputError(
            "probabilities_of_runs must hold the same rows and classes for each run."
        ) from error
    if runs.ndim != 3 or len(runs) < 2:
        raise InputError(
            "probabilities_of_runs must have the shape (runs, rows, classes) with at least two "
            f"runs, but its shape is {runs.shape}."
        )
    chosen = np.stack([probabilities(f"run {r}", run).argmax(axis=1) for r, run in enumerate(runs)])
    votes = (chosen[:, :, None] == np.arange(runs.shape[2])).sum(axis=0)
    return float((votes * (votes - 1)).sum(axis=1).mean() / (len(runs) * (len(runs) - 1)))


@dataclass(frozen=True)
class Score:
    """One way to compare models: `function` takes what `needs` names and returns a number or risk.

    Examples
    --------
    >>> SCORES["dev"].best([0.3, 0.1, float("nan")]), SCORES["mutual_information"].best([0.3, 0.1])
    (1, 0)
    """

    name: str
    better: Literal["lower", "higher"]
    needs: tuple[str, ...]
    function: Callable[..., Any]

    def best(self, values: Sequence[float]) -> int:
        """Return the position of the best value; the first one of equals, never a NaN."""
        array = np.asarray(values, dtype=np.float64)
        if array.ndim != 1 or np.isnan(array).all():
            raise InputError(f"No value of {self.name} is a number: there is nothing to choose.")
        return int(np.nanargmin(array) if self.better == "lower" else np.nanargmax(array))


SCORES: dict[str, Score] = {
    score.name: score
    for score in (
        Score("dev", "lower", ("source_loss", "weight"), deep_embedded_validation),
        Score(
            "importance_weighted",
            "lower",
            ("source_loss", "weight"),
            importance_weighted_validation,
        ),
        Score("source_loss", "lower", ("source_loss",), source_validation),
        Score("mutual_information", "higher", ("target_probabilities",), mutual_information_score),
    )
}
"""Every score that one trained model is enough for, by name."""
