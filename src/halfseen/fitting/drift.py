"""Drifted columns in a fit: what is tried, how much each map counts, and self-training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_softmax

from halfseen.arrays import Floats, Matrix
from halfseen.blocks import Blocks
from halfseen.evidence.features import is_cut
from halfseen.members import NETWORKS, Aligned, AlignedLearner, Learner, Mapped, Member, Sample
from halfseen.members.aligned import (
    ColumnMap,
    Continuous,
    Distance,
    continuous_columns,
    distance_of,
    implausibility,
    judged_weights,
)
from halfseen.members.linear import Regression
from halfseen.targets import ClassTarget, TargetType

MOST_ROWS = 3_000
"""Target rows that maps are judged on."""
MOVING = 0.45
"""How much more plausible, in nats, an answer must be to pay for moving columns: with other class
shares on the target, moved columns can look better than they are."""
OUTSIDE = 0.3
"""Share of target rows outside of the source from which they are taken to be far from it: rows
that were merely selected, however strongly, had up to a quarter there."""
MEASURED, MOVED, ALONE = 2 / 3, 0.3, 0.18
"""Instruments are taken to have drifted from these shares on: of varying inputs that are measured,
of those that moved, and that times how much of their shifts the others do not explain."""
RIDGE = 0.1
"""Of the regression of each column on the others."""
SHIFT, STRETCH, SMALLEST = 0.5, 1.5, 1e-12
"""A column has moved by so many standard deviations, or so many times its scale."""
NEGLIGIBLE = 0.01
"""A map that counts less is dropped, and its answers are not asked for."""
MATCHES = 6
"""How often class shares and moments are matched in turn; they hardly move after that."""
MAP_WORDS = {
    "source": "the source's scale",
    "own": "each domain's own scale",
    "matched": "the scale of a source with the predicted class shares",
}


@dataclass(frozen=True, eq=False)
class Drift:
    """Target rows that are far from source rows."""

    distance: Distance
    columns: Continuous
    """The continuous ones among the observed inputs."""
    of_instruments: bool
    """Whether most inputs are measured and many of those moved each for itself: then the readings
    are taken to have changed, and columns are mapped. Where a few moved, or all together as they
    vary together in the source, or where one column was cut in two, the rows are other rows."""


def find_drift(
    measured: Continuous | None, source: Matrix, target: Matrix, observed: Sequence[int]
) -> Drift | None:
    """Return what has drifted; None where target rows lie among those of the source."""
    if measured is None or not len(measured):
        return None
    columns = continuous_columns(measured, source, target)
    if not len(columns):
        return None
    varying = [place for place in observed if np.ptp(source[:, place]) > 0]
    distance = distance_of(source[:, observed], target[:, observed])
    if distance.outside < OUTSIDE:
        return None
    before, after = (rows[:, columns.positions].astype(np.float64) for rows in (source, target))
    centre, spread = before.mean(axis=0), np.maximum(before.std(axis=0), SMALLEST)
    before, after = (before - centre) / spread, (after - centre) / spread
    stretch = np.abs(np.log(np.maximum(after.std(axis=0), SMALLEST)))
    moved = (np.abs(after.mean(axis=0)) > SHIFT) | (stretch > np.log(STRETCH))
    drifted = (
        len(columns) >= MEASURED * len(varying)
        and moved.mean() >= MOVED
        and moved.mean() * unexplained_shift(before, after) >= ALONE
        and not is_cut(before, after)
    )
    return Drift(distance, columns, bool(drifted))


def unexplained_shift(source: Floats, target: Floats) -> float:
    """Return how large the shifts of standardised columns are, given those of the other columns.

    The shifts of what ridge regression of each column on the others leaves, over the plain ones.
    Rows that were selected by whatever keep the relations between columns, and have little;
    instruments that changed one by one have about one.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> rows = random.normal(size=(500, 1)) + 0.5 * random.normal(size=(500, 6))
    >>> selected = rows[rows.sum(axis=1) > 3]
    >>> unexplained_shift(rows, selected) < 0.2
    True
    >>> unexplained_shift(rows, rows + np.array([1, -1, 1, -1, 1, -1])) > 0.9
    True
    """
    shift = target.mean(axis=0)
    whole = np.abs(shift).sum()
    if whole == 0.0:
        return 0.0
    precision = np.linalg.inv(source.T @ source / len(source) + RIDGE * np.eye(source.shape[1]))
    return float(np.abs(shift @ precision / np.diag(precision)).sum() / whole)


def aligned_learners(
    learners: Sequence[Learner], drift: Drift, source: Matrix
) -> tuple[Learner, ...]:
    """Return learners of both the values and their logarithms.

    Networks are left out where there are others: they have maps of their own to learn, and
    nothing tells which of the two domains' rows they should be learned on.
    """
    kept = [learner for learner in learners if learner.name != NETWORKS]
    return tuple(
        AlignedLearner(learner, ColumnMap.standard(drift.columns, source, logarithm=log), log)
        for log in (False, True)
        for learner in kept
    )


def select_maps(
    drift: Drift,
    learners: Sequence[AlignedLearner],
    members: Sequence[Member],
    source: Sample,
    target: Matrix,
    target_type: TargetType,
    blocks: Blocks,
) -> tuple[tuple[Member, ...], tuple[float, ...], dict[str, Any]]:
    """Return what answers about the drifted target, the weights, and what was found.

    All members count equally: source rows do not tell which of them to trust. Three maps of
    values and of logarithms are judged by what members say of target rows under each: the
    source's scale, the target's own, and the one under which the target has the moments of a
    source with the class shares that are predicted. The last is found in turns, as location-scale
    target shift has it. Where the answer is sure enough it teaches one member more, of the
    target's own rows (:func:`self_trained`).

    References
    ----------
    K. Zhang, B. Schölkopf, K. Muandet, Z. Wang, "Domain adaptation under target and conditional
    shift", ICML 2013.
    """
    shares = target_type.targets(source.labels)
    prior = (shares.sum(0) + 0.5) / (len(shares) + 0.5 * target_type.outputs)
    rows = target[np.random.default_rng(0).permutation(len(target))[:MOST_ROWS]]
    scales: list[_Scale] = []
    judged: list[float] = []
    for log in (False, True):
        home = ColumnMap.standard(drift.columns, source.inputs, logarithm=log)
        own = ColumnMap.standard(drift.columns, target, logarithm=log)
        chosen = zip(learners, members, strict=True)
        inner = [_inner(member) for learner, member in chosen if learner.logarithm == log]
        maps = {
            "source": home,
            "own": own,
            "matched": _matched(inner, home, own, source, shares, rows),
        }
        at_home = home(source.inputs)[:, home.positions]
        for mapped in maps.values():
            distance = distance_of(at_home, mapped(rows)[:, home.positions]).times
            judged.append(
                implausibility(_together(inner, home, mapped).raw_prediction(rows), prior, distance)
            )
        scales.append(_Scale(log, inner, maps))
    named = [(scale, name) for scale in scales for name in scale.maps]
    moved = [name != "source" for _, name in named]
    counted = judged_weights(np.array(judged) + MOVING * np.array(moved))
    counted = np.where(counted < NEGLIGIBLE, 0.0, counted)
    counted /= counted.sum()
    weights = counted.reshape(len(scales), -1)
    found = Aligned(
        tuple(
            Mapped(
                member,
                scale.maps["source"],
                tuple(m for m, w in zip(scale.maps.values(), own_weights, strict=True) if w),
                tuple(float(w) / len(scale.members) for w in own_weights if w),
            )
            for scale, own_weights in zip(scales, weights, strict=True)
            for member in scale.members
            if own_weights.any()
        )
    )
    facts = [
        {
            "values": "logarithms" if scale.logarithm else "values",
            "scale": MAP_WORDS[name],
            "implausibility": float(value),
            "weight": float(count),
        }
        for (scale, name), value, count in zip(named, judged, counted, strict=True)
    ]
    told = {"drift": drift.distance.times, "columns": len(drift.columns), "maps": facts}
    logarithms = scales[-1].maps
    extra = self_trained(
        found.raw_prediction(rows), rows, logarithms["source"], logarithms["own"], blocks
    )
    if extra is None:
        return (found,), (1.0,), told
    return (found, extra), (1.0 - TAUGHT_SHARE, TAUGHT_SHARE), told


class _Scale(NamedTuple):
    """Members that learned from values or from their logarithms, and maps of target rows."""

    logarithm: bool
    members: list[Member]
    maps: dict[str, ColumnMap]


def _together(members: Sequence[Member], home: ColumnMap, mapped: ColumnMap) -> Aligned:
    """Return members that count equally under one map."""
    return Aligned(tuple(Mapped(m, home, (mapped,), (1.0 / len(members),)) for m in members))


def _matched(
    members: Sequence[Member],
    home: ColumnMap,
    start: ColumnMap,
    source: Sample,
    shares: Floats,
    rows: Matrix,
) -> ColumnMap:
    """Return the map after some turns of class shares and moments."""
    at_home = home.mapped(home.values(source.inputs))
    counts = np.maximum(shares.sum(0), 1e-9)[:, None]
    means = shares.T @ at_home / counts
    squares = shares.T @ np.square(at_home) / counts
    values, mapped = home.values(rows), start
    for _ in range(MATCHES):
        predicted = np.exp(_together(members, home, mapped).raw_prediction(rows)).mean(axis=0)
        mean = predicted @ means
        deviation = np.sqrt(np.maximum(predicted @ squares - mean**2, 0.0))
        mapped = home.moved_to(values, mean, deviation)
    return mapped


def _inner(member: Member) -> Member:
    assert isinstance(member, Aligned)
    return member.parts[0].member


# --- self-training: classes as the target's own rows have them -----------------------------------

SELF_TRAINED = "self-trained discriminant"
"""What the member is called beside the others."""
TAUGHT_SHARE = 0.5
"""How much the discriminant counts in the answer; the rest stays with those that taught it."""
TURNS = 2
"""More turns follow the target's clusters farther from what the source says of them."""
COMPONENTS = 8
ROWS_PER_COMPONENT = 5
SURE = 0.5
"""Share of the largest entropy that answers may have: unsure ones have no clusters to follow."""
SHRINKAGE, LEAST = 0.1, 1e-6
FEWEST_SHARE = 1e-4


