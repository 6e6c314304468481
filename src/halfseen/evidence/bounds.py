"""The terms of the paper's two bounds, estimated, each with how and how far to trust it.

Adaptation bound (theorem 1): ε_T(f∘ĝ) ≤ ε_S(f∘ĝ) + d(p_S(ẑ), p_T(ẑ)) + λ. Imputation bound
(proposition 1): ε_T(f∘g) ≤ I_S · T_I · ε_T(f∘ĝ). They explain what training minimises; as numbers
they are estimates of terms, and their sum is no guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import StandardScaler

from halfseen.arrays import Floats, labels, matrix, probabilities, same_length
from halfseen.errors import InputError
from halfseen.evidence.calibration import fit_bias_corrected_temperature
from halfseen.evidence.density_ratio import (
    compact_domain_classifier,
    odds_to_ratio,
    stacked,
    two_domains,
)
from halfseen.evidence.features import DomainSeparation, domain_separation
from halfseen.evidence.stability import out_of_fold
from halfseen.splitting import folds

__all__ = [
    "AdaptationBound",
    "AdaptationEffect",
    "BoundTerm",
    "adaptation_bound",
    "adaptation_effect",
    "imputation_terms",
]

SUPREMUM = 0.99
"""A supremum cannot be estimated; this quantile of the ratio stands for it."""
_COMPONENTS = 8
_FOLDS = 5


@dataclass(frozen=True)
class BoundTerm:
    """One estimated term.

    Parameters
    ----------
    name, symbol
        What it is called, and the paper's symbol.
    value
        The estimate.
    how
        How it was estimated.
    trust
        How far to trust it.
    """

    name: str
    symbol: str
    value: float
    how: str
    trust: str


@dataclass(frozen=True)
class AdaptationBound:
    """The terms of the adaptation bound.

    Parameters
    ----------
    source_error, divergence, joint_error
        Its three terms; the joint error is measured against pseudo-labels.
    pseudo_label_error
        What the third term leaves out: how often the pseudo-labels are wrong.
    """

    source_error: BoundTerm
    divergence: BoundTerm
    joint_error: BoundTerm
    pseudo_label_error: BoundTerm

    @property
    def terms(self) -> tuple[BoundTerm, ...]:
        """All four, in the order of the bound."""
        return self.source_error, self.divergence, self.joint_error, self.pseudo_label_error

    @property
    def total(self) -> float:
        """The sum of the first three: an estimate, and 1 or more says nothing."""
        return self.source_error.value + self.divergence.value + self.joint_error.value


@dataclass(frozen=True)
class AdaptationEffect:
    """How far apart the domains are before adaptation, in x1, and after it, in the latents ẑ.

    A separation that vanishes is what L1 asks for, and no proof of a good model: aligned latents
    may have mixed the classes.
    """

    before: DomainSeparation
    after: DomainSeparation


def adaptation_effect(
    x1_source: npt.ArrayLike,
    x1_target: npt.ArrayLike,
    source_latents: npt.ArrayLike,
    target_latents: npt.ArrayLike,
    *,
    random_state: int = 0,
) -> AdaptationEffect:
    """Measure how well a classifier tells the domains apart before and after adaptation.

    Parameters
    ----------
    x1_source, x1_target
        The observed inputs; of images, flattened.
    source_latents, target_latents
        What the classifier f sees of the same rows, missing block hidden.
    random_state
        Seed of the folds.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> source, target = rng.normal(size=(300, 2)), rng.normal(size=(300, 2)) + 2
    >>> effect = adaptation_effect(source, target, source, target - 2)  # alignment by hand
    >>> effect.before.auc > 0.9, abs(effect.after.auc - 0.5) < 0.1
    (True, True)
    """
    return AdaptationEffect(
        _separation(x1_source, x1_target, random_state),
        _separation(source_latents, target_latents, random_state),
    )


def adaptation_bound(
    source_probabilities: npt.ArrayLike,
    y_source: npt.ArrayLike,
    target_probabilities: npt.ArrayLike,
    source_latents: npt.ArrayLike,
    target_latents: npt.ArrayLike,
    *,
    random_state: int = 0,
) -> AdaptationBound:
    """Estimate the terms of ε_T ≤ ε_S + d / 2 + λ, and the part of λ that nobody can.

    Parameters
    ----------
    source_probabilities, y_source
        Predictions for held-out source rows, missing block hidden, and their classes.
    target_probabilities
        Predictions for target rows.
    source_latents, target_latents
        The latents ẑ of the same rows.
    random_state
        Seed of the folds.

    References
    ----------
    S. Ben-David, J. Blitzer, K. Crammer, A. Kulesza, F. Pereira, J. W. Vaughan, "A theory of
    learning from different domains", Machine Learning 79, 2010.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 200)
    >>> z, z_target = (rng.normal(size=(400, 2)) + 2 * y[:, None] for _ in range(2))
    >>> p, p_target = (1 / (1 + np.exp(4 - 2 * k.sum(1))) for k in (z, z_target))
    >>> both = [np.stack([1 - k, k], 1) for k in (p, p_target)]
    >>> bound = adaptation_bound(both[0], y, both[1], z, z_target)
    >>> error = float(((p_target > 0.5) != y).mean())
    >>> error < bound.total < 0.5
    True
    """
    predicted = probabilities("source_probabilities", source_probabilities)
    on_target = probabilities("target_probabilities", target_probabilities)
    y = labels("y_source", y_source, predicted.shape[1])
    source, target = two_domains(source_latents, target_latents, least=3 * _FOLDS)
    same_length(source_probabilities=predicted, y_source=y, source_latents=source)
    same_length(target_probabilities=on_target, target_latents=target)

    error = float((predicted.argmax(axis=1) != y).mean())
    spread = np.sqrt(max(error * (1 - error), 1.0 / len(y)) / len(y))
    apart = _separation(source, target, random_state)
    return AdaptationBound(
        BoundTerm(
            "source error",
            "ε_S(f∘ĝ)",
            error,
            f"share of {len(y)} held-out source rows misclassified with the block hidden",
            f"well: standard error {spread:.3f}",
        ),
        BoundTerm(
            "divergence",
            "d(p_S(ẑ), p_T(ẑ)) / 2",
            apart.proxy_a_distance / 2,
            "half the proxy A-distance on the latents, from the balanced error of a domain "
            "classifier on rows it was not fitted on",
            "as a lower estimate: a stronger classifier may tell the domains apart better",
        ),
        _joint_error(source, y, target, on_target.argmax(axis=1), random_state),
        BoundTerm(
            "error of the pseudo-labels",
            "ε_T(pseudo-labels)",
            float(1.0 - fit_bias_corrected_temperature(predicted, y)(on_target).max(axis=1).mean()),
            "one minus the mean confidence on the target, after temperature scaling on the "
            "held-out source rows",
            "little: on a shifted target a model is usually surer than it is right",
        ),
    )


def imputation_terms(
    observed_source: npt.ArrayLike,
    missing_source: npt.ArrayLike,
    imputed_source: npt.ArrayLike,
    observed_target: npt.ArrayLike,
    imputed_target: npt.ArrayLike,
    *,
    random_state: int = 0,
) -> tuple[BoundTerm, ...]:
    """Estimate I_S and T_I of the imputation bound, and the imputation's plain error.

    Parameters
    ----------
    observed_source, missing_source, imputed_source
        z_S1, z_S2 and ẑ_S2 = r(z_S1) of held-out source rows.
    observed_target, imputed_target
        z_T1 and ẑ_T2 of target rows.
    random_state
        Seed of folds and trees.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z1, z1_target = rng.normal(size=(800, 2)), rng.normal(size=(800, 2)) + 0.5
    >>> def generated(z1):  # from the very distribution of z2 given z1
    ...     return z1[:, :1] + rng.normal(size=(len(z1), 1))
    >>> terms = imputation_terms(
    ...     z1, generated(z1), generated(z1), z1_target, generated(z1_target))
    >>> [term.symbol for term in terms], terms[0].value < 2
    (['I_S', 'T_I', 'E‖z2 − ẑ2‖² / Var z2'], True)
    """
    known, true, imputed = (
        matrix(name, rows)
        for name, rows in (
            ("observed_source", observed_source),
            ("missing_source", missing_source),
            ("imputed_source", imputed_source),
        )
    )
    same_length(observed_source=known, missing_source=true, imputed_source=imputed)
    if true.shape != imputed.shape:
        raise InputError("missing_source and imputed_source must have the same width.")
    known, known_target = two_domains(known, observed_target, least=4 * _FOLDS)
    imputed, imputed_target = two_domains(imputed, imputed_target, least=4 * _FOLDS)
    variance = float(np.square(true - true.mean(axis=0)).sum())
    error = float(np.square(true - imputed).sum())
    return (
        BoundTerm(
            "imputation error on the source",
            "I_S",
            _imputation_ratio(known, true, imputed, random_state),
            f"{SUPREMUM:.0%} quantile of p(z1, z2) / p(z1, ẑ2) by boosted trees on eight "
            "principal components of each, on rows they were not fitted on; 1 is perfect",
            "for comparing models alone: the supremum itself is infinite where r has no noise, "
            "because ẑ2 given z1 is then a single point",
        ),
        BoundTerm(
            "transfer of imputation",
            "T_I",
            _transfer_ratio(known, imputed, known_target, imputed_target, random_state),
            f"{SUPREMUM:.0%} quantile of the ratio of two density ratios, source to target, on "
            "(z1, ẑ2) and on z1",
            "as a check of the estimator: one r serves both domains, so that p(ẑ2 | z1) is the "
            "same in both and the exact value is 1 whatever the shift",
        ),
        BoundTerm(
            "imputation error, squared",
            "E‖z2 − ẑ2‖² / Var z2",
            error / variance if variance > 0 else float("nan"),
            "mean squared error of ẑ2 on held-out source rows over the variance of z2",
            "well on the source; on the target only under assumption 3",
        ),
    )


def _separation(
    source: npt.ArrayLike, target: npt.ArrayLike, random_state: int
) -> DomainSeparation:
    first, second = two_domains(source, target)
    classifier = compact_domain_classifier(first.shape[1], len(first))
    return domain_separation(first, second, classifier=classifier, random_state=random_state)


def _joint_error(
    source: Floats,
    y: npt.NDArray[np.int64],
    target: Floats,
    pseudo: npt.NDArray[np.int64],
    random_state: int,
) -> BoundTerm:
    """Estimate min over f' of ε_S(f') + ε_T(f') with pseudo-labels in place of the target's."""
    rows, domain = stacked(source, target)
    truth = np.concatenate([y, pseudo])
    wrong = out_of_fold(rows, truth, random_state=random_state) != truth
    return BoundTerm(
        "joint error through pseudo-labels",
        "λ",
        float(wrong[domain == 0].mean() + wrong[domain == 1].mean()),
        "errors on both domains, added, of one logistic regression on the latents of both, with "
        "the model's own predictions as the target's labels, on rows it was not fitted on",
        "as far as the pseudo-labels are right: their error comes on top",
    )


def _imputation_ratio(known: Floats, true: Floats, imputed: Floats, random_state: int) -> float:
    """Return a high quantile of p(z1, z2) / p(z1, ẑ2), each estimated on its own half of rows."""
    order = np.random.default_rng(random_state).permutation(len(known))
    halves = order[: len(order) // 2], order[len(order) // 2 :]
    observed = _components(known, random_state)
    values = _components(np.vstack([true, imputed]), random_state)
    first = np.hstack([observed[halves[0]], values[: len(true)][halves[0]]])
    second = np.hstack([observed[halves[1]], values[len(true) :][halves[1]]])
    rows, is_true = np.vstack([first, second]), np.repeat([1, 0], [len(first), len(second)])
    trees = HistGradientBoostingClassifier(
        max_iter=30,
        learning_rate=0.05,
        max_leaf_nodes=8,
        min_samples_leaf=40,
        random_state=random_state,
    )
    divided = folds(is_true, _FOLDS, random_state)
    probability = cross_val_predict(trees, rows, is_true, cv=divided, method="predict_proba")[:, 1]
    ratio = odds_to_ratio(probability, len(second), len(first))
    return float(np.quantile(ratio[is_true == 1], SUPREMUM))


def _transfer_ratio(
    known: Floats,
    imputed: Floats,
    known_target: Floats,
    imputed_target: Floats,
    random_state: int,
) -> float:
    def log_ratio(source: Floats, target: Floats) -> Floats:
        """Return log p_S / p_T of the source rows, by a classifier fitted on other folds."""
        rows, domain = stacked(source, target)
        divided = folds(domain, _FOLDS, random_state)
        classifier = compact_domain_classifier(rows.shape[1], len(rows) // 2)
        given = cross_val_predict(classifier, rows, domain, cv=divided, method="predict_proba")
        odds = odds_to_ratio(given[: len(source), 1], len(source), len(target))
        logarithm: Floats = -np.log(np.maximum(odds, 1e-12))
        return logarithm

    joint = log_ratio(np.hstack([known, imputed]), np.hstack([known_target, imputed_target]))
    marginal = log_ratio(known, known_target)
    return float(np.exp(np.quantile(joint - marginal, SUPREMUM)))


def _components(rows: Floats, random_state: int) -> Floats:
    scaled = StandardScaler().fit_transform(rows)
    reduced: Floats = PCA(min(_COMPONENTS, *rows.shape), random_state=random_state).fit_transform(
        scaled
    )
    return reduced
