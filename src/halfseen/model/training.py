"""Every training of a fit: members by fold, what teachers tell them, and where each stands."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from halfseen.arrays import Floats
from halfseen.members import (
    Learner,
    Member,
    NetworksLearner,
    NetworksMember,
    Sample,
    Task,
    words_of,
)
from halfseen.model.rows import Fold, PreparedRows
from halfseen.model.settings import FitSettings
from halfseen.networks.methods import Method, method_named
from halfseen.networks.training import Progress
from halfseen.options import Inputs
from halfseen.parallel import present_ranks
from halfseen.teaching import Lessons, is_student, lessons, taught, what_was_taught

__all__ = ["Hooks", "Trainings"]


@dataclass(frozen=True)
class Hooks:
    """Where a fit tells what it does, and where it keeps its state.

    Parameters
    ----------
    progress
        Makes the display of one training, by its title.
    part
        Told which part of the fit begins, how many are done, and how many there are.
    say
        Told in sentences what is going on.
    checkpoints
        Folder that keeps the state of each training after every epoch. The same call with the
        same rows continues from it; it can be deleted when the model is there.
    """

    progress: Callable[[str], Progress] = field(default=lambda title: Progress())
    say: Callable[[str], None] = field(default=lambda sentence: None)
    checkpoints: Path | None = None
    part: Callable[[str, int, int], None] = field(default=lambda doing, done, parts: None)


class Trainings:
    """Fits members on parts of the rows, none twice.

    Parameters
    ----------
    rows, settings, hooks, inputs
        As the fit has them.
    identity
        What tells the rows from others, beside their fingerprint.
    teaches
        Whether teachers on the complete source give soft labels.
    """

    def __init__(
        self,
        rows: PreparedRows,
        settings: FitSettings,
        hooks: Hooks,
        inputs: Inputs,
        identity: Mapping[str, Any],
        *,
        teaches: bool,
    ) -> None:
        self.rows, self.settings, self.hooks, self._inputs = rows, settings, hooks, inputs
        self._identity, self._teaches = identity, teaches
        self._ranks = present_ranks()
        self._shared: dict[tuple[str, int | None], Member] = {}
        self._begun = 0
        self._trained: dict[str, list[NetworksMember]] = {}
        self._lessons: dict[int | None, Lessons | None] = {}
        self._gains: list[Floats] = []

    def members(
        self, method: Method, learners: Sequence[Learner], fold: int | None, source: Sample
    ) -> tuple[Member, ...]:
        """Fit every member on some rows; those that do not depend on the model once for all."""
        task = self.task(method, fold, source)
        found: list[Member] = []
        for learner in learners:
            self._begin(learner, task)
            if isinstance(learner, NetworksLearner):
                found.append(self._networks(method, learner, fold, task))
                continue
            key = (learner.name, fold)
            if key not in self._shared:
                given = self._taught(task, fold) if is_student(learner) else task
                self._shared[key] = learner.fit(given)
            found.append(self._shared[key])
        return tuple(found)

    def compare_teachers(
        self, learners: Sequence[Learner], members: Sequence[Member], number: int, fold: Fold
    ) -> None:
        """Compare a student of the complete source with one whose teachers saw x1 alone."""
        given = self._lessons.get(number)
        if given is None:
            return
        student = next((k for k, learner in enumerate(learners) if is_student(learner)), None)
        if student is None:
            return
        task = self.task(method_named(self.settings.models[0]), number, fold.training)
        source = taught(fold.training, given.control, task.label_kind)
        control = learners[student].fit(replace(task, source=source))
        self._gains.append(
            self._ranks.from_first(
                lambda: what_was_taught(members[student], control, fold.held_out, task)
            )
        )

    @property
    def gain(self) -> dict[str, float]:
        """The mean of what x2 taught each held-out row, with its standard error."""
        if not self._gains:
            return {}
        gains = np.concatenate(self._gains)
        error = gains.std(ddof=1) / np.sqrt(len(gains))
        return {"gain": float(gains.mean()), "standard_error": float(error), "rows": len(gains)}

    def _begin(self, learner: Learner, task: Task) -> None:
        """Tell that a member is next: one of each kind for every fold and model, then the last."""
        everything = len(self.settings.members_for(self._inputs, self.rows.label_kind)) * (
            len(self.rows.folds) * len(self.settings.models) + 1
        )
        words = words_of(learner.name, self.rows.label_kind)
        doing = f"{words}, {task.title}" if task.title else words
        self.hooks.part(doing, min(self._begun, everything), everything)
        self._begun += 1

    def _networks(
        self, method: Method, learner: NetworksLearner, fold: int | None, task: Task
    ) -> NetworksMember:
        """Train networks on some rows; those of all folds at once."""
        if fold is None:
            return learner.fit(task)
        if method.name not in self._trained:
            parts = enumerate(self.rows.folds)
            tasks = [self.task(method, number, part.training) for number, part in parts]
            self._trained[method.name] = learner.fit_all(tasks)
        return self._trained[method.name][fold]

    def _taught(self, task: Task, fold: int | None) -> Task:
        """Return the task with half of each label from teachers that saw the complete source."""
        if not self._teaches or not task.blocks.missing:
            return task
        if fold not in self._lessons:
            self._lessons[fold] = self._ranks.from_first(
                lambda: lessons(task, control=fold is not None)
            )
        given = self._lessons[fold]
        if given is None:
            return task
        return replace(task, source=taught(task.source, given.complete, task.label_kind))

    def task(self, method: Method, fold: int | None, source: Sample) -> Task:
        """Return one training, with the file that keeps its state."""
        rows, folds = self.rows, len(self.rows.folds)
        part = "all rows" if fold is None else f"part {fold + 1} of {folds}"
        alone = folds + rows.refits_networks == 1
        fingerprint = self._fingerprint(method)
        checkpoint = self.hooks.checkpoints
        if checkpoint is not None:
            checkpoint = checkpoint / f"{fingerprint[:16]}-{fold}.safetensors"
        stream = None
        if rows.stream is not None:
            stream = rows.stream, min(rows.stream.source_rows, rows.stream.target_rows)
        return Task(
            rows.blocks,
            rows.label_kind,
            source,
            rows.target,
            self.settings.seed,
            stream,
            fingerprint,
            checkpoint,
            self.hooks.progress,
            "" if alone else part,
        )

    def _fingerprint(self, method: Method) -> str:
        """Hash what determines a training, so that no other one is continued by mistake."""
        facts = {
            "rows": self.rows.fingerprint,
            **self._identity,
            "method": method.name,
            "options": {name: repr(value) for name, value in self.settings.options.items()},
            "preset": [self.settings.preset, self.settings.divergence, self.settings.refine],
            "seed": self.settings.seed,
        }
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
