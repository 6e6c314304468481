"""Label shift: the target's class proportions, and whether to believe them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from halfseen.arrays import Floats, Integers, labels, normalized, probabilities, same_length, vector
from halfseen.errors import InputError, OptionError
from halfseen.evidence.calibration import Calibration, fit_bias_corrected_temperature
from halfseen.evidence.prior import black_box, maximum_likelihood, mixture_distance

__all__ = ["PriorEstimate", "correct_probabilities", "estimate_target_prior"]

LEVEL = 0.95
"""Coverage of the intervals."""
SIGNIFICANCE = 0.02
"""A check speaks up when label shift alone would give what it sees less often than this."""
NEGLIGIBLE_MISFIT = 0.02
"""With very many rows every model is rejected; a distance below this changes nothing."""
NEGLIGIBLE_GAP = 0.02
"""Estimators whose proportions differ by less say the same."""
EDGE = 0.001
"""An interval that reaches this close to 0 or 1 touches it."""
WIDEST = 0.5
"""An interval wider than this says next to nothing."""


@dataclass(frozen=True, eq=False)
class PriorEstimate:
    """The target's class proportions as estimated, and what speaks against using them.

    Parameters
    ----------
    prior, source_prior
        Proportion of each class on the target, and on the source rows given.
    interval
        Shape (classes, 2): bootstrap percentile interval of each proportion.
    by_black_box
        What black-box shift estimation says instead of maximum likelihood.
    misfit
        Distance between the target's scores and the mixture that `prior` predicts.
    calibration
        Fitted on the source rows given; applied before a correction.
    reasons
        Sentences, one per failed check; empty if the estimate can be used.
    """

    prior: Floats
    interval: Floats
    source_prior: Floats
    by_black_box: Floats
    misfit: float
    calibration: Calibration
    reasons: tuple[str, ...]

    @property
    def trustworthy(self) -> bool:
        """Whether every check passed."""
        return not self.reasons

    @property
    def verdict(self) -> str:
        """The judgement as one paragraph for a person."""
        if self.trustworthy:
            return (
                "The estimated class proportions can be used: the target's scores look like a "
                "mixture of the source's classes, and the estimators agree."
            )
        return "Do not use the estimated class proportions. " + " ".join(self.reasons)

    def correct(self, source_model_probabilities: npt.ArrayLike) -> Floats:
        """Return calibrated probabilities under the target prior, or refuse with the verdict."""
        if not self.trustworthy:
            raise InputError(self.verdict)
        calibrated = self.calibration(source_model_probabilities)
        return correct_probabilities(calibrated, self.source_prior, self.prior)


def correct_probabilities(
    source_model_probabilities: npt.ArrayLike,
    source_prior: npt.ArrayLike,
    target_prior: npt.ArrayLike,
) -> Floats:
    r"""Return p(y | x) under another prior: :math:`p_k q_k / \pi_k`, scaled to sum to one.

    Exact when p(x | y) is the same in both domains and the probabilities are calibrated.

    References
    ----------
    M. Saerens, P. Latinne, C. Decaestecker, "Adjusting the outputs of a classifier to new a
    priori probabilities", Neural Computation 14(1), 2002.

    Examples
    --------
    >>> correct_probabilities([[0.5, 0.5]], [0.5, 0.5], [0.9, 0.1])
    array([[0.9, 0.1]])
    """
    array = probabilities("source_model_probabilities", source_model_probabilities)
    source = _prior("source_prior", source_prior, array.shape[1])
    target = _prior("target_prior", target_prior, array.shape[1])
    if not (source > 0).all():
        raise InputError(
            f"source_prior gives class {int(source.argmin())} no mass: a class that the source "
            "never showed cannot be corrected for."
        )
    # A row that is sure of a class with no target mass keeps a defined answer.
    weighted = np.maximum(array, 1e-12) * (target / source)
    return normalized(weighted)


def estimate_target_prior(
    probabilities_source: npt.ArrayLike,
    y_source: npt.ArrayLike,
    probabilities_target: npt.ArrayLike,
    *,
    draws: int = 200,
    random_state: int = 0,
) -> PriorEstimate:
    """Estimate the target's class proportions by maximum likelihood, and check the result.

    The estimate assumes that p(x | y) is the same in both domains. Where it is not, the number
    is wrong, often 0 or 1, so four checks look for it; any of them makes the estimate
    untrustworthy:

    - the interval touches 0 or 1;
    - the interval is wider than one half;
    - black-box estimation and maximum likelihood disagree by more than chance;
    - no mixture of the source classes' scores looks like the target's scores.

    The last two compare with `draws` pretended targets, drawn from the source rows with the
    estimated proportions, for which the assumption holds. A change of p(x | y) that moves the
    scores exactly as a change of proportions would cannot be seen by any check.

    Parameters
    ----------
    probabilities_source, y_source
        Predictions for source rows that the model was *not* trained on, and their classes as
        positions.
    probabilities_target
        Predictions for target rows by the same model.
    draws, random_state
        How often rows are drawn again, with replacement and the source's class by class; the 95 %
        interval holds the percentiles of these estimates, calibration fitted anew each time.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def predict(x):  # p(y | x) for classes N(-1, 1) and N(1, 1), equally frequent
    ...     return np.stack([1 / (1 + np.exp(2 * x)), 1 / (1 + np.exp(-2 * x))], axis=1)
    >>> y, y_target = np.repeat([0, 1], 500), np.repeat([0, 1], [400, 100])
    >>> source, target = rng.normal(2.0 * y - 1), rng.normal(2.0 * y_target - 1)
    >>> estimate = estimate_target_prior(predict(source), y, predict(target), draws=100)
    >>> low, high = estimate.interval[1]
    >>> bool(low < 0.2 < high), estimate.trustworthy
    (True, True)
    >>> shifted = estimate_target_prior(predict(source), y, predict(target + 1.5), draws=100)
    >>> shifted.trustworthy
    False
    """
    source = probabilities("probabilities_source", probabilities_source)
    target = probabilities("probabilities_target", probabilities_target)
    classes = source.shape[1]
    y = labels("y_source", y_source, classes)
    _check_options(source, y, target, draws)

    rng = np.random.default_rng(random_state)
    observed = _Sample(source, y, target)
    prior = maximum_likelihood(source, y, target)
    other = black_box(source, y, target)
    again = [observed.drawn_again(rng).estimate() for _ in range(draws)]
    interval = np.quantile(again, [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0], axis=0).T
    pretended = [observed.pretended(prior, rng).discrepancies() for _ in range(draws)]
    misfit, gap = observed.discrepancies()
    chance_misfit, chance_gap = (1.0 + (np.array(pretended) >= (misfit, gap)).sum(axis=0)) / (
        1.0 + draws
    )
    return PriorEstimate(
        prior=prior,
        interval=interval,
        source_prior=observed.source_prior,
        by_black_box=other,
        misfit=misfit,
        calibration=fit_bias_corrected_temperature(source, y),
        reasons=(
            *_interval_reasons(interval),
            *_gap_reasons(other, prior, chance_gap),
            *_misfit_reasons(misfit, chance_misfit),
        ),
    )


@dataclass(frozen=True, eq=False)
class _Sample:
    """Source predictions with labels, and target predictions."""

    source: Floats
    y: Integers
    target: Floats

    @property
    def source_prior(self) -> Floats:
        return np.bincount(self.y, minlength=self.source.shape[1]) / len(self.y)

    def estimate(self) -> Floats:
        try:
            return maximum_likelihood(self.source, self.y, self.target)
        except InputError:
            # These rows, drawn by chance, cannot be calibrated: they tell nothing of the target.
            return self.source_prior

    def discrepancies(self) -> tuple[float, float]:
        """Return the misfit of the mixture, and the largest gap between the two estimators."""
        likelihood = self.estimate()
        other = black_box(self.source, self.y, self.target)
        misfit = mixture_distance(self.source, self.y, self.target, likelihood)
        return misfit, float(np.abs(other - likelihood).max())

    def drawn_again(self, rng: np.random.Generator) -> _Sample:
        rows = self._source_rows(rng)
        others = rng.integers(len(self.target), size=len(self.target))
        return _Sample(self.source[rows], self.y[rows], self.target[others])

    def pretended(self, prior: Floats, rng: np.random.Generator) -> _Sample:
        """Return a sample whose target is the source with other proportions: label shift holds."""
        rows = self._source_rows(rng)
        mass = (prior / np.bincount(self.y, minlength=len(prior)))[self.y]
        others = rng.choice(len(self.y), size=len(self.target), p=mass / mass.sum())
        return _Sample(self.source[rows], self.y[rows], self.source[others])

    def _source_rows(self, rng: np.random.Generator) -> Integers:
        """Draw source rows with replacement, class by class, so that none disappears."""
        by_class = [np.flatnonzero(self.y == k) for k in range(self.source.shape[1])]
        return np.concatenate([rng.choice(rows, size=len(rows)) for rows in by_class])


def _interval_reasons(interval: Floats) -> Iterator[str]:
    k, edge = int(interval[:, 0].argmin()), 0
    if interval[k, 0] > EDGE:
        k, edge = int(interval[:, 1].argmax()), 1
    low, high = interval[k]
    if low <= EDGE or high >= 1.0 - EDGE:
        yield (
            f"The interval of class {k}, {low:.3f} to {high:.3f}, reaches {edge}, as it does where "
            "p(x | y) differs between the domains or the target rows are too few."
        )
    k = int((interval[:, 1] - interval[:, 0]).argmax())
    low, high = interval[k]
    if high - low > WIDEST:
        yield (
            f"The interval of class {k}, {low:.3f} to {high:.3f}, says next to nothing: the "
            "model hardly tells the classes apart, or the rows are too few."
        )


def _gap_reasons(other: Floats, likelihood: Floats, chance: float) -> Iterator[str]:
    k = int(np.abs(other - likelihood).argmax())
    if chance < SIGNIFICANCE and abs(other[k] - likelihood[k]) > NEGLIGIBLE_GAP:
        yield (
            f"Black-box estimation gives class {k} the proportion {other[k]:.3f} and maximum "
            f"likelihood {likelihood[k]:.3f}; if p(x | y) were the same in both domains, they "
            f"would lie so far apart with a chance of {chance:.3f}."
        )


def _misfit_reasons(misfit: float, chance: float) -> Iterator[str]:
    if chance < SIGNIFICANCE and misfit > NEGLIGIBLE_MISFIT:
        yield (
            "No mixture of the source's classes gives the target's scores: their distributions "
            f"differ by {misfit:.3f}, which would happen with a chance of {chance:.3f} if "
            "p(x | y) were the same in both domains."
        )


def _check_options(source: Floats, y: Integers, target: Floats, draws: int) -> None:
    if draws < 100:
        raise OptionError(
            f"draws={draws} is too few for a check at {SIGNIFICANCE:.0%}; take at least 100."
        )
    same_length(probabilities_source=source, y_source=y)
    if source.shape[1] != target.shape[1]:
        raise InputError(
            f"The source predictions have {source.shape[1]} classes and the target predictions "
            f"{target.shape[1]}; both must come from the same model."
        )
    counts = np.bincount(y, minlength=source.shape[1])
    if counts.min() < 2:
        raise InputError(
            f"Class {int(counts.argmin())} has {counts.min()} rows among the held-out source rows; "
            "hold out at least 2 of each class, better a hundred."
        )


def _prior(name: str, values: npt.ArrayLike, classes: int) -> Floats:
    array = vector(name, values)
    if array.shape != (classes,) or array.min() < 0 or abs(array.sum() - 1.0) > 1e-3:
        raise InputError(
            f"{name} must hold {classes} proportions that sum to 1, one per class, not "
            f"{np.array2string(array, precision=4)}."
        )
    return array
