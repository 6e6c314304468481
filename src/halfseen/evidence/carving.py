"""A pseudo-target carved out of the source, shifted from the rest as the target is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import expit

from halfseen.arrays import Floats
from halfseen.errors import InputError, OptionError
from halfseen.evidence.density_ratio import compact_domain_classifier, two_domains
from halfseen.evidence.features import DomainSeparation, told_apart

FEWEST_ROWS = 30
"""Of the slice, and of the rest."""
_SMALLEST = 1e-6
"""Bounds a weight away from zero, so that its logarithm exists."""


@dataclass(frozen=True, eq=False)
class Carving:
    """Which source rows play the target, and with which probability each was drawn.

    `wanted` is how far the target is from the source in x1, `obtained` how far the rows chosen
    are from the rest.
    """

    chosen: npt.NDArray[np.bool_]
    probability: Floats
    wanted: DomainSeparation
    obtained: DomainSeparation


def carve_pseudo_target(
    x1_source: npt.ArrayLike,
    x1_target: npt.ArrayLike,
    *,
    share: float = 1 / 3,
    chosen: npt.NDArray[np.bool_] | None = None,
    random_state: int = 0,
) -> Carving:
    r"""Draw a slice of the source that differs from the rest as the target differs from it.

    A domain classifier, fitted on the other folds, gives every source row the ratio
    :math:`w(x) = p_T(x) / p_S(x)`. The row joins the slice with probability

    .. math:: \pi(x) = \frac{1}{1 + e^{-b} / w(x)} , \qquad \overline{\pi} = \text{share} ,

    b being what makes the mean right. By Bayes' rule the slice's density over the rest's is
    :math:`\pi / (1 - \pi)` up to a constant, that is w(x) itself: the rest lacks what looks like
    the target, to the degree that the source lacks it. (The most target-like rows alone would lie
    beyond the rest, a harder problem than the true one.)

    The draw looks at x1 alone, so p(x2 | x1) and p(y | x1, x2) are the same in slice and rest: a
    rehearsal cannot show what a change of these would do.

    Where rows are `chosen` already, such as those of one site, they are the slice.
    """
    if not 0.0 < share < 1.0:
        raise OptionError(f"share={share} must lie strictly between 0 and 1.")
    source, target = two_domains(x1_source, x1_target)
    if chosen is None and min(share, 1 - share) * len(source) < FEWEST_ROWS:
        raise InputError(
            f"The source has {len(source)} rows, too few to rehearse on a slice of {share:.0%}."
        )
    if chosen is not None and (rows := min(chosen.sum(), (~chosen).sum())) < FEWEST_ROWS:
        raise InputError(
            f"A site has {rows} rows, too few to rehearse on; {FEWEST_ROWS} are needed."
        )
    compact = compact_domain_classifier(source.shape[1], (len(source) + len(target)) // 2)
    wanted, ratio = told_apart(source, target, classifier=compact, random_state=random_state)
    probability = _drawing(ratio, share) if chosen is None else chosen.astype(np.float64)
    drawn = np.random.default_rng(random_state).random(len(source)) < probability
    rest, played = source[~drawn], source[drawn]
    obtained, _ = told_apart(rest, played, classifier=compact, random_state=random_state)
    return Carving(drawn, probability, wanted, obtained)


def _drawing(ratio: Floats, share: float) -> Floats:
    """Return probabilities whose odds are proportional to the ratio and whose mean is the share."""
    log_ratio = np.log(np.maximum(ratio, _SMALLEST))

    def excess(offset: float) -> float:
        return float(expit(log_ratio + offset).mean() - share)

    reach = 50.0 + float(np.abs(log_ratio).max())
    drawn: Floats = expit(log_ratio + brentq(excess, -reach, reach))
    return drawn
