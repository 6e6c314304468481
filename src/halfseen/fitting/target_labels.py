"""Labels that some target rows have: what a fit makes of them, and what they say of the model.

A few labels weigh and calibrate what was learned without them; from :data:`ENOUGH` on, members
that see x1 alone are also fitted on source and labelled target rows together. Either is done only
where it lowers the loss of labelled rows that had no part in it. Intervals of amounts are always
scaled by them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from halfseen.arrays import Floats
from halfseen.members import (
    LEARNERS,
    Aligned,
    Learner,
    Member,
    RegressionLearner,
    Sample,
    TrainingJob,
)
from halfseen.metrics import Labels
from halfseen.model.evaluation import evaluation
from halfseen.model.model import Model
from halfseen.targets import TargetType
from halfseen.weights import Weights

ENOUGH = 30
"""Labelled target rows from which members also learn from them."""
FOLDS = 5
REPEATS = 5
"""How often a labelled target row is shown, beside each source row once."""
LEARNED_SHARE = 0.8
"""Weight of members that learned from labelled rows, before any of these rows speaks."""
WITH_LABELS = ", target labels"
"""Marks the name of a member that learned from labelled target rows."""


def with_target_labels(
    model: Model, names: Sequence[str], labelled: Sample, task: TrainingJob, kinds: Sequence[str]
) -> Model:
    """Return the model as labelled target rows advise, with what was measured on them.

    It was fitted without any target label, and `names` are those of its members. `task` holds the
    source rows and the target's, and `kinds` are members that may learn from both; networks are
    left out.
    """
    stages = {"nothing": _Stage.of(model, names, labelled)}
    stages["weights"] = stages["nothing"]
    learners = [LEARNERS[kind]() for kind in kinds if kind in LEARNERS]
    if len(labelled) >= ENOUGH and learners:
        stages["training"] = stages["weights"].joined_by(learners, labelled, task)
    kind = model.target_type
    answers = {"nothing": model.raw_prediction(labelled.inputs)} | {
        name: stages[name].cross_validated() for name in list(stages)[1:]
    }
    labels = labelled.labels
    losses = {
        name: float(kind.row_losses(kind.to_predictions(answer), labels).mean())
        for name, answer in answers.items()
    }
    used = min(losses, key=losses.__getitem__)
    found = model if used == "nothing" else stages[used].selected()
    kept = kind.recalibrated(answers[used], labels, model.metrics)
    metrics = dict(model.metrics) | dict(found.metrics) | kept
    shown = _recalibrated(answers[used], labels, model)
    metrics["target_labels"] = {
        "rows": len(labelled),
        "used_for": used,
        "losses": losses,
        "measured": evaluation(shown, labels, model.metrics, kind, fewest=1),
    }
    return replace(found, metrics=metrics)


@dataclass(frozen=True, eq=False)
class _Stage:
    """A model whose members are weighed anew by answers about labelled target rows."""

    model: Model
    names: tuple[str, ...]
    """Of the members; those of one name are weighed together."""
    labels: Labels
    answers: tuple[Floats, ...]
    """What each member says of the labelled rows, never having learned from them."""

    @property
    def target_type(self) -> TargetType:
        """What is predicted."""
        return self.model.target_type

    @classmethod
    def of(cls, model: Model, names: Sequence[str], labelled: Sample) -> _Stage:
        """Return the stage of members that learned from no label of the target.

        Those behind maps are each a member by itself, under each map: labels tell maps apart.
        """
        apart = [
            voice
            for name, member, weight in zip(
                names, model.members, model.weights.members, strict=True
            )
            for voice in _voices(name, member, weight)
        ]
        names, members, weights = zip(*apart, strict=True)
        model = replace(model, members=members, weights=replace(model.weights, members=weights))
        answers = tuple(member.raw_prediction(labelled.inputs) for member in members)
        return cls(model, names, labelled.labels, answers)

    def joined_by(self, learners: Sequence[Learner], labelled: Sample, task: TrainingJob) -> _Stage:
        """Return the stage with members that learn from source and labelled rows together."""
        order = np.random.default_rng(task.seed).permutation(len(labelled))
        everything = replace(task, source=_together(task.source, labelled))
        settled = [
            RegressionLearner.tuned(everything) if isinstance(k, RegressionLearner) else k
            for k in learners
        ]
        apart = [np.empty((len(labelled), task.target_type.outputs)) for _ in settled]
        for number in range(FOLDS):
            held_out = order[number::FOLDS]
            rest = np.setdiff1d(order, held_out)
            part = replace(task, source=_together(task.source, labelled[rest]))
            for learner, answer in zip(settled, apart, strict=True):
                member = learner.fit(part)
                answer[held_out] = member.raw_prediction(labelled.inputs[held_out])
        members = tuple(learner.fit(everything) for learner in settled)
        kept = [(1.0 - LEARNED_SHARE) * weight for weight in self.model.weights.members]
        shares = [LEARNED_SHARE / len(members)] * len(members)
        weights = replace(self.model.weights, members=(*kept, *shares))
        names = (*self.names, *(f"{learner.name}{WITH_LABELS}" for learner in settled))
        model = replace(self.model, members=(*self.model.members, *members), weights=weights)
        return _Stage(model, names, self.labels, (*self.answers, *apart))

    @cached_property
    def groups(self) -> list[list[int]]:
        """Members that share one weight: networks of several folds."""
        found: dict[Any, list[int]] = {}
        for place, (name, member) in enumerate(zip(self.names, self.model.members, strict=True)):
            found.setdefault(place if isinstance(member, Aligned) else name, []).append(place)
        return list(found.values())

    def cross_validated(self) -> Floats:
        """Return answers about the labelled rows, each by weights that others advise."""
        found = np.empty_like(self.answers[0])
        for others, rows in _folds(len(self.labels)):
            weights, bias = self._fitted(others)
            answers = [answer[rows] for answer in self.answers]
            found[rows] = self._combined(weights, answers, bias)
        return found

    def selected(self) -> Model:
        """Return the model with the weights and the bias that all labelled rows advise."""
        weights, bias = self._fitted(np.arange(len(self.labels)))
        # What answers speak of now: what is predicted for the labelled rows.
        kind = self.target_type
        together = kind.to_predictions(self._combined(weights, self.answers, bias))
        metrics: dict[str, Any] = {kind.constant_name: together.mean(axis=0).tolist()}
        if len(set(self.names)) > 1:
            metrics["weights"] = {
                name: float(sum(w for w, n in zip(weights, self.names, strict=True) if n == name))
                for name in dict.fromkeys(self.names)
            }
        settled = replace(self.model.weights, members=weights, bias=bias)
        return replace(self.model, weights=settled, metrics=metrics)

    def _fitted(self, rows: npt.NDArray[np.intp]) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return each member's weight, and what is added to each class, as some rows advise."""
        labels = self.labels[rows]
        before = np.array(self.model.weights.members)
        start = [float(before[group].sum()) for group in self.groups]
        shares = [
            before[group] / total if total > 0 else np.full(len(group), 1.0 / len(group))
            for group, total in zip(self.groups, start, strict=True)
        ]
        kind = self.target_type
        answers = [
            self._combined(tuple(share), [self.answers[place][rows] for place in group])
            for group, share in zip(self.groups, shares, strict=True)
        ]
        found = kind.fit_shares(answers, labels, start)
        weights = np.empty(len(before))
        for group, share, weight in zip(self.groups, shares, found, strict=True):
            weights[group] = weight * share
        return tuple(weights.tolist()), kind.fit_bias(self._combined(found, answers), labels)

    def _combined(
        self, shares: tuple[float, ...], answers: Sequence[Floats], bias: tuple[float, ...] = ()
    ) -> Floats:
        return Weights(shares, bias).combined(answers, self.target_type)


