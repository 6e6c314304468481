"""Which inputs differ between the domains, how far apart these are, and whether they touch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import NearestNeighbors

from halfseen.arrays import Floats, Matrix, vector
from halfseen.errors import InputError
from halfseen.evidence.density_ratio import (
    clip_weights,
    default_domain_classifier,
    odds_to_ratio,
    overlap,
    stacked,
    two_domains,
)

BINS = 10
"""Of the population stability index."""
FOLDS = 5


@dataclass(frozen=True)
class FeatureShift:
    """How one input differs between the domains; empty cells are left out.

    `gap` is the largest one between the cumulative distributions (Kolmogorov-Smirnov), or between
    the shares of any set of categories (total variation); its p-value is corrected for the number
    of inputs. Categories have no means.
    """

    name: str
    source_mean: float
    target_mean: float
    population_stability: float
    gap: float
    p_value: float


@dataclass(frozen=True)
class DomainSeparation:
    """How well a classifier tells target from source on rows it was not fitted on.

    For equal domains the AUC is 0.5, the proxy A-distance 2 (1 - 2 ε), with the balanced error ε,
    is 0 and the :func:`~halfseen.evidence.overlap` 1; for disjoint ones they are 1, 2 and near 0.
    """

    auc: float
    proxy_a_distance: float
    overlap: float


def feature_shift(
    source: npt.ArrayLike, target: npt.ArrayLike, names: Sequence[str] | None = None
) -> tuple[FeatureShift, ...]:
    """Compare numeric inputs that both domains have one by one; NaN marks an empty cell.

    Examples
    --------
    >>> values = np.linspace(0.0, 1.0, 500)
    >>> source, target = np.stack([values, values], 1), np.stack([values, values + 0.5], 1)
    >>> for row in feature_shift(source, target, ["age", "chol"]):
    ...     print(row.name, round(row.gap, 1), row.p_value < 0.05)
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
            name,
            float(a.mean()),
            float(b.mean()),
            population_stability(a, b),
            float(test.statistic),
            float(p),
        )
        for name, (a, b), test, p in zip(names, columns, tests, adjusted, strict=True)
    )


def population_stability(source: npt.ArrayLike, target: npt.ArrayLike) -> float:
    r"""Return the population stability index of one input.

    .. math:: \sum_b (t_b - s_b) \log (t_b / s_b) ,

    with the shares in ten bins between the source's quantiles (a value that fills a bin has its
    own), half a row added to each. Below 0.1 is commonly read as stable, above 0.25 as a marked
    shift.

    References
    ----------
    N. Siddiqi, "Credit Risk Scorecards", Wiley 2006.

    Examples
    --------
    >>> values = np.arange(1000.0)
    >>> population_stability(values, values), bool(population_stability(values, values + 500) > 1)
    (0.0, True)
    """
    first, second = vector("source", source), vector("target", target)
    quantiles = np.quantile(first, np.arange(1, BINS) / BINS, method="inverted_cdf")
    values, counts = np.unique(quantiles, return_counts=True)
    cuts = np.union1d(values, np.nextafter(values[counts > 1], np.inf))
    in_source = np.bincount(np.searchsorted(cuts, first, "right"), minlength=len(cuts) + 1)
    in_target = np.bincount(np.searchsorted(cuts, second, "right"), minlength=len(cuts) + 1)
    return _stability(in_source, in_target)


def category_shift(name: str, source: npt.ArrayLike, target: npt.ArrayLike) -> FeatureShift:
    """Compare how many rows of each category the domains have; the p-value is of chi-squared.

    Examples
    --------
    >>> found = category_shift("ward", [50, 50, 0], [25, 75, 0])
    >>> round(found.gap, 2), round(found.p_value, 4)
    (0.25, 0.0003)
    """
    first, second = vector("source", source), vector("target", target)
    if len(first) != len(second):
        raise InputError(f"There are {len(first)} source and {len(second)} target categories.")
    if not first.sum() or not second.sum():
        raise InputError("A domain has no row of any category: there is nothing to compare.")
    used = np.stack([first, second])[:, first + second > 0]
    # With one category in all, the statistic has no degree of freedom and the p-value is 1.
    p_value = float(stats.chi2_contingency(used, correction=False).pvalue)
    gap = float(np.abs(first / first.sum() - second / second.sum()).sum() / 2)
    return FeatureShift(name, np.nan, np.nan, _stability(first, second), gap, p_value)


def adjusted_p_values(p_values: npt.ArrayLike) -> Floats:
    """Correct p-values for their number by Holm's method: each compares with the level as it is."""
    p = vector("p_values", p_values)
    order = np.argsort(p)
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return np.minimum(adjusted, 1.0)


