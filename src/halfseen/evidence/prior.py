"""Two estimates of the target's class proportions, as functions of three arrays.

Both assume label shift: p(x | y) is the same in both domains, and only p(y) differs. They take
predictions for held-out source rows, those rows' labels, and predictions for target rows; whether
their answer can be used is judged in :mod:`halfseen.evidence.labels`.
"""

from __future__ import annotations

import numpy as np

from halfseen.arrays import Floats, Integers
from halfseen.evidence.calibration import fit_bias_corrected_temperature

__all__ = ["black_box", "expectation_maximisation", "maximum_likelihood", "mixture_distance"]


def black_box(source: Floats, y: Integers, target: Floats) -> Floats:
    r"""Black-box shift estimation (BBSE), with soft predictions.

    With :math:`C_{ij} = E_S[p_i(x) \, 1(y = j)]` and :math:`\mu_i = E_T[p_i(x)]`, label shift
    means :math:`C w = \mu` for :math:`w_j = p_T(j) / p_S(j)`. The solution is clipped at zero and
    scaled to a distribution.

    References
    ----------
    Z. C. Lipton, Y.-X. Wang, A. J. Smola, "Detecting and correcting for label shift with black
    box predictors", ICML 2018.

    Examples
    --------
    A perfect classifier counts:

    >>> sure = np.eye(2)
    >>> black_box(sure[[0, 0, 1, 1]], np.array([0, 0, 1, 1]), sure[[0, 1, 1, 1]])
    array([0.25, 0.75])
    """
    indicator = np.eye(source.shape[1])[y]
    joint = source.T @ indicator / len(y)
    weight = np.linalg.lstsq(joint, target.mean(axis=0))[0]
    return _distribution(weight * indicator.mean(axis=0))


def maximum_likelihood(source: Floats, y: Integers, target: Floats) -> Floats:
    """Maximum likelihood label shift (MLLS) after bias-corrected temperature calibration.

    References
    ----------
    A. Alexandari, A. Kundaje, A. Shrikumar, "Maximum likelihood with bias-corrected calibration
    is hard-to-beat at label shift adaptation", ICML 2020.
    """
    calibration = fit_bias_corrected_temperature(source, y)
    frequency = np.bincount(y, minlength=source.shape[1]) / len(y)
    return expectation_maximisation(calibration(target), frequency)


def expectation_maximisation(
    target: Floats, source_prior: Floats, *, tolerance: float = 1e-7
) -> Floats:
    r"""Return the prior that maximises the likelihood of calibrated target predictions.

    The step :math:`q_k \leftarrow \frac{1}{n} \sum_i \frac{p_{ik} q_k / \pi_k}{\sum_j p_{ij}
    q_j / \pi_j}` climbs a concave likelihood, so it reaches the global maximum; squared
    extrapolation (SQUAREM), undone wherever it would leave the simplex or lower the likelihood,
    makes it quick.

    References
    ----------
    M. Saerens, P. Latinne, C. Decaestecker, "Adjusting the outputs of a classifier to new a
    priori probabilities", Neural Computation 14(1), 2002.

    R. Varadhan, C. Roland, "Simple and globally convergent methods for accelerating the
    convergence of any EM algorithm", Scandinavian Journal of Statistics 35, 2008.
    """
    ratio = target / source_prior

    def step(prior: Floats) -> tuple[Floats, float]:
        """Return the next prior, and the log-likelihood of this one."""
        evidence = ratio @ prior
        return prior * (ratio.T @ (1.0 / evidence)) / len(ratio), float(np.log(evidence).mean())

    prior = source_prior
    for _ in range(1000):
        first, _ = step(prior)
        second, likelihood = step(first)
        change = first - prior
        bend = second - first - change
        if np.abs(second - first).max() < tolerance:
            prior = second
            break
        length = np.linalg.norm(change) / max(float(np.linalg.norm(bend)), 1e-300)
        jump = prior + 2 * length * change + length**2 * bend
        prior = second
        if length > 1 and jump.min() > 0:
            landed, reached = step(jump / jump.sum())
            if reached >= likelihood:
                prior = landed
    return _distribution(prior)


def mixture_distance(source: Floats, y: Integers, target: Floats, prior: Floats) -> float:
    r"""Return how far the target's scores are from a mixture of the source classes' scores.

    Under label shift the cumulative distribution of a score on the target, G, is that of the
    mixture :math:`F = \sum_k q_k F_k` of the source's classes. With H their average, this is

    .. math:: \Big( \int \frac{(F - G)^2}{H (1 - H)} \, dH \Big)^{1/2} ,

    the largest one over the classes' scores: zero for equal distributions, and more sensitive in
    the tails than the largest gap is.

    References
    ----------
    T. W. Anderson, D. A. Darling, "A test of goodness of fit", JASA 49, 1954.
    """
    classes = source.shape[1]
    mixture = (prior / np.bincount(y, minlength=classes))[y]
    empirical = np.full(len(target), 1.0 / len(target))
    difference = np.concatenate([mixture, -empirical])
    average = np.concatenate([mixture, empirical]) / 2.0
    largest = 0.0
    # With two classes the second score mirrors the first.
    for k in range(classes if classes > 2 else 1):
        values = np.concatenate([source[:, k], target[:, k]])
        order = np.argsort(values)
        # Equal values are one step of the distributions; behind the last one both are 1.
        step = np.flatnonzero(np.diff(values[order]) > 0)
        gap = np.cumsum(difference[order])[step]
        height = np.cumsum(average[order])[step]
        inside = (height > 1e-12) & (height < 1.0 - 1e-12)
        integrand = np.square(gap[inside]) / (height * (1.0 - height))[inside]
        largest = max(largest, float(integrand @ np.diff(height, prepend=0.0)[inside]))
    return float(np.sqrt(largest)) if largest > 1e-24 else 0.0


def _distribution(values: Floats) -> Floats:
    clipped = np.maximum(values, 0.0)
    distribution: Floats = clipped / clipped.sum()
    return distribution
