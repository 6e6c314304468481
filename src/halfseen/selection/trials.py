"""One trial of a search: settings proposed, a model fitted, its score told."""

from __future__ import annotations

import hashlib
import importlib
import itertools
import json
import os
import shutil
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from halfseen.blocks import Blocks
from halfseen.errors import HalfseenError, TrainingDivergedError
from halfseen.evidence.reverse import reverse_validation
from halfseen.networks.objective import Objective
from halfseen.networks.training import EpochHook, derived_seed
from halfseen.selection.evidence import Evidence, Prepares, UnderTraining, evaluate
from halfseen.selection.refits import agreement_of_runs, estimator_fit
from halfseen.selection.spaces import Range, with_settings

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.trial import FrozenTrial

__all__ = [
    "Rows",
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
class Rows:
    """What every trial of a search is fitted and scored on."""

    X: Any
    y: Any
    X_held_out: Any
    y_held_out: Any
    X_target: Any


@dataclass(frozen=True)
class TrialRunner:
    """Runs the trials of one model; can be sent to another process.

    Its parameters are those of :func:`halfseen.selection.search` for one model; `study` keeps the
    trials, `checkpoints` is how names of files with a fit under way begin, `owner` which process
    has called for the trials, `budget` how many there may be.
    """

    name: str
    study: Study
    estimator: Any
    space: Mapping[str, Sequence[Any] | Range]
    score: str
    rows: Rows
    back: Any
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
        trial = self._ask(study, seed)
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

    def _ask(self, study: Study, seed: int) -> Trial | None:
        """Return a trial whose settings are new: training again would give the same value.

        Optuna's samplers for grids do not learn from the scores, and raise where somebody asks for
        trials; its other samplers propose again what was tried. So a repetition is replaced here.
        """
        for attempt in range(MOST_PROPOSALS):
            trial = study.ask()
            trial.set_user_attr(OWNER, self.owner)
            proposed = self._propose(trial)
            tried = self._tried(study, trial.number)
            if proposed not in tried:
                return trial
            study.tell(trial, state=optuna().trial.TrialState.FAIL)
            untried = [settings for settings in self._all_settings() if settings not in tried]
            if untried:
                study.enqueue_trial(untried[(seed + attempt) % len(untried)])
            elif self._is_grid():
                return None
        return None

    def _tried(self, study: Study, number: int) -> list[dict[str, Any]]:
        """Return the settings that are spent, or under way in a trial that began before."""
        return [
            trial.params
            for trial in study.trials
            if is_spent(trial) or (is_under_way(trial) and trial.number < number)
        ]

    def _propose(self, trial: Trial) -> dict[str, Any]:
        return {
            name: trial.suggest_float(name, choices.low, choices.high, log=choices.log)
            if isinstance(choices, Range)
            else trial.suggest_categorical(name, choices)
            for name, choices in self.space.items()
        }

    def _all_settings(self) -> Iterator[dict[str, Any]]:
        """Yield every combination of a space without ranges."""
        if self._is_grid():
            for combination in itertools.product(*self.space.values()):  # type: ignore[arg-type]
                yield dict(zip(self.space, combination, strict=True))

    def _is_grid(self) -> bool:
        return not any(isinstance(choices, Range) for choices in self.space.values())

    def _value(self, trial: Trial) -> float:
        """Return the score of the settings that a trial proposes."""
        settings = dict(trial.params)
        estimator = with_settings(self.estimator, settings)
        if estimator.random_state is None:
            estimator.set_params(random_state=self.seed)
        if self.score == "agreement":
            return self._agreement(estimator)
        if self.score == "reverse":
            return self._reverse(estimator)
        return self._fitted_score(estimator, trial, settings)

    def _fitted_score(self, estimator: Any, trial: Trial, settings: dict[str, Any]) -> float:
        checkpoint = self._checkpoint(settings)
        estimator.set_params(
            checkpoint=checkpoint, on_epoch=self._report(trial, estimator) if self.prune else None
        )
        try:
            estimator.fit(self.rows.X, self.rows.y, X_target=self.rows.X_target)
        except (optuna().TrialPruned, TrainingDivergedError):
            _discard(checkpoint)
            raise
        _discard(checkpoint)
        return evaluate(estimator.model_, self._evidence(estimator.model_), (self.score,))[
            self.score
        ]

    def _report(self, trial: Trial, estimator: Any) -> EpochHook:
        """Return a hook that tells the score on the way, and gives up where it is poor.

        It looks at the networks of the first training; those of later folds are much the same.
        """
        rows = self.rows
        front = estimator.front_for(rows.X, rows.y, rows.X_target)
        labels = np.unique(np.asarray(rows.y), return_inverse=True)[1]
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
                kept.append(self._evidence(front).sample())
            model = UnderTraining(objective.networks, objective.options, labels)
            trial.report(evaluate(model, kept[0], (self.score,))[self.score], step)
            if trial.should_prune():
                raise optuna().TrialPruned

        return report

    def _evidence(self, front: Prepares) -> Evidence:
        rows = self.rows
        return Evidence.prepared(front, rows.X_held_out, rows.y_held_out, rows.X_target, rows.X)

    def _agreement(self, estimator: Any) -> float:
        rows = self.rows
        return agreement_of_runs(
            lambda seed: with_settings(estimator, {"random_state": seed}),
            rows.X,
            rows.y,
            rows.X_target,
            seeds=[derived_seed(self.seed, run) for run in range(3)],
        )

    def _reverse(self, estimator: Any) -> float:
        rows = self.rows
        front = estimator.front_for(rows.X, rows.y, rows.X_target)
        blocks: Blocks = front.blocks
        given = {"missing": blocks, "keep": None, "categorical": None}
        return reverse_validation(
            estimator_fit(lambda: with_settings(estimator, given)),
            front.prepare(rows.X, complete=True, where="the source"),
            np.asarray(rows.y),
            front.prepare(rows.X_target, where="the target"),
            fit_back=estimator_fit(
                lambda: with_settings(self.back, {}),
                columns=blocks.observed if blocks.is_table else None,
            ),
            random_state=self.seed,
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
