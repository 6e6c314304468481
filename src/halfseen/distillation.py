"""Out-of-fold soft labels: what teachers say of source rows that they were not fitted on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from halfseen.arrays import Floats, Matrix
from halfseen.blocks import Blocks
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
    TrainingJob,
)
from halfseen.parallel import run_parallel
from halfseen.splitting import folds, rarest_class
from halfseen.targets import TargetType

FOLDS = 3
SHARE = 0.5
"""How much of a student's label is the teacher's opinion; the rest is the true label."""
FEW = 2_000
"""Rows below which the control has every fold; of more, one is enough to tell what x2 taught."""


@dataclass(frozen=True, eq=False)
class SoftLabels:
    """What teachers say of source rows, none of a row that it was fitted on."""

    complete: Floats
    """Soft labels by teachers that see (x1, x2)."""
    beyond: Floats
    """What the same teachers say of rows that were held out from all of them."""
    controlled: npt.NDArray[np.intp]
    """Places of the rows that have a control."""
    control: Floats
    """Their soft labels by teachers that see x1 alone: what soft labels bring by themselves."""


STUDENTS = frozenset({BoostedTrees.kind, Forest.kind})
"""Members that soft labels steady; a penalised regression has little to gain."""


def is_student(learner: Learner) -> bool:
    """Whether what it fits learns from soft labels, itself or behind a map of columns."""
    inner = learner.learner if isinstance(learner, AlignedLearner) else learner
    return inner.name in STUDENTS


def _teachers(task: TrainingJob, large: bool) -> Sequence[Learner]:
    """Return what teaches; the regression's penalty serves all folds."""
    return (
        ForestLearner(size=50),
        BoostedTreesLearner(rounds=100, rate=0.08, large=large),
        RegressionLearner.tuned(task),
    )


def soft_labels_of(
    tasks: Sequence[TrainingJob],
    held_out: Sequence[Matrix] | None = None,
    *,
    control: bool = True,
    large: bool = False,
) -> list[SoftLabels | None]:
    """Return soft labels of each task's source rows; None where a class is too rare for folds.

    The tasks are trainings on parts of one table. Their teachers, whose boosted trees may be
    `large`, are asked about complete rows that a task holds out too; as a `control` others teach
    that see x1 alone.
    """
    asked = [task.source.inputs[:0] for task in tasks] if held_out is None else held_out
    complete = [replace(t, blocks=Blocks(t.blocks.shape, (), t.blocks.names)) for t in tasks]
    knowing, ignorant = run_parallel([partial(_teachers, p[0], large) for p in (complete, tasks)])

    def taught_rows(number: int) -> SoftLabels | None:
        task, whole = tasks[number], complete[number]
        labels = task.source.labels
        if labels.ndim == 2 or rarest_class(task.target_type.strata(labels)) < FOLDS:
            return None
        _, soft, beyond = _out_of_fold(whole, knowing, asked[number])
        if not control:
            return _uncontrolled(soft)
        parts = FOLDS if len(labels) < FEW else 1
        places, alone, _ = _out_of_fold(task, ignorant, asked[number][:0], parts)
        return SoftLabels(soft, beyond, places, alone)

    return run_parallel([partial(taught_rows, number) for number in range(len(tasks))])


def _uncontrolled(soft: Floats) -> SoftLabels:
    return SoftLabels(soft, soft[:0], np.arange(0), soft[:0])


def of_all_rows(
    given: Sequence[SoftLabels],
    places: Sequence[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]],
    kind: TargetType,
) -> SoftLabels:
    """Return soft labels of all rows, each by every teacher that was not fitted on it.

    `places` says of each lesson which rows were taught and which were held out.
    """
    rows = sum(map(len, places[0]))
    answers = np.empty((len(given), rows, kind.outputs))
    for answer, lesson, (training, others) in zip(answers, given, places, strict=True):
        answer[training] = kind.raw_prediction_of(lesson.complete)
        answer[others] = kind.raw_prediction_of(lesson.beyond)
    return _uncontrolled(_agreed(answers, kind))


def _agreed(answers: Floats, kind: TargetType) -> Floats:
    """Return the soft labels that several opinions with equal shares make."""
    return kind.to_predictions(kind.multiplied(np.full(len(answers), 1.0 / len(answers)), answers))


def taught(source: Sample, soft_labels: Floats, target_type: TargetType) -> Sample:
    """Return rows whose labels are half true and half the teachers' opinion.

    Examples
    --------
    >>> from halfseen.targets import ClassTarget
    >>> rows = Sample(np.zeros((1, 2), dtype=np.float32), np.array([1]))
    >>> taught(rows, np.array([[0.4, 0.6]]), ClassTarget.of(2)).labels
    array([[0.2, 0.8]])
    """
    labels = (1.0 - SHARE) * target_type.targets(source.labels) + SHARE * soft_labels
    return Sample(source.inputs, labels, source.weights)


def what_was_taught(
    student: Member, control: Member, held_out: Sample, task: TrainingJob
) -> Floats:
    """Return how much less each held-out row costs a student of the complete source.

    The control learned in the same way, from teachers that saw x1 alone: what is left between
    the two is what x2 taught.
    """
    kind, hidden = task.target_type, task.blocks.hide(held_out.inputs)
    taught_well, alone = (
        kind.row_losses(kind.to_predictions(member.raw_prediction(hidden)), held_out.labels)
        for member in (student, control)
    )
    gain: Floats = alone - taught_well
    return gain


def _out_of_fold(
    task: TrainingJob, teachers: Sequence[Learner], beyond: Matrix, parts: int = FOLDS
) -> tuple[npt.NDArray[np.intp], Floats, Floats]:
    """Return places and soft labels of the rows of some folds, and those of rows beyond.

    A soft label is the geometric mean of the teachers' opinions, each row by those that lacked it.
    """
    source, kind = task.source, task.target_type
    strata = kind.strata(source.labels)
    splits = list(folds(strata, FOLDS, task.seed).split(source.inputs, strata))[:parts]

    def opinion(teacher: Learner, number: int) -> Floats:
        training, others = splits[number]
        part = replace(task, source=source[training], checkpoint=None, title="")
        asked = np.concatenate([source.inputs[others], beyond])
        return teacher.fit(part).raw_prediction(asked)

    pairs = [(teacher, number) for number in range(parts) for teacher in teachers]
    found = run_parallel([partial(opinion, *pair) for pair in pairs])
    size = len(teachers)
    means = [np.mean(found[n * size : (n + 1) * size], axis=0) for n in range(parts)]
    known = [len(others) for _, others in splits]
    places = np.concatenate([others for _, others in splits])
    order = np.argsort(places)
    own = np.concatenate([mean[:rows] for mean, rows in zip(means, known, strict=True)])[order]
    others = np.mean([mean[rows:] for mean, rows in zip(means, known, strict=True)], axis=0)
    return places[order], _agreed(own[None], kind), _agreed(others[None], kind)
