"""Importance weights: how much more often a row, or a class, is seen on the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from halfseen.arrays import Floats, Integers, matrix, normalized, probabilities, vector
from halfseen.errors import InputError
from halfseen.logistic import fit_logistic, likelihoods, logits

ENOUGH_OVERLAP = 0.2
"""Below this, risks estimated for the target miss it more often than their intervals say."""
_FOLDS = 3
_PENALTIES = (0.001, 0.01, 0.1, 1.0, 10.0)
_MOST_COMPONENTS = 32


@dataclass(frozen=True)
class DensityRatio:
    """A fitted estimate of w(x) = p_T(x) / p_S(x): a classifier, and the rows it was fitted on."""

    classifier: Any
    source_rows: int
    target_rows: int

    def weights(self, inputs: npt.ArrayLike, *, clip: bool = True) -> Floats:
        """Return w for rows that the classifier was not fitted on (of its own it is too sure)."""
        probability = self.classifier.predict_proba(matrix("inputs", inputs))[:, 1]
        ratio = odds_to_ratio(probability, self.source_rows, self.target_rows)
        return clip_weights(ratio) if clip else ratio


def fit_density_ratio(
    source: npt.ArrayLike, target: npt.ArrayLike, *, classifier: Any = None
) -> DensityRatio:
    r"""Fit w(x) = p_T(x) / p_S(x) with a classifier that tells the domains apart.

    By Bayes' rule, with d the domain,

    .. math:: w(x) = \frac{n_S}{n_T} \, \frac{P(d = T \mid x)}{P(d = S \mid x)} .

    Give inputs or latents of rows that are *not* weighted later. The classifier may be any of
    scikit-learn's whose ``predict_proba`` is calibrated (a small forest's is not); a copy of it is
    fitted.

    References
    ----------
    S. Bickel, M. Brückner, T. Scheffer, "Discriminative learning for differing training and
    test distributions", ICML 2007.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> ratio = fit_density_ratio(rng.normal(0, 1, (4000, 1)), rng.normal(0.5, 1, (4000, 1)))
    >>> estimated = ratio.weights([[-1.0], [0.0], [1.0]])
    >>> exact = np.exp(0.5 * np.array([-1.0, 0.0, 1.0]) - 0.125)
    >>> bool(np.abs(estimated - exact).max() < 0.1)
    True
    """
    source, target = two_domains(source, target)
    model = clone(classifier) if classifier is not None else default_domain_classifier()
    model.fit(*stacked(source, target))
    return DensityRatio(model, len(source), len(target))


def default_domain_classifier(width: int = 0, rows: int = 0) -> Any:
    """Return the domain classifier used where none is given.

    Logistic regression on each standardised input and its square, its penalty chosen by three-fold
    likelihood: exact for Gaussians with diagonal covariances, and calibrated. Where inputs are said
    to be wide, as latents are, it stands behind 32 principal components.
    """
    steps = [PCA(min(_MOST_COMPONENTS, rows), random_state=0)] if width > _MOST_COMPONENTS else []
    squares = FunctionTransformer(_with_squares)
    return make_pipeline(
        *steps, StandardScaler(), squares, StandardScaler(), _PenaltyByLikelihood()
    )


def _with_squares(inputs: Floats) -> Floats:
    return np.hstack([inputs, np.square(inputs)])


class _PenaltyByLikelihood(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Logistic regression of two domains whose penalty is the likeliest of five."""

    def fit(self, X: Floats, y: Integers) -> _PenaltyByLikelihood:
        self.classes_, shares = np.array([0, 1]), np.eye(2)[y]
        best = likelihoods(X, y, _PENALTIES, _FOLDS).mean(1).argmax()
        self.weight_ = fit_logistic(X, shares, _PENALTIES[best])
        return self

    def predict_proba(self, X: Floats) -> Floats:
        probability: Floats = softmax(logits(self.weight_, X), axis=1)
        return probability

    def predict(self, X: Floats) -> Integers:
        """Return the likelier domain: scikit-learn cross-validates nothing that cannot."""
        likelier: Integers = self.predict_proba(X).argmax(1)
        return likelier


def odds_to_ratio(probability: npt.ArrayLike, source_rows: int, target_rows: int) -> Floats:
    """Return (n_S / n_T) p / (1 - p), the ratio of densities behind a domain probability p.

    No classifier is surer than 1 - 1 / (n_S + n_T), so that no weight is infinite.
    """
    surest = 1.0 - 1.0 / (source_rows + target_rows)
    bounded = np.clip(vector("probability", probability), 0.0, surest)
    ratio: Floats = source_rows / target_rows * bounded / (1.0 - bounded)
    return ratio


