"""Soft labels: what teachers that see (x1, x2) say of rows, with a label and without.

Teachers learn from the labelled rows. What they say of others teaches students on x1: of labelled
rows out of fold, and of complete rows without a label. How far they are believed is decided by
their lead over teachers that see x1 alone, on labelled rows that were held out from both.

References
----------
E. Xia, M. Wainwright, "Prediction aided by surrogate training", arXiv 2412.09364.
S. Yang et al., "Toward understanding privileged features distillation", arXiv 2209.08754.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.special import expit, softmax

from halfseen.arrays import Floats, Matrix
from halfseen.blocks import Blocks
from halfseen.errors import InputError
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
from halfseen.splitting import folds, held_out_share, rarest_class
from halfseen.targets import TargetType

if TYPE_CHECKING:
    from halfseen.members.given import Teacher


Places = npt.NDArray[np.intp]

FOLDS = 3
FOLDS_OF_FEW = 5
"""Beside rows without a label, teachers of few labels learn from four fifths of them.

Where a student is only measured, two thirds are enough.
"""
SHARE = 0.5
"""How much of a student's label is the teacher's opinion; the rest is the true label."""
FEW = 2_000
"""Rows below which the control has every fold; of more, one is enough to tell what x2 taught."""
TEMPERED = 0.5
"""The power of the likelihood of held-out rows that a teacher's opinion counts by."""
UNHEATED = 5.0
"""The ridge on the logarithm of the temperature: about so many rows that ask for none."""
TRUST, STUDENT_TRUST, NARROW_TRUST = (2.0, 1.0), (0.75, 0.0), (1.0, -1.0)
"""The log-odds of being believed: so much for each standard error of lead, and so much before.

Of teachers that see (x1, x2) beside those that see x1 alone, in the soft labels; of students beside
members on labels alone, in the answer; and of teachers that see x2 alone beside those that see all:
mostly they know less, but no noise in what x1 says reaches a student through them.
"""
STUDENT_PENALTY = 0.1
"""Of a regression on soft labels: folds of what teachers say would tell none."""
STUDENTS = frozenset({BoostedTrees.kind, Forest.kind})
"""Members that soft labels of labelled rows steady; a penalised regression has little to gain."""


@dataclass(frozen=True, eq=False)
class SoftLabels:
    """What teachers say of source rows, none of a row that it was fitted on."""

    complete: Floats
    """Soft labels by teachers that see (x1, x2)."""
    beyond: Floats
    """What the same teachers say of rows that were held out from all of them, or have no label."""
    controlled: Places
    """Places of the rows that have a control."""
    control: Floats
    """Their soft labels by teachers that see x1 alone: what soft labels bring by themselves."""
    beyond_control: Floats
    """What these say of rows without a label."""
    lead: float = np.inf
    """How much less held-out rows cost teachers that see x2, in standard errors."""

    @property
    def believed(self) -> float:
        """The share of students in the answer; the rest is that of members on labels alone.

        All of it where every row has a label.
        """
        rows, others = len(self.complete), len(self.beyond_control)
        doubt = 1.0 - _share(self.lead, STUDENT_TRUST)
        return 1.0 - doubt * others / (rows + others)


def is_student(learner: Learner) -> bool:
    """Whether what it fits learns from soft labels, itself or behind a map of columns."""
    inner = learner.learner if isinstance(learner, AlignedLearner) else learner
    return inner.name in STUDENTS


def _teachers(task: TrainingJob, large: bool, given: Sequence[Any] = ()) -> Sequence[Teacher]:
    """Return what teaches; the regression's penalty serves all folds."""
    brought = []
    if given:
        from halfseen.members.given import GivenTeacher

        brought = [GivenTeacher(estimator) for estimator in given]
    return (
        ForestLearner(size=50),
        BoostedTreesLearner(rounds=100, rate=0.08, large=large),
        RegressionLearner.tuned(task),
        *brought,
    )


def _seeing_everything(task: TrainingJob) -> TrainingJob:
    return replace(task, blocks=Blocks(task.blocks.shape, (), task.blocks.names))


# --- all rows have a label ------------------------------------------------------------------