def domain_separation(
    source: npt.ArrayLike, target: npt.ArrayLike, *, classifier: Any = None, random_state: int = 0
) -> DomainSeparation:
    """Measure how far apart the domains are, on inputs or on latents.

    Every row is scored by a classifier (see :func:`~halfseen.evidence.fit_density_ratio`) that was
    fitted on the other of five folds. Call it on inputs and on latents to see what adaptation did.

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
    error = 1.0 - balanced_accuracy_score(domain, probability > domain.mean())
    ratio = odds_to_ratio(probability[: len(first)], len(first), len(second))
    return DomainSeparation(
        float(roc_auc_score(domain, probability)),
        float(2.0 * max(0.0, 1.0 - 2.0 * error)),
        overlap(clip_weights(ratio)) if ratio.any() else 0.0,
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


NEIGHBOURS = 5
SMALLEST = 1e-9
ERROR = 0.05
"""Shares of both domains on the wrong side, summed, up to which a threshold divides them."""
DENSITY = 0.7
"""Times the usual density that rows have at least where one population was cut in two. Cut tables
mostly had one or more; where columns are read otherwise three of four had less than a half."""
NEAR = 0.05
"""Share of all rows, on each side of a threshold, that its density is that of."""
RIDGE = 0.01


class Neighbours(NamedTuple):
    """How far some rows are from their fifth neighbour in the source.

    `isolation` is the logarithm of that distance over the geometric mean of the neighbours'
    distances to theirs: near zero also where source rows are rare.
    """

    distance: Floats
    isolation: Floats


def neighbours_of(source: Matrix, others: Matrix) -> tuple[Neighbours, Neighbours]:
    """Return the neighbours of source rows, and of other rows, in the source.

    References
    ----------
    M. Breunig, H.-P. Kriegel, R. Ng, J. Sander, "LOF: identifying density-based local outliers",
    SIGMOD 2000.

    Examples
    --------
    >>> line = np.arange(20, dtype=np.float32)[:, None] ** 2  # rows get rarer
    >>> within, across = neighbours_of(line, np.float32([[225.5], [1500]]))
    >>> float(within.distance[0]), across.distance.tolist(), (across.isolation > 1).tolist()
    (25.0, [63.5, 1275.0], [False, True])
    """
    neighbours = min(NEIGHBOURS, len(source) - 1)
    search = NearestNeighbors(n_neighbors=neighbours + 1).fit(source)
    # A source row is its own first neighbour.
    found, near = search.kneighbors(source)
    within, near = found[:, -1], near[:, 1:]
    logs = np.log(np.maximum(within, SMALLEST))
    found, near_others = search.kneighbors(others, n_neighbors=neighbours)
    across = found[:, -1]
    other_logs = np.log(np.maximum(across, SMALLEST))
    return (
        Neighbours(within, logs - logs[near].mean(axis=1)),
        Neighbours(across, other_logs - logs[near_others].mean(axis=1)),
    )


def is_cut(source: Floats, target: Floats) -> bool:
    """Say whether one column, or one sum of columns, was cut in two: no gap lies between.

    Where instruments changed, two whole populations stand beside each other; columns in which they
    are apart have few rows in between.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(800, 3))
    >>> is_cut(rows[rows[:, 0] < 0.3], rows[rows[:, 0] >= 0.3]), is_cut(rows[:400], rows[400:] + 4)
    (True, False)
    """
    inner = (len(source) * np.cov(source.T) + len(target) * np.cov(target.T)) / (
        len(source) + len(target)
    )
    columns = source.shape[1]
    shift = target.mean(axis=0) - source.mean(axis=0)
    together = np.linalg.solve(np.atleast_2d(inner) + RIDGE * np.eye(columns), shift)
    directions = np.column_stack([np.eye(columns), together])
    thresholds = map(best_threshold, (source @ directions).T, (target @ directions).T)
    error, density = min(thresholds, key=lambda threshold: threshold[0])
    return error <= ERROR and density >= DENSITY


def best_threshold(source: Floats, target: Floats) -> tuple[float, float]:
    """Return the least error of a threshold between two domains, and how dense rows are there.

    The error is the share of source rows on the wrong side plus that of target rows; the density
    how many times as dense as usual both together are around the threshold.
    """
    if source.mean() > target.mean():
        source, target = -source, -target
    values = np.concatenate([source, target])
    order = np.argsort(values)
    values, is_target = values[order], order >= len(source)
    below = np.cumsum(is_target) / len(target) + 1.0 - np.cumsum(~is_target) / len(source)
    below[:-1][values[:-1] == values[1:]] = 1.0  # no threshold lies between equal values
    place = int(below.argmin())
    near = max(int(NEAR * len(values)), 5)
    first, last = max(place - near, 0), min(place + near, len(values) - 1)
    low, high = np.quantile(values, [0.05, 0.95])
    usual = 0.9 / max(high - low, np.finfo(float).tiny)
    width = max(values[last] - values[first], np.finfo(float).tiny)
    return float(below[place]), float((last - first) / len(values) / width / usual)
