"""Out-of-fold soft labels: what teachers say of source rows that they were not fitted on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from halfseen.arrays import Floats
from halfseen.blocks import Blocks
from halfseen.labels import LabelKind
from halfseen.members import (
    AlignedLearner,
    BoostedTrees,
    BoostedTreesLearner,
    Forest,
    ForestLearner,
    Learner,
    Member,
    RegressionLearner,
    Sample,
    Task,
)
from halfseen.splitting import folds, rarest_class

__all__ = ["Lessons", "is_student", "lessons", "taught", "what_was_taught"]

FOLDS = 3
SHARE = 0.5
"""How much of a student's label is the teacher's opinion; the rest is the true label."""


@dataclass(frozen=True, eq=False)
class Lessons:
    """Soft labels of source rows.

    Parameters
    ----------
    complete
        By teachers that see (x1, x2).
    control
        By teachers that see x1 alone: what soft labels bring by themselves.
    """

    complete: Floats
    control: Floats


STUDENTS = frozenset({BoostedTrees.kind, Forest.kind})
"""Members that soft labels steady; a penalised regression has little to gain."""


def is_student(learner: Learner) -> bool:
    """Whether what it fits learns from soft labels, itself or behind a map of columns."""
    inner = learner.learner if isinstance(learner, AlignedLearner) else learner
    return inner.name in STUDENTS


def lessons(
    task: Task, *, control: bool = True, teachers: Sequence[Learner] | None = None
) -> Lessons | None:
    """Return soft labels of a task's source rows; None where a class is too rare for folds.

    Without `control` the control's labels are those of the complete source.
    """
    labels = task.source.labels
    if labels.ndim == 2 or rarest_class(task.label_kind.strata(labels)) < FOLDS:
        return None
    everything = replace(task, blocks=Blocks(task.blocks.shape, (), task.blocks.names))
    complete = _out_of_fold(everything, teachers or _teachers(everything))
    if not control:
        return Lessons(complete, complete)
    return Lessons(complete, _out_of_fold(task, teachers or _teachers(task)))


def _teachers(task: Task) -> tuple[Learner, ...]:
    """Return what teaches by default; the regression's penalty serves all folds."""
    return (
        RegressionLearner.settled(task),
        BoostedTreesLearner(rounds=100, rate=0.08),
        ForestLearner(size=100),
    )


def taught(source: Sample, soft_labels: Floats, label_kind: LabelKind) -> Sample:
    """Return rows whose labels are half true and half the teachers' opinion.

    Examples
    --------
    >>> rows = Sample(np.zeros((1, 2), dtype=np.float32), np.array([1]))
    >>> taught(rows, np.array([[0.4, 0.6]]), Classes.of(2)).labels
    array([[0.2, 0.8]])
    """
    labels = (1.0 - SHARE) * label_kind.targets(source.labels) + SHARE * soft_labels
    return Sample(source.inputs, labels, source.weights)


def what_was_taught(student: Member, control: Member, held_out: Sample, task: Task) -> Floats:
    """Return how much less each held-out row costs a student of the complete source.

    The control learned in the same way, from teachers that saw x1 alone: what is left between
    the two is what x2 taught.
    """
    kind, hidden = task.label_kind, task.blocks.hide(held_out.inputs)
    taught_well, alone = (
        kind.row_losses(kind.shown(member.answer(hidden)), held_out.labels)
        for member in (student, control)
    )
    gain: Floats = alone - taught_well
    return gain


def _out_of_fold(task: Task, teachers: Sequence[Learner]) -> Floats:
    """Return the geometric mean of the teachers' opinions, each row by those that lacked it."""
    source, kind = task.source, task.label_kind
    strata = kind.strata(source.labels)
    found = np.empty((len(source), kind.outputs))
    for training, others in folds(strata, FOLDS, task.seed).split(source.inputs, strata):
        part = replace(task, source=source[training], checkpoint=None, title="")
        answers = [teacher.fit(part).answer(source.inputs[others]) for teacher in teachers]
        equal = np.full(len(teachers), 1.0 / len(teachers))
        found[others] = kind.shown(kind.multiplied(equal, np.stack(answers)))
    return found