def soft_labels_of(
    tasks: Sequence[TrainingJob],
    held_out: Sequence[Matrix] | None = None,
    *,
    control: bool = True,
    large: bool = False,
    teachers: Sequence[Any] = (),
) -> list[SoftLabels | None]:
    """Return soft labels of each task's source rows; None where a class is too rare for folds.

    The tasks are trainings on parts of one table. Their teachers, whose boosted trees may be
    `large` and which `teachers` join, are asked about complete rows that a task holds out too; as a
    `control` others teach that see x1 alone.
    """
    asked = [task.source.inputs[:0] for task in tasks] if held_out is None else held_out
    complete = [_seeing_everything(task) for task in tasks]
    privileged, plain = run_parallel(
        [partial(_teachers, part[0], large, teachers) for part in (complete, tasks)]
    )

    def taught_rows(number: int) -> SoftLabels | None:
        task, whole = tasks[number], complete[number]
        labels, kind = task.source.labels, task.target_type
        if labels.ndim == 2 or rarest_class(kind.strata(labels)) < FOLDS:
            return None
        _, soft, beyond = _out_of_fold(whole, privileged, asked[number])
        if not control:
            return _uncontrolled(_agreed(soft, kind))
        parts = FOLDS if len(labels) < FEW else 1
        nobody = asked[number][:0]
        places, alone, _ = _out_of_fold(task, plain, nobody, parts=parts)
        known = _agreed(alone, kind)
        return SoftLabels(_agreed(soft, kind), _agreed(beyond, kind), places, known, known[:0])

    return run_parallel([partial(taught_rows, number) for number in range(len(tasks))])


def _uncontrolled(soft: Floats) -> SoftLabels:
    return SoftLabels(soft, soft[:0], np.arange(0), soft[:0], soft[:0])


def of_all_rows(
    given: Sequence[SoftLabels], places: Sequence[tuple[Places, Places]], kind: TargetType
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
    task: TrainingJob,
    teachers: Sequence[Teacher],
    beyond: Matrix,
    *,
    count: int = FOLDS,
    parts: int | None = None,
) -> tuple[Places, Floats, Floats]:
    """Return places of the rows of some folds, each teacher's opinions on them and on others.

    Opinions are answers, (teachers, rows, outputs), each row's by teachers that lacked it; those
    of rows `beyond` are means over folds.
    """
    source = task.source
    strata = task.target_type.strata(source.labels)
    splits = list(folds(strata, count, task.seed).split(source.inputs, strata))[:parts]

    def opinion(teacher: Teacher, number: int) -> Floats:
        training, others = splits[number]
        part = replace(task, source=source[training], checkpoint=None, title="")
        asked = np.concatenate([source.inputs[others], beyond])
        return teacher.fit(part).raw_prediction(asked)

    pairs = [(teacher, number) for number in range(len(splits)) for teacher in teachers]
    found = run_parallel([partial(opinion, *pair) for pair in pairs])
    size = len(teachers)
    by_fold = [np.stack(found[n * size : (n + 1) * size]) for n in range(len(splits))]
    known = [len(others) for _, others in splits]
    places = np.concatenate([others for _, others in splits])
    order = np.argsort(places)
    own = np.concatenate([part[:, :rows] for part, rows in zip(by_fold, known, strict=True)], 1)
    others = np.mean([part[:, rows:] for part, rows in zip(by_fold, known, strict=True)], axis=0)
    return places[order], own[:, order], others


def answered_out_of_fold(task: TrainingJob, count: int) -> Floats:
    """Return what a task's teachers say of each source row, none of a row it was fitted on."""
    teachers, nobody = _teachers(task, large=False), task.source.inputs[:0]
    _, answers, _ = _out_of_fold(task, teachers, nobody, count=count)
    return _agreed(answers, task.target_type)


# --- few rows have a label ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Opinion:
    """What several teachers say together: of labelled rows, out of fold, and of others."""

    own: Floats
    beyond: Floats

    def lead_over(self, other: Opinion, task: TrainingJob) -> float:
        """Return how much less labelled rows cost than under another, in standard errors."""
        kind, source = task.target_type, task.source
        own, others = (
            kind.row_losses(kind.to_predictions(o.own), source.labels) for o in (self, other)
        )
        gains = (others - own) * _counted(source)
        error = float(gains.std(ddof=1)) / np.sqrt(len(gains))
        return float(gains.mean()) / error if error > 0.0 else 0.0

    def joined_by(self, other: Opinion, trust: tuple[float, float], task: TrainingJob) -> Opinion:
        """Return both as one; the other counts as its lead says."""
        share = _share(other.lead_over(self, task), trust)
        shares, kind = np.array([1.0 - share, share]), task.target_type
        return Opinion(
            kind.multiplied(shares, np.stack([self.own, other.own])),
            kind.multiplied(shares, np.stack([self.beyond, other.beyond])),
        )


def _share(lead: float, trust: tuple[float, float]) -> float:
    steepness, before = trust
    return float(expit(steepness * lead + before))


