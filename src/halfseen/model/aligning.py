"""Drifted columns in a fit: what is tried, and how much each map of the target counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_softmax

from halfseen.align import (
    FAR,
    ColumnMap,
    Continuous,
    continuous_columns,
    drift_of,
    implausibility,
    judged_weights,
)
from halfseen.arrays import Floats, Matrix
from halfseen.blocks import Blocks
from halfseen.labels import LabelKind
from halfseen.members import NETWORKS, Aligned, AlignedLearner, Learner, Member, Sample
from halfseen.members.aligned import settled
from halfseen.model.self_training import SHARE, self_trained
from halfseen.weights.combining import Weights

MOST_ROWS = 3_000
"""Target rows that maps are judged on."""
MOVING = 0.45
"""How much more plausible, in nats, an answer must be to pay for moving columns: with other class
shares on the target, moved columns can look better than they are."""
MEASURED, MOVED = 2 / 3, 1 / 2
"""Shares of inputs that are continuous, and of those that moved, where instruments drifted."""
SHIFT, STRETCH, SMALLEST = 0.5, 1.5, 1e-12
"""A column has moved by so many standard deviations, or so many times its scale."""
MATCHES = 6
"""How often class shares and moments are matched in turn; they hardly move after that."""
MAP_WORDS = {
    "source": "the source's scale",
    "own": "each domain's own scale",
    "matched": "the scale of a source with the predicted class shares",
}


@dataclass(frozen=True, eq=False)
class Drift:
    """Target rows that are far from source rows.

    Parameters
    ----------
    distance
        How many times farther target rows are from source rows than those from each other.
    columns
        The continuous ones among the observed inputs.
    of_instruments
        Whether most inputs are measured and most of those moved: then the readings are taken to
        have changed, and columns are mapped. Where a few moved, the rows are other rows.
    """

    distance: float
    columns: Continuous
    of_instruments: bool


def find_drift(
    measured: Continuous | None, source: Matrix, target: Matrix, observed: Sequence[int]
) -> Drift | None:
    """Return what has drifted; None where target rows lie among those of the source."""
    if measured is None or not len(measured):
        return None
    columns = continuous_columns(measured, source, target)
    if not len(columns):
        return None
    distance = drift_of(source[:, observed], target[:, observed])
    if distance <= FAR:
        return None
    before, after = (rows[:, columns.positions].astype(np.float64) for rows in (source, target))
    spread = np.maximum(before.std(axis=0), SMALLEST)
    shift = np.abs(after.mean(axis=0) - before.mean(axis=0)) / spread
    stretch = np.abs(np.log(np.maximum(after.std(axis=0), SMALLEST) / spread))
    moved = (shift > SHIFT) | (stretch > np.log(STRETCH))
    mostly = len(columns) >= MEASURED * len(observed) and moved.mean() >= MOVED
    return Drift(distance, columns, bool(mostly))


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


def settle_maps(
    drift: Drift,
    learners: Sequence[AlignedLearner],
    members: Sequence[Member],
    weights: Sequence[float],
    source: Sample,
    target: Matrix,
    label_kind: LabelKind,
    blocks: Blocks,
) -> tuple[tuple[Member, ...], tuple[float, ...], dict[str, Any]]:
    """Return members with maps of the target, their weights, and what was found.

    Three maps of values and of logarithms are judged by what members say of target rows under
    each: the source's scale, the target's own, and the one under which the target has the
    moments of a source with the class shares that are predicted. The last is found in turns, as
    location-scale target shift has it. Where their answer is sure enough it teaches one member
    more, of the target's own rows (:func:`halfseen.model.self_training.self_trained`).

    References
    ----------
    K. Zhang, B. Schölkopf, K. Muandet, Z. Wang, "Domain adaptation under target and conditional
    shift", ICML 2013.
    """
    shares = label_kind.targets(source.labels)
    prior = (shares.sum(0) + 0.5) / (len(shares) + 0.5 * label_kind.outputs)
    rows = target[np.random.default_rng(0).permutation(len(target))[:MOST_ROWS]]
    groups: list[tuple[bool, list[int], dict[str, ColumnMap]]] = []
    judged: list[float] = []
    for log in (False, True):
        chosen = [k for k, learner in enumerate(learners) if learner.logarithm == log]
        group = _Group(
            [_aligned(members[k]) for k in chosen], np.array([weights[k] for k in chosen])
        )
        home = learners[chosen[0]].source
        own = ColumnMap.standard(drift.columns, target, logarithm=log)
        maps = {"source": home, "own": own}
        maps["matched"] = _matched(group, home, own, source, shares, rows)
        at_home = home(source.inputs)[:, home.positions]
        for mapped in maps.values():
            distance = drift_of(at_home, mapped(rows)[:, home.positions])
            judged.append(implausibility(group.answer(rows, mapped), prior, distance))
        groups.append((log, chosen, maps))
    moved = [name != "source" for _, _, maps in groups for name in maps]
    counted = judged_weights(np.array(judged) + MOVING * np.array(moved))
    found, total = list(members), np.array(weights, dtype=np.float64)
    facts: list[dict[str, Any]] = []
    for number, (log, chosen, maps) in enumerate(groups):
        part = counted[number * len(maps) : (number + 1) * len(maps)]
        of_group = [_aligned(members[k]) for k in chosen]
        for k, member in zip(chosen, settled(of_group, list(maps.values()), part), strict=True):
            found[k] = member
        sum_of_group = total[chosen].sum()
        equal = np.full(len(chosen), 1.0 / len(chosen))
        share = total[chosen] / sum_of_group if sum_of_group > 0 else equal
        total[chosen] = share * part.sum() * min(1.0, sum(weights))
        for name, value, count in zip(maps, judged[number * 3 :], part, strict=False):
            facts.append(
                {
                    "values": "logarithms" if log else "values",
                    "scale": MAP_WORDS[name],
                    "implausibility": float(value),
                    "weight": float(count),
                }
            )
    told = {"drift": drift.distance, "columns": len(drift.columns), "maps": facts}
    answers = [member.answer(rows) for member in found]
    _, _, logarithms = groups[-1]
    extra = self_trained(
        Weights(tuple(total), product=True).combined(answers, label_kind),
        rows,
        logarithms["source"],
        logarithms["own"],
        blocks,
    )
    if extra is not None:
        found, total = [*found, extra], np.append((1.0 - SHARE) * total, SHARE)
    return tuple(found), tuple(float(weight) for weight in total), told


@dataclass(frozen=True, eq=False)
class _Group:
    """Members that learned from the same values, asked together under one map."""

    members: Sequence[Aligned]
    weights: Floats

    def answer(self, rows: Matrix, mapped: ColumnMap) -> Floats:
        moved = mapped(rows)
        weights = self.weights if self.weights.sum() > 0 else np.ones(len(self.weights))
        answers = [aligned.member.answer(moved) for aligned in self.members]
        found: Floats = log_softmax(np.tensordot(weights / weights.sum(), answers, 1), axis=1)
        return found


def _matched(
    group: _Group, home: ColumnMap, start: ColumnMap, source: Sample, shares: Floats, rows: Matrix
) -> ColumnMap:
    """Return the map after some turns of class shares and moments."""
    at_home = home.mapped(home.values(source.inputs))
    counts = np.maximum(shares.sum(0), 1e-9)[:, None]
    means = shares.T @ at_home / counts
    squares = shares.T @ np.square(at_home) / counts
    values, mapped = home.values(rows), start
    for _ in range(MATCHES):
        predicted = np.exp(group.answer(rows, mapped)).mean(axis=0)
        mean = predicted @ means
        deviation = np.sqrt(np.maximum(predicted @ squares - mean**2, 0.0))
        mapped = home.moved_to(values, mean, deviation)
    return mapped


def _aligned(member: Member) -> Aligned:
    assert isinstance(member, Aligned)
    return member
