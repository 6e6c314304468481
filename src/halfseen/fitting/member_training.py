"""Every training of a fit: members by fold, what teachers tell them, and where each stands."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from halfseen.arrays import Floats
from halfseen.distillation import (
    SoftLabels,
    is_student,
    of_all_rows,
    soft_labels_of,
    taught,
    what_was_taught,
)
from halfseen.fitting.few_labels import CONTROL, HALF, Distilled, FewLabels
from halfseen.fitting.prepared_rows import PreparedRows
from halfseen.members import (
    NETWORKS,
    BoostedTreesLearner,
    Learner,
    Member,
    Regression,
    Sample,
    TrainingJob,
    words_of,
)
from halfseen.parallel import at_once_workers, run_parallel
from halfseen.progress import Progress
from halfseen.settings import FitSettings

if TYPE_CHECKING:
    from halfseen.fitting.image_teachers import ImageLabels
    from halfseen.members.network_members import NetworksLearner
    from halfseen.networks.variants import NetworkVariant
    from halfseen.options import Inputs

PUPIL = "pupil"
"""A student of the complete source that is compared with its control."""
_Key = tuple[str, int | None, int]
"""A kind of member, the part of the rows that it learned from, and its seed."""


@dataclass(frozen=True)
class Hooks:
    """Where a fit tells what it does, and where it keeps its state."""

    progress: Callable[[str], Progress] = field(default=lambda title: Progress())
    """Makes the display of one training, by its title."""
    say: Callable[[str], None] = field(default=lambda sentence: None)
    """Told in sentences what is going on."""
    checkpoints: Path | None = None
    """Folder that keeps the state of each training after every epoch. The same call with the same
    rows continues from it; it can be deleted when the model is there."""
    part: Callable[[str, int, int], None] = field(default=lambda doing, done, parts: None)
    """Told which part of the fit begins, how many are done, and how many there are."""


ALWAYS = ("boosted_trees", "regression")
"""Members that no time limit leaves out."""
TEACHERS = 3.0
"""How many times as long as the members their teachers are taken to need."""


def _inner(learner: Learner) -> str:
    """Return the kind of the member that learns, also behind a map of columns."""
    return learner.name.partition(",")[0]


class MemberTraining:
    """Fits members on parts of the rows, none twice.

    `identity` tells the rows from others, beside their fingerprint; where it `distils`, teachers on
    the complete source give soft labels; `seeds` is with how many each member is trained that
    depends on one.
    """

    def __init__(
        self,
        rows: PreparedRows,
        settings: FitSettings,
        hooks: Hooks,
        inputs: Inputs,
        identity: Mapping[str, Any],
        *,
        distils: bool,
        seeds: int = 1,
    ) -> None:
        self.rows, self.settings, self.hooks, self._inputs = rows, settings, hooks, inputs
        self._identity, self._distils, self.seeds = identity, distils, seeds
        self._variants = settings.variants(inputs)
        self._others: dict[_Key, Member] | None = None
        self._begun = 0
        self._gains: dict[str, list[Floats]] = {}
        self._few: FewLabels | None = None
        self._image_labels: dict[int | None, ImageLabels] = {}

    def members(
        self, learners: Sequence[Learner], fold: int | None, source: Sample
    ) -> tuple[tuple[Member, ...], ...]:
        """Return each learner's members, fitted on some rows; all but networks serve every model.

        They are as many as seeds, or one; networks of images as many for each model.
        """
        if self._others is None:
            self._others, self._gains = self._fit_others(learners)
        others = self._others

        def member(learner: Learner, seed: int) -> Member:
            if learner.name != NETWORKS:
                return others[learner.name, fold, seed]
            networks = cast("NetworksLearner", learner)
            task = self.job(networks.method, fold, source, seed)
            if self._few is not None:
                task = replace(task, source=self._few.students[fold].source)
            self._begin(learner, task)
            return networks.fit(self._taught_images(task, fold))

        return tuple(
            tuple(member(each, seed) for each in _answering(one) for seed in self._seeds_of(one))
            for one in learners
        )

    def _taught_images(self, job: TrainingJob, fold: int | None) -> TrainingJob:
        """Return the training of networks with what a teacher says of images without a label.

        It learned once, from rows that were not held out; it serves the training on all rows too.
        """
        rows = self.rows
        if self._inputs != "image" or rows.unlabelled is None:
            return job
        from halfseen.fitting.image_teachers import image_labels, image_student

        part = 0 if rows.folds and fold is None else fold
        if part not in self._image_labels:
            held_out = None if part is None else rows.folds[part].held_out
            first = replace(job, seed=self.settings.seed)
            found = image_labels(first, rows.unlabelled, held_out, self.settings)
            self._image_labels[part] = found
        return image_student(job, rows.unlabelled, self._image_labels[part])

    def _seeds_of(self, learner: Learner) -> range:
        """Return the seeds that a learner is trained with; regression has nothing to draw."""
        first = self.settings.seed
        return range(first, first + (1 if _inner(learner) == Regression.kind else self.seeds))

    def unaffordable(self, learners: Sequence[Learner], seconds: float) -> frozenset[str]:
        """Return the members, and ``teachers``, that would not be fitted within so many seconds.

        Each learner is timed on one part of the rows. Boosted trees and regression stay in any
        case, or the first learner where they were not asked for. How long networks take cannot
        be told beforehand: they are left out, unless they are alone.
        """
        rows, began = self.rows, time.perf_counter()
        others = [learner for learner in learners if learner.name != NETWORKS]
        if not others:
            return frozenset()
        sample = rows.folds[0].training if rows.folds else rows.whole
        assert sample is not None
        task = self.job(self._variants[0], 0, sample)
        parts = (len(rows.folds) + (rows.whole is not None)) / at_once_workers()
        cost = {learner.name: parts * len(self._seeds_of(learner)) for learner in others}
        always = [learner for learner in others if _inner(learner) in ALWAYS] or others[:1]
        taken: dict[str, float] = {}
        for learner in sorted(others, key=lambda each: each not in always):
            if learner in always or time.perf_counter() - began < seconds:
                start = time.perf_counter()
                learner.fit(task)
                taken[learner.name] = cost[learner.name] * (time.perf_counter() - start)
        left = seconds - (time.perf_counter() - began)
        left_out = {learner.name for learner in learners if learner.name == NETWORKS}
        for learner in sorted(others, key=lambda each: each not in always):
            needed = taken.get(learner.name, float("inf"))
            if learner not in always and needed > left:
                left_out.add(learner.name)
            else:
                left -= needed
        # Teachers are two sets, of smaller trees, in three folds of every part.
        students = [each for each in others if is_student(each) and each.name not in left_out]
        if students and self._distils and left < TEACHERS * sum(taken.values()):
            self._distils = False
            left_out.add("teachers")
        return frozenset(left_out)

    def _fit_others(
        self, learners: Sequence[Learner]
    ) -> tuple[dict[_Key, Member], dict[str, list[Floats]]]:
        """Fit all members but networks on all parts of the rows, several at once.

        Return them, and what x2 taught a student about the rows of each fold.
        """
        method, rows = self._variants[0], self.rows
        parts: dict[int | None, TrainingJob] = {
            number: self.job(method, number, fold.training)
            for number, fold in enumerate(rows.folds)
        }
        if rows.whole is not None:
            parts[None] = self.job(method, None, rows.whole)
        if self.distils_few:
            return self._fit_few(learners, parts)
        every = parts[None] if None in parts else parts[0]
        others = [
            learner.selected(every) if isinstance(learner, BoostedTreesLearner) else learner
            for learner in learners
            if learner.name != NETWORKS
        ]
        large = any(isinstance(each, BoostedTreesLearner) and each.large for each in others)
        students = [learner for learner in others if is_student(learner)]
        given = self._soft_labels(parts, large) if students and self._distils else {}
        first = self.settings.seed
        calls: dict[_Key, Callable[[], Member]] = {}
        for part, task in parts.items():
            for learner in others:
                taught = learner in students and part in given
                own = _with(task, given[part].complete) if taught else task
                for seed in self._seeds_of(learner):
                    fit = partial(self._fitted, learner, replace(own, seed=seed))
                    calls[learner.name, part, seed] = fit
        compared = [part for part in given if part is not None]
        for part in compared:
            task, lesson = parts[part], given[part]
            some = replace(task, source=task.source[lesson.controlled])
            calls[CONTROL, part, first] = partial(students[0].fit, _with(some, lesson.control))
            if len(some.source) < len(task.source):
                soft = lesson.complete[lesson.controlled]
                calls[PUPIL, part, first] = partial(students[0].fit, _with(some, soft))
        found = dict(zip(calls, run_parallel(list(calls.values())), strict=True))
        gains = [
            what_was_taught(
                found.get((PUPIL, part, first), found[students[0].name, part, first]),
                found[CONTROL, part, first],
                rows.folds[part].held_out,
                parts[part],
            )
            for part in compared
        ]
        return found, {CONTROL: gains} if gains else {}

    @property
    def distils_few(self) -> bool:
        """Whether teachers label complete rows, which students learn from beside labelled ones."""
        return self._distils and self.rows.unlabelled is not None

    def start(self, learners: Sequence[Learner]) -> tuple[float, ...] | None:
        """Return the shares of members before held-out rows speak, where they are not equal."""
        return None if self._few is None else self._few.start(learners)

    def _fit_few(
        self, learners: Sequence[Learner], parts: Mapping[int | None, TrainingJob]
    ) -> tuple[dict[_Key, Member], dict[str, list[Floats]]]:
        """Fit members on labelled rows alone, and students on all complete rows."""
        rows, first = self.rows, self.settings.seed
        assert rows.unlabelled is not None
        final = None if None in parts else 0
        few = self._few = FewLabels.of(
            parts, rows.unlabelled, final=final, teachers=self.settings.teachers, seed=first
        )
        others = [learner for learner in learners if learner.name != NETWORKS]
        student = next((each for each in others if isinstance(each, Distilled)), None)
        calls: dict[_Key, Callable[[], Member]] = {
            (learner.name, part, seed): partial(
                self._fitted, learner, replace(few.job(learner, part), seed=seed)
            )
            for part in parts
            for learner in others
            for seed in self._seeds_of(learner)
        }
        if student is not None:
            for part in range(len(rows.folds)):
                controls = few.controls(student, part)
                calls |= {(name, part, first): fit for name, fit in controls.items()}
        members = dict(zip(calls, run_parallel(list(calls.values())), strict=True))
        return members, {} if student is None else few.gains(student, members, rows.folds, first)

    @property
    def few_labels(self) -> dict[str, Any]:
        """How many rows have a label, and how far teachers of the others are believed."""
        if self.rows.unlabelled is None:
            return {}
        facts: dict[str, Any] = {
            "labelled": len(self.rows.sample),
            "unlabelled": len(self.rows.unlabelled),
        }
        if self._few is not None:
            facts |= self._few.evidence
            for control in self._gains.keys() - {CONTROL}:
                name = "half_the_labels" if control == HALF else "labels_alone"
                facts[name] = self._gain_over(control)
        for labels in self._image_labels.values():
            facts |= labels.evidence
        return facts

    def _fitted(self, learner: Learner, task: TrainingJob) -> Member:
        self._begin(learner, task)
        return learner.fit(task)

    def _soft_labels(
        self, parts: Mapping[int | None, TrainingJob], large: bool
    ) -> dict[int | None, SoftLabels]:
        """Return what teachers that saw the complete source say of the rows of each part."""
        folds = self.rows.folds
        if not self.rows.blocks.missing:
            return {}
        places = [fold.places for fold in folds if fold.places is not None]
        asked = [fold.held_out.inputs for fold in folds] if places else None
        taught = [parts[number] for number in range(len(folds))]
        teachers = tuple(self.settings.teachers)
        given = soft_labels_of(taught, asked, large=large, teachers=teachers) if folds else []
        found: dict[int | None, SoftLabels] = {
            number: lesson for number, lesson in enumerate(given) if lesson is not None
        }
        if None in parts:
            if found and len(found) == len(places):
                kind = self.rows.target_type
                return found | {None: of_all_rows(list(found.values()), places, kind)}
            (whole,) = soft_labels_of([parts[None]], control=False, large=large, teachers=teachers)
            found |= {} if whole is None else {None: whole}
        return found

    @property
    def gain(self) -> dict[str, float]:
        """The mean of what x2 taught each held-out row, with its standard error."""
        return self._gain_over(CONTROL) if CONTROL in self._gains else {}

    def _gain_over(self, control: str) -> dict[str, float]:
        gains = np.concatenate(self._gains[control])
        error = gains.std(ddof=1) / np.sqrt(len(gains))
        return {"gain": float(gains.mean()), "standard_error": float(error), "rows": len(gains)}

    def _begin(self, learner: Learner, task: TrainingJob) -> None:
        """Tell that a member is next: one of each kind for every fold and model, then the last."""
        classes = self.rows.target_type.networks
        kinds = self.settings.members_for(self._inputs, classes=classes)
        models, last = len(self._variants), 1
        if self._inputs == "image":
            last = models if self.rows.refits_networks else 0
        everything = len(kinds) * self.seeds * (len(self.rows.folds) * models + last)
        words = words_of(learner.name, self.rows.target_type)
        doing = f"{words}, {task.title}" if task.title else words
        self.hooks.part(doing, min(self._begun, everything), everything)
        self._begun += 1

    def job(
        self, method: NetworkVariant, fold: int | None, source: Sample, seed: int | None = None
    ) -> TrainingJob:
        """Return one training, with the file that keeps its state."""
        rows, folds = self.rows, len(self.rows.folds)
        part = "all rows" if fold is None else f"part {fold + 1} of {folds}"
        alone = folds + rows.refits_networks == 1
        seed = self.settings.seed if seed is None else seed
        title = ", ".join(([] if alone else [part]) + ([f"seed {seed}"] if self.seeds > 1 else []))
        fingerprint = self._fingerprint(method, seed)
        checkpoint = self.hooks.checkpoints
        if checkpoint is not None:
            checkpoint = checkpoint / f"{fingerprint[:16]}-{fold}.safetensors"
        return TrainingJob(
            rows.blocks,
            rows.target_type,
            source,
            rows.target,
            seed,
            checkpoint=checkpoint,
            progress=self.hooks.progress,
            title=title,
        )

    def _fingerprint(self, method: NetworkVariant, seed: int) -> str:
        """Hash what determines a training, so that no other one is continued by mistake."""
        facts = {
            "rows": self.rows.fingerprint,
            **self._identity,
            "method": method.name,
            "options": {name: repr(value) for name, value in self.settings.options.items()},
            "preset": [self.settings.preset, self.settings.divergence, self.settings.refine],
            "seed": seed,
        }
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _answering(learner: Learner) -> tuple[Learner, ...]:
    """Return a learner with those whose members answer together with its own."""
    return learner, *getattr(learner, "beside", ())


def _with(task: TrainingJob, soft_labels: Floats) -> TrainingJob:
    """Return the task with half of each label from teachers."""
    return replace(task, source=taught(task.source, soft_labels, task.target_type))