def _folds(count: int) -> Iterator[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]]:
    """Give the other rows and the rows of each fold."""
    order = np.random.default_rng(0).permutation(count)
    for number in range(FOLDS):
        rows = order[number::FOLDS]
        yield np.setdiff1d(order, rows), rows


def _recalibrated(answer: Floats, labels: Labels, model: Model) -> Floats:
    """Return what is shown of labelled rows, each calibrated by the others."""
    kind, metrics = model.target_type, model.metrics
    found = kind.to_predictions(answer, metrics)
    for others, rows in _folds(len(labels)):
        kept = kind.recalibrated(answer[others], labels[others], metrics)
        found[rows] = kind.to_predictions(answer[rows], metrics | kept)
    return found


def _voices(name: str, member: Member, weight: float) -> list[tuple[str, Member, float]]:
    """Return a member with its name and weight, or each part of one behind maps."""
    if not isinstance(member, Aligned) or len(member.alone()) == 1:
        return [(name, member, weight)]
    return [(part.title, part, weight * share) for part, share in member.alone()]


def _together(source: Sample, labelled: Sample) -> Sample:
    """Return source rows and labelled target rows, these several times."""
    repeated = np.repeat(np.arange(len(labelled)), REPEATS)
    weights = source.weights
    if weights is not None:
        weights = np.concatenate([weights, np.ones(len(repeated))])
    return Sample(
        np.concatenate([source.inputs, labelled.inputs[repeated]]),
        np.concatenate([source.labels, labelled.labels[repeated]]),
        weights,
    )
