"""Few labels in a fit of tables: students of all complete rows beside members on labels alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from halfseen.arrays import Floats, Matrix
from halfseen.distillation import (
    FOLDS,
    FOLDS_OF_FEW,
    SoftLabels,
    half_of,
    of_soft_labels,
    soft_labels_of_few,
    student_job,
    student_of_few,
    what_was_taught,
)
from halfseen.fitting.prepared_rows import Fold
from halfseen.members import NETWORKS, Learner, Member, TrainingJob

CONTROL, HALF = "control", "half"
"""Students that one is compared with: of teachers that saw x1 alone, and of half the labels."""
MEASURED = 2_000
"""Rows without a label that students learn from where they are only measured."""
Part = int | None
"""A fold; None stands for all rows."""


@dataclass(frozen=True)
class Distilled:
    """Fits a student: a member that learns from soft labels of rows with and without a label."""

    learner: Learner

    @property
    def name(self) -> str:
        return f"{self.learner.name}, distilled"

    def fit(self, task: TrainingJob) -> Member:
        """Learn from the rows of a task."""
        return of_soft_labels(self.learner).fit(task)


@dataclass(frozen=True, eq=False)
class FewLabels:
    """What teachers say of the rows of each part, and the trainings that follow from it."""

    parts: Mapping[Part, TrainingJob]
    soft: Mapping[Part, SoftLabels]
    students: Mapping[Part, TrainingJob]
    """The training of a student on each part."""
    others: Mapping[Part, Matrix]
    """The rows without a label that students of each part learn from."""
    teachers: tuple[Any, ...]

    @classmethod
    def of(
        cls,
        parts: Mapping[Part, TrainingJob],
        unlabelled: Matrix,
        *,
        final: Part,
        teachers: Sequence[Any],
        seed: int,
    ) -> FewLabels:
        """Ask teachers of each part's labelled rows; members of the part `final` will answer."""
        drawn = np.random.default_rng(seed).permutation(len(unlabelled))
        some = unlabelled[np.sort(drawn[:MEASURED])]
        soft, students, others = {}, {}, {}
        for part, job in parts.items():
            more, count = (unlabelled, FOLDS_OF_FEW) if part == final else (some, FOLDS)
            found = soft_labels_of_few(job, more, teachers=teachers, count=count)
            soft[part], others[part] = found, more
            students[part] = student_job(job, more, found.complete, found.beyond)
        return cls(parts, soft, students, others, tuple(teachers))

    def job(self, learner: Learner, part: Part) -> TrainingJob:
        """Return what a learner is trained on: a student on all rows, others on labels alone."""
        return (self.students if isinstance(learner, Distilled) else self.parts)[part]

    def controls(self, student: Learner, part: Part) -> dict[str, Callable[[], Member]]:
        """Return the trainings that tell what a student learned from."""
        job, soft, others = self.parts[part], self.soft[part], self.others[part]
        control = student_job(job, others, soft.control, soft.beyond_control)
        found: dict[str, Callable[[], Member]] = {CONTROL: partial(student.fit, control)}
        half = half_of(job)
        if half is not None:
            found[HALF] = partial(student_of_few, student, half, others, self.teachers)
        return found

    def gains(
        self,
        student: Distilled,
        members: Mapping[tuple[str, Part, int], Member],
        folds: Sequence[Fold],
        seed: int,
    ) -> dict[str, list[Floats]]:
        """Return how much less held-out rows cost a student than each control."""
        found = {
            control: [
                what_was_taught(
                    members[student.name, part, seed],
                    members[control, part, seed],
                    fold.held_out,
                    self.parts[part],
                )
                for part, fold in enumerate(folds)
                if (control, part, seed) in members
            ]
            for control in (CONTROL, HALF, student.learner.name)
        }
        return {control: gain for control, gain in found.items() if gain}

    def start(self, learners: Sequence[Learner]) -> tuple[float, ...]:
        """Return the shares of members before held-out rows speak.

        Teachers' evidence says how far students are believed beside members on labels alone.
        """
        believed = float(np.mean([soft.believed for soft in self.soft.values()]))
        students = [isinstance(one, Distilled) or one.name == NETWORKS for one in learners]
        shares = np.where(students, believed, 1.0 - believed)
        return tuple((shares / shares.sum()).tolist())

    @property
    def evidence(self) -> dict[str, float]:
        """How far ahead teachers are that see x2, and how far their students are believed."""
        whole = self.soft.get(None) or next(iter(self.soft.values()))
        return {"lead": float(whole.lead), "believed": float(whole.believed)}