def soft_labels_of_few(
    task: TrainingJob,
    unlabelled: Matrix,
    *,
    teachers: Sequence[Any] = (),
    count: int = FOLDS_OF_FEW,
) -> SoftLabels:
    """Return soft labels of labelled rows, by teachers of `count` folds, and of rows without one.

    Each teacher counts by how likely it finds held-out rows, and together they are brought to the
    temperature that these ask for. Where teachers that see x2 are not ahead of those that see x1
    alone, the latter have their say in the soft labels too.
    """
    kind, labels, blocks = task.target_type, task.source.labels, task.blocks
    if rarest_class(kind.strata(labels)) < 2:
        raise InputError(
            "Of one class there is a single labelled row: label another one of it, or leave the "
            "class out."
        )
    count = count if len(labels) < FEW else FOLDS

    def opinion(missing: Sequence[int]) -> Opinion:
        view = replace(task, blocks=Blocks(blocks.shape, tuple(missing), blocks.names))
        teachers_ = _teachers(view, False, teachers)
        _, own, beyond = _out_of_fold(view, teachers_, unlabelled, count=count)
        return _by_evidence(own, beyond, task.source, kind)

    plain = found = opinion(blocks.missing)
    lead = 0.0
    if blocks.missing:
        privileged = opinion(()).joined_by(opinion(blocks.observed), NARROW_TRUST, task)
        lead = privileged.lead_over(plain, task)
        found = plain.joined_by(privileged, TRUST, task)
    return SoftLabels(
        kind.to_predictions(found.own),
        kind.to_predictions(found.beyond),
        np.arange(len(labels)),
        kind.to_predictions(plain.own),
        kind.to_predictions(plain.beyond),
        lead,
    )


def _by_evidence(own: Floats, beyond: Floats, source: Sample, kind: TargetType) -> Opinion:
    """Return teachers' answers together, each by its likelihood on rows that it was not fitted on.

    Shares are those of a tempered likelihood; amounts are taken for normal about the best answer.
    """
    labels, counted = source.labels, _counted(source)
    losses = np.array(
        [counted @ kind.row_losses(kind.to_predictions(answer), labels) for answer in own]
    )
    if kind.outputs == 1:
        losses /= 2.0 * max(losses.min() / len(labels), np.finfo(float).tiny)
    shares = softmax(-TEMPERED * losses)
    own, beyond = kind.multiplied(shares, own), kind.multiplied(shares, beyond)
    if kind.outputs == 1:
        return Opinion(own, beyond)

    def loss(logarithm: float) -> float:
        shown = kind.to_predictions(kind.answers(np.exp(logarithm) * own))
        return float(counted @ kind.row_losses(shown, labels) + UNHEATED * logarithm**2 / 2.0)

    scale = np.exp(minimize_scalar(loss, bounds=(-2.0, 2.0), method="bounded").x)
    return Opinion(kind.answers(scale * own), kind.answers(scale * beyond))


def _counted(source: Sample) -> Floats:
    """Return how much each row counts, one on average."""
    weights = source.weights
    return np.ones(len(source)) if weights is None else weights / weights.mean()


def student_job(task: TrainingJob, unlabelled: Matrix, own: Floats, beyond: Floats) -> TrainingJob:
    """Return the task of a student: all rows, half of each known label from teachers."""
    source, kind = task.source, task.target_type
    rows = taught(source, own, kind)
    weights = None
    if source.weights is not None:
        mean = float(source.weights.mean())
        weights = np.concatenate([source.weights, np.full(len(unlabelled), mean)])
    inputs = np.concatenate([rows.inputs, unlabelled])
    joined = Sample(inputs, np.concatenate([rows.labels, beyond]), weights)
    return replace(task, source=joined, checkpoint=None)


def of_soft_labels(learner: Learner) -> Learner:
    """Return what fits a student: a regression has its penalty settled."""
    if isinstance(learner, RegressionLearner) and learner.penalty is None:
        return replace(learner, penalty=STUDENT_PENALTY)
    return learner


def half_of(job: TrainingJob) -> TrainingJob | None:
    """Return a training on half of the labelled rows; None where a class would have only one."""
    strata = job.target_type.strata(job.source.labels)
    rows, _ = held_out_share(strata, 0.5, job.seed)
    return replace(job, source=job.source[rows]) if rarest_class(strata[rows]) > 1 else None


def student_of_few(
    student: Learner, job: TrainingJob, unlabelled: Matrix, teachers: Sequence[Any] = ()
) -> Member:
    """Return a student of what teachers of a job's few labels say of all complete rows."""
    soft = soft_labels_of_few(job, unlabelled, teachers=teachers, count=FOLDS)
    return student.fit(student_job(job, unlabelled, soft.complete, soft.beyond))