def clip_weights(weight: npt.ArrayLike) -> Floats:
    r"""Clip weights at :math:`\sqrt{n}` times their mean: truncated importance sampling.

    Its bias vanishes with n, and the variance of a weighted mean stays finite.

    References
    ----------
    E. L. Ionides, "Truncated importance sampling", Journal of Computational and Graphical
    Statistics 17(2), 2008.

    Examples
    --------
    >>> clip_weights([1.0, 1.0, 1.0, 97.0])  # sqrt(4) x 25 = 50
    array([ 1.,  1.,  1., 50.])
    """
    weight = check_weights(weight, may_vanish=True)
    clipped: Floats = np.minimum(weight, np.sqrt(len(weight)) * weight.mean())
    return clipped


def effective_sample_size(weight: npt.ArrayLike) -> float:
    r"""Return :math:`(\sum w)^2 / \sum w^2`: how many equally weighted rows are worth the same.

    References
    ----------
    L. Kish, "Survey Sampling", Wiley 1965.

    Examples
    --------
    >>> effective_sample_size([2.0, 2.0, 2.0]), effective_sample_size([1.0, 0.0, 0.0])
    (3.0, 1.0)
    """
    weight = check_weights(weight)
    scaled = weight / weight.max()
    return float(scaled.sum() ** 2 / np.square(scaled).sum())


def overlap(weight: npt.ArrayLike) -> float:
    """Return which share of their number source rows are worth on the target: 1 if all the same.

    The effective size as a share of the rows, times their mean weight, at most 1 (weights of
    disjoint domains are equal and tiny). Between Gaussians a distance δ apart it is exp(-δ²), 0.2
    at an AUC of 0.82; estimated weights give somewhat more.

    Examples
    --------
    >>> overlap([1.0, 1.0]), overlap([0.1, 0.1])
    (1.0, 0.1)
    """
    array = vector("weight", weight)
    if not array.any():  # a classifier that is sure of every row leaves no weight at all
        return 0.0
    share = effective_sample_size(array) / len(array)
    return min(1.0, share) * min(1.0, float(array.mean()))


def check_weights(weight: npt.ArrayLike, *, may_vanish: bool = False) -> Floats:
    """Return `weight` as a vector of importance weights: none negative, not all zero."""
    array = vector("weight", weight)
    if array.min() < 0:
        row = int((array < 0).argmax())
        raise InputError(
            f"Row {row} of weight holds {array[row]:.4g}: a ratio of densities is not negative."
        )
    if not array.any() and not may_vanish:
        raise InputError(
            "Every weight is zero: no source row looks like the target, and nothing can be "
            "estimated from them."
        )
    return array


def two_domains(
    source: npt.ArrayLike, target: npt.ArrayLike, *, allow_nan: bool = False, least: int = _FOLDS
) -> tuple[Floats, Floats]:
    """Return both domains as matrices of the same width with at least `least` rows each."""
    first = matrix("source", source, allow_nan=allow_nan)
    second = matrix("target", target, allow_nan=allow_nan)
    if first.shape[1] != second.shape[1]:
        raise InputError(
            f"The source has {first.shape[1]} columns and the target {second.shape[1]}; "
            "compare what both domains have: the observed block x1, or latents."
        )
    for name, domain in (("source", first), ("target", second)):
        if len(domain) < least:
            raise InputError(
                f"The {name} has {len(domain)} rows; comparing two domains needs at least "
                f"{least} of each."
            )
    return first, second


def stacked(source: Floats, target: Floats) -> tuple[Floats, Integers]:
    """Return both domains as one matrix, with 0 for a source row and 1 for a target row."""
    return np.vstack([source, target]), np.repeat([0, 1], [len(source), len(target)])


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
    return normalized(np.maximum(array, 1e-12) * (target / source))


def _prior(name: str, values: npt.ArrayLike, classes: int) -> Floats:
    array = vector(name, values)
    if array.shape != (classes,) or array.min() < 0 or abs(array.sum() - 1.0) > 1e-3:
        raise InputError(
            f"{name} must hold {classes} proportions that sum to 1, one per class, not "
            f"{np.array2string(array, precision=4)}."
        )
    return array
