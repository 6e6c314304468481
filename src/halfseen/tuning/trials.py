"""One trial of a search: settings proposed, a model fitted, its score told."""

from __future__ import annotations

import hashlib
import importlib
import itertools
import json
import os
import shutil
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from halfseen.classifier import AdaptationImputationClassifier
from halfseen.errors import HalfseenError, TrainingDivergedError
from halfseen.evidence.scores import agreement
from halfseen.networks.objective import Objective
from halfseen.networks.training import EpochHook, derived_seed
from halfseen.selection.scoring import Evidence, UnderTraining, evaluate
from halfseen.tuning.spaces import with_settings

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

__all__ = [
    "Rows",
    "SearchTrial",
    "TrialRunner",
    "is_abandoned",
    "is_spent",
    "is_under_way",
    "optuna",
    "this_process",
]

EPOCHS_BETWEEN = 5
"""After every so many epochs a trial is compared with the others."""
MOST_PROPOSALS = 10
"""Proposals that may turn out to be old ones before a trial is given up."""
OWNER = "owner"
"""Attribute of a trial: the machine and the process that called for it."""
_REFINEMENT = 10_000
"""Added to the epochs of refinement, so that they are compared among themselves."""


def optuna() -> Any:
    """Return the module that proposes settings, or say how to get it."""
    try:
        return importlib.import_module("optuna")
    except ImportError:
        raise HalfseenError("A search needs Optuna: pip install 'halfseen[tune]'.") from None


@dataclass(frozen=True)
class SearchTrial:
    """One fit of a search."""

    model: str
    number: int
    settings: dict[str, Any]
    state: str
    """``complete``, ``pruned`` (stopped, because others were better by then) or ``failed``."""
    value: float | None
    """The score in its natural sense; for a pruned one that of the epoch where it ended."""
    seconds: float
    note: str = ""
    """Why it failed."""

    @classmethod
    def of(cls, model: str, trial: FrozenTrial) -> SearchTrial:
        """Return what Optuna keeps of a trial that ended."""
        seconds = trial.duration.total_seconds() if trial.duration is not None else 0.0
        state = {"COMPLETE": "complete", "PRUNED": "pruned"}.get(trial.state.name, "failed")
        note = str(trial.user_attrs.get("error", ""))
        return cls(model, trial.number, dict(trial.params), state, trial.value, seconds, note)


@dataclass(frozen=True)
class Rows:
    """What every trial of a search is fitted and scored on."""

    X: Any
    y: Any
    X_held_out: Any
    y_held_out: Any
    X_target: Any


