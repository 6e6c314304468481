"""Which inputs differ between the domains, and how far apart the domains are as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from halfseen.arrays import Floats, vector
from halfseen.errors import InputError
from halfseen.evidence.density_ratio import (
    clip_weights,
    default_domain_classifier,
    odds_to_ratio,
    overlap,
    stacked,
    two_domains,
)

__all__ = [
    "CategoryShift",
    "DomainSeparation",
    "FeatureShift",
    "adjusted_p_values",
    "category_shift",
    "domain_separation",
    "feature_shift",
    "population_stability",
]

BINS = 10
"""Of the population stability index."""
FOLDS = 5


@dataclass(frozen=True)
class FeatureShift:
    """How one input differs between the domains.

    Parameters
    ----------
    name
        The input's name.
    source_mean, target_mean, source_spread, target_spread
        Mean and standard deviation in each domain.
    source_missing, target_missing
        Share of cells that are NaN; the other columns leave them out.
    population_stability
        See :func:`population_stability`.
    statistic
        Kolmogorov-Smirnov: the largest gap between the two cumulative distributions.
    p_value, adjusted_p_value
        Asymptotic p-value of that statistic, alone and corrected for the number of inputs. With
        many equal values it is too large, never too small.
    """

    name: str
    source_mean: float
    target_mean: float
    source_spread: float
    target_spread: float
    source_missing: float
    target_missing: float
    population_stability: float
    statistic: float
    p_value: float
    adjusted_p_value: float


@dataclass(frozen=True)
class CategoryShift:
    """How the shares of one column's categories differ between the domains.

    Parameters
    ----------
    population_stability
        See :func:`population_stability`, with a bin for each category.
    statistic
        Total variation: the largest gap between the shares of any set of categories.
    p_value
        Of the chi-squared test that both domains have the same shares.
    """

    population_stability: float
    statistic: float
    p_value: float


@dataclass(frozen=True)
class DomainSeparation:
    """How well a classifier tells target from source on rows it was not fitted on.

    Parameters
    ----------
    auc
        Area under its ROC curve: 0.5 for equal domains, 1 for disjoint ones.
    proxy_a_distance
        2 (1 - 2 ε) with ε its balanced error: 0 for equal domains, 2 for disjoint ones.
    overlap
        See :func:`halfseen.evidence.overlap`, of the source rows: 1 for equal domains, near 0
        where the target lies beyond the source.
    """

    auc: float
    proxy_a_distance: float
    overlap: float


def feature_shift(
    source: npt.ArrayLike, target: npt.ArrayLike, names: Sequence[str] | None = None
) -> tuple[FeatureShift, ...]:
    """Compare the inputs of both domains one by one.

    Parameters
    ----------
    source, target
        Numeric inputs that both domains have, one row each; NaN marks an empty cell.
    names
        Name of each column; by default "column 0", "column 1", ...

    Examples
    --------
    >>> values = np.linspace(0.0, 1.0, 500)
    >>> source, target = np.stack([values, values], 1), np.stack([values, values + 0.5], 1)
    >>> for row in feature_shift(source, target, ["age", "chol"]):
    ...     print(row.name, round(row.statistic, 1), row.adjusted_p_value < 0.05)
    age 0.0 False
    chol 0.5 True
    """
    first, second = two_domains(source, target, allow_nan=True)
    width = first.shape[1]
    names = [f"column {j}" for j in range(width)] if names is None else list(names)
    if len(names) != width:
        raise InputError(f"There are {len(names)} names for {width} columns.")
    columns = [
        (_present(first[:, j], names[j], "source"), _present(second[:, j], names[j], "target"))
        for j in range(width)
    ]
    tests = [stats.ks_2samp(a, b, method="asymp") for a, b in columns]
    adjusted = adjusted_p_values([float(test.pvalue) for test in tests])
    return tuple(
        FeatureShift(
            name=name,
            source_mean=float(a.mean()),
            target_mean=float(b.mean()),
            source_spread=float(a.std()),
            target_spread=float(b.std()),
            source_missing=1.0 - len(a) / len(first),
            target_missing=1.0 - len(b) / len(second),
            population_stability=population_stability(a, b),
            statistic=float(test.statistic),
            p_value=float(test.pvalue),
            adjusted_p_value=float(p),
        )
        for name, (a, b), test, p in zip(names, columns, tests, adjusted, strict=True)
    )


def population_stability(source: npt.ArrayLike, target: npt.ArrayLike) -> float:
    r"""Return the population stability index of one input.

    .. math:: \sum_b (t_b - s_b) \log (t_b / s_b) ,

    with the shares of source and target in ten bins between the source's quantiles; a value that
    fills a bin by itself has its own, so that zero-inflated and categorical codes are seen. Half
    a row is added to each bin to keep the logarithm finite. Below 0.1 is commonly read as
    stable, above 0.25 as a marked shift.

    References
    ----------
    N. Siddiqi, "Credit Risk Scorecards", Wiley 2006.

    Examples
    --------
    >>> values = np.arange(1000.0)
    >>> population_stability(values, values)
    0.0
    >>> bool(population_stability(values, values + 500) > 0.25)
    True
    """
    first, second = vector("source", source), vector("target", target)
    quantiles = np.quantile(first, np.arange(1, BINS) / BINS, method="inverted_cdf")
    values, counts = np.unique(quantiles, return_counts=True)
    cuts = np.union1d(values, np.nextafter(values[counts > 1], np.inf))
    in_source = np.bincount(np.searchsorted(cuts, first, "right"), minlength=len(cuts) + 1)
    in_target = np.bincount(np.searchsorted(cuts, second, "right"), minlength=len(cuts) + 1)
    return _stability(in_source, in_target)


def category_shift(source: npt.ArrayLike, target: npt.ArrayLike) -> CategoryShift:
    """Compare how often each category occurs in both domains.

    Parameters
    ----------
    source, target
        Rows of each category, in the same order.

    Examples
    --------
    >>> found = category_shift([50, 50, 0], [25, 75, 0])
    >>> round(found.statistic, 2), round(found.p_value, 4)
    (0.25, 0.0003)
    """
    first, second = vector("source", source), vector("target", target)
    if len(first) != len(second):
        raise InputError(f"There are {len(first)} source and {len(second)} target categories.")
    if not first.sum() or not second.sum():
        raise InputError("A domain has no row of any category: there is nothing to compare.")
    used = first + second > 0
    p_value = 1.0
    if used.sum() > 1:
        counts = np.stack([first[used], second[used]])
        p_value = float(stats.chi2_contingency(counts, correction=False).pvalue)
    return CategoryShift(
        _stability(first, second),
        float(np.abs(first / first.sum() - second / second.sum()).sum() / 2),
        p_value,
    )


def adjusted_p_values(p_values: npt.ArrayLike) -> Floats:
    """Correct p-values for their number: each compares with the level as it stands.

    References
    ----------
    S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
    Statistics 6, 1979.

    Examples
    --------
    >>> adjusted_p_values([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = vector("p_values", p_values)
    order = np.argsort(p)
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return np.minimum(adjusted, 1.0)


def domain_separation(
    source: npt.ArrayLike,
    target: npt.ArrayLike,
    *,
    classifier: Any = None,
    random_state: int = 0,
) -> DomainSeparation:
    """Measure how far apart the domains are, on inputs or on latents.

    Every row is scored by a classifier that was fitted on the other folds. Call it on the inputs
    and on the latents to see what adaptation did.

    Parameters
    ----------
    source, target
        One row each, of the same width.
    classifier
        Any scikit-learn classifier with calibrated ``predict_proba``; by default
        :func:`halfseen.evidence.default_domain_classifier`.
    random_state
        Seed of the five folds.

    References
    ----------
    S. Ben-David, J. Blitzer, K. Crammer, F. Pereira, "Analysis of representations for domain
    adaptation", NIPS 2006.

    Examples
    --------
    Between N(0, 1) and N(1, 1) the area under the curve is Φ(1/√2) = 0.76.

    >>> rng = np.random.default_rng(0)
    >>> near = domain_separation(rng.normal(0, 1, (2000, 1)), rng.normal(1, 1, (2000, 1)))
    >>> bool(abs(near.auc - 0.76) < 0.02)
    True
    """
    first, second = two_domains(source, target, least=3 * FOLDS)
    rows, domain = stacked(first, second)
    model = clone(classifier) if classifier is not None else default_domain_classifier()
    divided = StratifiedKFold(FOLDS, shuffle=True, random_state=random_state)
    probability = cross_val_predict(model, rows, domain, cv=divided, method="predict_proba")[:, 1]
    # Against the share of target rows, not 1/2: otherwise the larger domain always wins.
    called_target = probability > domain.mean()
    error = 1.0 - balanced_accuracy_score(domain, called_target)
    ratio = odds_to_ratio(probability[: len(first)], len(first), len(second))
    return DomainSeparation(
        auc=float(roc_auc_score(domain, probability)),
        proxy_a_distance=float(2.0 * max(0.0, 1.0 - 2.0 * error)),
        overlap=overlap(clip_weights(ratio)) if ratio.any() else 0.0,
    )


def _stability(in_source: npt.NDArray[Any], in_target: npt.NDArray[Any]) -> float:
    used = in_source + in_target > 0
    s, t = in_source[used] + 0.5, in_target[used] + 0.5
    s, t = s / s.sum(), t / t.sum()
    return float(((t - s) * np.log(t / s)).sum())


def _present(column: Floats, name: str, domain: str) -> Floats:
    present = column[~np.isnan(column)]
    if not present.size:
        raise InputError(
            f"Every {domain} cell of {name!r} is empty: it belongs to the missing block, and "
            "there is nothing to compare."
        )
    if not np.isfinite(present).all():
        raise InputError(f"The {domain} column {name!r} holds an infinite value.")
    return present