def self_trained(
    answer: Floats, rows: Matrix, home: ColumnMap, own: ColumnMap, blocks: Blocks
) -> Aligned | None:
    """Return a linear discriminant of prepared target rows, taught by the answer about them.

    None where the answer, their log-probabilities, is too unsure to teach, or rows are too few.
    `home` and `own` map source rows and target rows, each on its own scale.
    """
    classes = answer.shape[1]
    entropy = -(np.exp(answer) * answer).sum(axis=1).mean()
    kept = min(COMPONENTS, len(own.positions), len(rows) // (ROWS_PER_COMPONENT * classes))
    if entropy > SURE * np.log(classes) or kept < 1:
        return None
    values = own(rows)[:, own.positions].astype(np.float64)
    axes = np.linalg.svd(values, full_matrices=False)[2][:kept].T
    taught = answer
    for _ in range(TURNS):
        slopes, bias = discriminant(values @ axes, np.exp(taught))
        said = log_softmax(values @ axes @ slopes.T + bias, axis=1)
        taught = log_softmax((1.0 - TAUGHT_SHARE) * answer + TAUGHT_SHARE * said, axis=1)
    weight = np.zeros((classes, len(blocks.observed)))
    place = {position: k for k, position in enumerate(blocks.observed)}
    weight[:, [place[position] for position in own.positions.tolist()]] = slopes @ axes.T
    learned = Regression(weight, bias, blocks, ClassTarget.of(classes))
    return Aligned((Mapped(learned, home, (own,), (1.0,)),))


def discriminant(points: Floats, shares: Floats) -> tuple[Floats, Floats]:
    r"""Return slopes and intercepts of linear discriminant analysis with soft labels.

    .. math:: \log p(c | z) = \mu_c^T \Sigma^{-1} z - \tfrac12 \mu_c^T \Sigma^{-1} \mu_c
        + \log \pi_c + const

    with means, proportions and one covariance, a tenth of it its diagonal, of rows that count for
    each class by their share of it.

    Examples
    --------
    >>> points = np.array([[-1.0], [-0.8], [0.9], [1.1]])
    >>> slopes, bias = discriminant(points, np.eye(2)[[0, 0, 1, 1]])
    >>> (points @ slopes.T + bias).argmax(axis=1)
    array([0, 0, 1, 1])
    """
    counts = np.maximum(shares.sum(axis=0), LEAST)
    means = shares.T @ points / counts[:, None]
    within = (points.T * shares.sum(axis=1)) @ points - (means.T * counts) @ means
    within /= counts.sum()
    within = (1.0 - SHRINKAGE) * within + SHRINKAGE * np.diag(np.diag(within))
    within += LEAST * np.eye(len(within))
    slopes: Floats = np.linalg.solve(within, means.T).T
    proportions = np.maximum(counts / counts.sum(), FEWEST_SHARE)
    bias: Floats = np.log(proportions) - 0.5 * (slopes * means).sum(axis=1)
    return slopes, bias