@dataclass(frozen=True)
class TrialRunner:
    """Runs the trials of one search; can be sent to another process.

    Its parameters are those of :func:`halfseen.tuning.search`; `study` keeps the trials,
    `checkpoints` is how names of files with a fit under way begin, `owner` which process has
    called for the trials, `budget` how many there may be.
    """

    study: Study
    estimator: AdaptationImputationClassifier
    space: Mapping[str, BaseDistribution]
    score: str
    rows: Rows
    seed: int
    prune: bool
    checkpoints: str | None
    owner: str
    budget: int

    def run(self, number: int) -> int | None:
        """Propose settings, fit with them, tell the score; return the trial's number.

        None says that everything in the space has been tried, or that others who share the
        storage use up the budget.
        """
        state = optuna().trial.TrialState
        study = self.study
        taken = sum(is_spent(trial) or is_under_way(trial) for trial in study.trials)
        if taken >= self.budget:
            return None
        # Others may be ahead: a seed of theirs would propose what they have tried.
        seed = derived_seed(self.seed, max(number, taken))
        # Proposals of parallel trials keep away from each other (constant_liar).
        study.sampler = optuna().samplers.TPESampler(seed=seed, constant_liar=True)
        trial = self._ask(seed)
        if trial is None:
            return None
        try:
            value = self._value(trial)
        except optuna().TrialPruned:
            study.tell(trial, state=state.PRUNED)
        except TrainingDivergedError as error:
            trial.set_user_attr("error", str(error))
            study.tell(trial, state=state.FAIL)
        except BaseException:
            # Without a note of its own it counts as stopped, and is tried again.
            study.tell(trial, state=state.FAIL)
            raise
        else:
            if np.isfinite(value):
                study.tell(trial, value)
            else:
                trial.set_user_attr("error", f"{self.score} is {value}.")
                study.tell(trial, state=state.FAIL)
        return int(trial.number)

    def _ask(self, seed: int) -> Trial | None:
        """Return a trial whose settings are new: training again would give the same value.

        Optuna's samplers for grids do not learn from the scores, and raise where somebody asks for
        trials; its other samplers propose again what was tried. So a repetition is replaced here.
        """
        study = self.study
        for attempt in range(MOST_PROPOSALS):
            trial = study.ask(dict(self.space))
            trial.set_user_attr(OWNER, self.owner)
            tried = [
                other.params
                for other in study.trials
                if is_spent(other) or (is_under_way(other) and other.number < trial.number)
            ]
            if trial.params not in tried:
                return trial
            study.tell(trial, state=optuna().trial.TrialState.FAIL)
            if self._grid is not None:
                untried = [settings for settings in self._grid if settings not in tried]
                if not untried:
                    return None
                study.enqueue_trial(untried[(seed + attempt) % len(untried)])
        return None

    @cached_property
    def _grid(self) -> list[dict[str, Any]] | None:
        """Every combination of a space of choices alone."""
        choices = [getattr(distribution, "choices", None) for distribution in self.space.values()]
        if None in choices:
            return None
        combinations = itertools.product(*choices)  # type: ignore[arg-type]
        return [dict(zip(self.space, values, strict=True)) for values in combinations]

    def _value(self, trial: Trial) -> float:
        """Return the score of the settings that a trial proposes."""
        estimator = with_settings(self.estimator, trial.params)
        if estimator.random_state is None:
            estimator.set_params(random_state=self.seed)
        if self.score == "agreement":
            return self._agreement(estimator)
        checkpoint = self._checkpoint(trial.params)
        estimator.set_params(
            checkpoint=checkpoint, on_epoch=self._report(trial, estimator) if self.prune else None
        )
        try:
            estimator.fit(self.rows.X, self.rows.y, X_target=self.rows.X_target)
        except (optuna().TrialPruned, TrainingDivergedError):
            _discard(checkpoint)
            raise
        _discard(checkpoint)
        model = estimator.model_
        evidence = self._evidence(model.prepare, model.classes_)
        return evaluate(model, evidence, (self.score,))[self.score]

    def _agreement(self, estimator: AdaptationImputationClassifier) -> float:
        """Return how often three fits of other seeds predict the same class of a target row."""
        rows, runs = self.rows, []
        for run in range(3):
            other = with_settings(estimator, {"random_state": derived_seed(self.seed, run)})
            other.fit(rows.X, rows.y, X_target=rows.X_target)
            runs.append(other.predict_proba(rows.X_target))
        return agreement(np.stack(runs))

    def _report(self, trial: Trial, estimator: AdaptationImputationClassifier) -> EpochHook:
        """Return a hook that tells the score on the way, and gives up where it is poor.

        It looks at the networks of the first training; those of later folds are much the same.
        """
        rows = self.rows
        prepare = estimator.preparation(rows.X, rows.y, rows.X_target)
        classes, labels = np.unique(np.asarray(rows.y), return_inverse=True)
        kept: list[Evidence] = []
        reported: list[int] = []

        def report(objective: Objective, record: Mapping[str, Any]) -> None:
            if record["phase"] == "warm-up" or record["epoch"] % EPOCHS_BETWEEN:
                return
            step = record["epoch"] + (_REFINEMENT if record["phase"] == "refine" else 0)
            if reported and step <= reported[-1]:
                return
            reported.append(step)
            if not kept:
                kept.append(self._evidence(prepare, classes).sample())
            model = UnderTraining(objective.networks, objective.options, labels)
            trial.report(evaluate(model, kept[0], (self.score,))[self.score], step)
            if trial.should_prune():
                raise optuna().TrialPruned

        return report

    def _evidence(self, prepare: Any, classes: Any) -> Evidence:
        rows = self.rows
        return Evidence.prepared(
            prepare, classes, rows.X_held_out, rows.y_held_out, rows.X_target, rows.X
        )

    def _checkpoint(self, settings: dict[str, Any]) -> Path | None:
        if self.checkpoints is None:
            return None
        text = json.dumps([self.study.study_name, settings], sort_keys=True, default=str)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        # A folder of its own, so that no process removes what another writes into.
        return Path(f"{self.checkpoints}{digest}")


def is_spent(trial: FrozenTrial) -> bool:
    """Whether a trial has used up budget: it ended by itself, well or not."""
    state = optuna().trial.TrialState
    failed = trial.state == state.FAIL and "error" in trial.user_attrs
    return trial.state in (state.COMPLETE, state.PRUNED) or failed


def is_under_way(trial: FrozenTrial) -> bool:
    """Whether a process has a trial; one killed between asking and signing has left it."""
    return trial.state == optuna().trial.TrialState.RUNNING and OWNER in trial.user_attrs


def this_process() -> str:
    """Return the name of this process among those that share a storage."""
    return f"{socket.gethostname()}:{os.getpid()}"


def is_abandoned(trial: FrozenTrial) -> bool:
    """Whether a running trial's process is gone; of other machines that cannot be known.

    One of this very process is: a search begins with none under way. Optuna's heartbeat would know
    of other machines too, but it exists for databases only, not for a journal.
    """
    host, _, process = str(trial.user_attrs.get(OWNER, "")).rpartition(":")
    if host != socket.gethostname():
        return False
    return int(process) == os.getpid() or not _is_alive(int(process))


def _is_alive(process: int) -> bool:
    if os.name != "posix":  # elsewhere signal 0 is not a question
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _discard(checkpoint: Path | None) -> None:
    """Remove the checkpoints of a trial that are not needed any more."""
    if checkpoint is not None:
        shutil.rmtree(checkpoint, ignore_errors=True)
