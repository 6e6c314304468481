"""A search: Optuna proposes settings, each is fitted and scored without a target label."""

from __future__ import annotations

import hashlib
import importlib
import itertools
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed

from halfseen.data.column_spec import Task
from halfseen.data.frames import Images, label_column, read_frame, take_rows
from halfseen.data.label_column import checked_weights
from halfseen.errors import HalfseenError, InputError, OptionError, TrainingDivergedError
from halfseen.evidence.risk import SCORES, agreement
from halfseen.networks.training.loop import derived_seed
from halfseen.selection import Evidence, evaluate, scores_for
from halfseen.splitting import held_out_share
from halfseen.targets import LABEL_KINDS, RegressionTarget
from halfseen.tuning.journal import open_journal
from halfseen.tuning.spaces import E, Estimator, Searched, Space, with_given, with_settings

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

AGREEING_FITS = 3
FEWEST_HELD_OUT = 3
MOST_PROPOSALS = 10
"""Proposals that may turn out to be old ones before a trial is given up."""
PROCESS = "process"
"""Attribute of a trial: the machine and the process that work on it."""
SAME = ("members", "effort", "align", "refine", "random_state", "seeds", "class_weight")
"""Parameters of an estimator, beside its options, that a search must go on with."""


@dataclass(frozen=True)
class SearchTrial:
    """One fit of a search."""

    model: str
    number: int
    settings: dict[str, Any]
    state: str
    """``complete`` or ``failed``."""
    value: float | None
    """The score in its natural sense."""
    seconds: float
    note: str = ""
    """Why it failed."""

    @classmethod
    def of(cls, model: str, trial: FrozenTrial) -> SearchTrial:
        """Return what Optuna keeps of a trial that ended."""
        seconds = trial.duration.total_seconds() if trial.duration is not None else 0.0
        state = "complete" if trial.state.name == "COMPLETE" else "failed"
        note = str(trial.user_attrs.get("error", ""))
        return cls(model, trial.number, dict(trial.params), state, trial.value, seconds, note)


@dataclass(frozen=True)
class SearchResult:
    """Every trial that ended, of one model or of several, and the name of the score."""

    score: str
    trials: tuple[SearchTrial, ...]

    @property
    def best(self) -> SearchTrial:
        """The best complete trial."""
        return self.best_of(*(trial.model for trial in self.trials))

    def best_of(self, *models: str) -> SearchTrial:
        """Return the best complete trial of some models."""
        complete = [t for t in self.trials if t.state == "complete" and t.model in models]
        values = [np.nan if trial.value is None else trial.value for trial in complete]
        return complete[SCORES[self.score].best(values)]

    def applied_to(self, estimator: E) -> E:
        """Return an unfitted copy of an estimator with the best settings."""
        return with_settings(estimator, self.best.settings)

    def table(self) -> list[dict[str, Any]]:
        """Return one plain row per trial, the best first and what failed last."""
        sign = 1.0 if SCORES[self.score].better == "lower" else -1.0
        places = [
            (np.inf if t.value is None else sign * t.value, place)
            for place, t in enumerate(self.trials)
        ]
        ordered = (self.trials[place] for _, place in sorted(places))
        return [
            {"model": t.model, self.score: t.value, "state": t.state, **t.settings} for t in ordered
        ]


def search(
    estimator: Estimator,
    X: Any,
    y: Any,
    X_target: Any,
    *,
    sample_weight: Any = None,
    score: str = "dev",
    space: Space | None = None,
    trials: int = 20,
    held_out: float = 0.2,
    storage: str | Path | None = None,
    n_jobs: int = 1,
    seed: int = 0,
    on_trial: Callable[[SearchTrial], None] = lambda trial: None,
) -> SearchResult:
    """Search the settings of an estimator by a score without target labels.

    The first trial is the estimator as given, whose settings always belong to the space. Optuna's
    tree-structured Parzen estimator proposes the others; nothing is tried twice, and a space that
    holds fewer settings than trials has them all tried.

    Parameters
    ----------
    estimator, X, y, X_target
        What is fitted, to which source rows with labels and which target rows.
    sample_weight
        How much each source row counts in a fit; scores count every row once.
    score
        What decides: ``agreement`` (of three fits) or one of
        :data:`~halfseen.selection.ONE_FIT_SCORES`. The default is the paper's; on the pairs we
        compared, ``agreement`` chose better. Of amounts: ``dev``, ``importance_weighted`` or
        ``source_loss``, in squared error.
    space
        What may be varied: choices, or a distribution of ``optuna.distributions``, by name of an
        option, such as ``training.learning_rate``, or of an estimator's parameter. By default the
        paper's grids, :func:`paper_space`; without networks members and effort.
    trials
        The budget: fits that ran to an end or diverged.
    held_out
        Share of the source rows that is scored on and not trained on.
    storage
        A file that keeps every trial, or a database address as Optuna takes it. A search that was
        stopped continues from it, and several machines may share it. It may keep searches of
        several models.
    n_jobs
        How many fits run at the same time, each in its own process.
    seed
        Of the split, of what is proposed, and of estimators that have no seed of their own.
    on_trial
        Told of every trial that ends.

    Examples
    --------
    >>> from halfseen import AdaptationImputationClassifier
    >>> random = np.random.default_rng(0)
    >>> source, target = random.normal(size=(150, 3)), random.normal(size=(80, 2)) + 0.5
    >>> label = (source.sum(axis=1) > 0).astype(int)
    >>> model = AdaptationImputationClassifier(
    ...     missing=[2],
    ...     members=["networks"],
    ...     options={"training.joint_epochs": 2, "training.learning_rate": 1e-9},
    ...     random_state=0,
    ... )
    >>> rates = {"training.learning_rate": [1e-2]}
    >>> found = search(model, source, label, target, score="source_loss", space=rates, trials=2)
    >>> found.best.settings
    {'training.learning_rate': 0.01}
    """
    kind = LABEL_KINDS[estimator.task]
    scores = [*scores_for(kind), *(["agreement"] if kind.answers_tell else [])]
    if score not in scores:
        reason = f"does not judge {kind.task}" if score in SCORES else "is unknown"
        raise OptionError(f"The score {score!r} {reason}; choose one of {scores}.")
    if trials < 1 or n_jobs < 1:
        raise OptionError(f"trials={trials} and n_jobs={n_jobs} must be at least 1.")
    rows = _split(X, y, X_target, sample_weight, held_out, seed, estimator.task)
    name, own, options = Searched.of(estimator, image=getattr(X, "ndim", 2) > 2)
    with _quiet(), _kept(storage) as kept:
        widened, given = with_given(own if space is None else space, estimator, options)
        study = _optuna().create_study(
            storage=kept,
            study_name=f"{name} by {score}",
            direction="minimize" if SCORES[score].better == "lower" else "maximize",
            load_if_exists=True,
        )
        runner = _Runner(study, estimator, widened, score, rows, seed, trials, datetime.now())
        _check_same(study, _fingerprint(runner, options, held_out))
        if not any(given.items() <= trial.params.items() for trial in _spent(study)):
            study.enqueue_trial(given)
        # Optuna's own loop would run them in threads, where they share random numbers.
        jobs = (delayed(_run)(runner, n) for n in range(len(_spent(study)), trials))
        for number in Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs):
            if number is not None:
                on_trial(SearchTrial.of(name, study.trials[number]))
        ended = [SearchTrial.of(name, trial) for trial in _spent(study)]
    return SearchResult(score, tuple(ended))


@dataclass(frozen=True)
class _Rows:
    X: Any
    y: Any
    X_held_out: Any
    y_held_out: Any
    X_target: Any
    weights: Any

    def fitted(self, estimator: E) -> E:
        """Fit an estimator to what is trained on."""
        return estimator.fit(self.X, self.y, X_target=self.X_target, sample_weight=self.weights)


@dataclass(frozen=True)
class _Runner:
    """Runs the trials of one search; can be sent to another process."""

    study: Study
    estimator: Estimator
    space: Mapping[str, BaseDistribution]
    score: str
    rows: _Rows
    seed: int
    budget: int
    begun: datetime

    def run(self, number: int) -> int | None:
        """Propose settings, fit with them, tell the score; return the trial's number.

        None says that everything in the space has been tried, or that others who share the
        storage use up the budget.
        """
        study, taken = self.study, len(self._tried())
        # Others may be ahead: a seed of theirs would propose what they have tried.
        seed = derived_seed(self.seed, max(number, taken))
        # Proposals of parallel trials keep away from each other (constant_liar).
        study.sampler = _optuna().samplers.TPESampler(seed=seed, constant_liar=True)
        trial = self._ask(seed) if taken < self.budget else None
        if trial is None:
            return None
        failed = _optuna().trial.TrialState.FAIL
        try:
            value = self._value(trial.params)
            if not np.isfinite(value):
                raise TrainingDivergedError(f"{self.score} is {value}.")
        except TrainingDivergedError as error:
            trial.set_user_attr("error", str(error))
            study.tell(trial, state=failed)
        except BaseException:
            # Without a note of its own it counts as stopped, and may be tried again.
            study.tell(trial, state=failed)
            raise
        else:
            study.tell(trial, value)
        return int(trial.number)

    def _ask(self, seed: int) -> Trial | None:
        """Return a trial whose settings are new: training again would give the same value.

        Optuna's samplers for grids do not learn from the scores, and raise where somebody asks for
        trials; its other samplers propose again what was tried. So a repetition is replaced here.
        """
        study = self.study
        for attempt in range(MOST_PROPOSALS):
            trial = study.ask(dict(self.space))
            trial.set_user_attr(PROCESS, [gethostname(), os.getpid()])
            tried = self._tried(before=trial.number)
            if trial.params not in tried:
                return trial
            study.tell(trial, state=_optuna().trial.TrialState.FAIL)
            grid = self._grid()
            untried = [settings for settings in grid if settings not in tried]
            if untried:
                study.enqueue_trial(untried[(seed + attempt) % len(untried)])
            elif grid:
                return None
        return None

    def _tried(self, before: int | None = None) -> list[dict[str, Any]]:
        """Return settings that were tried, or that others try now."""
        running = [trial for trial in self.study.trials[:before] if trial.state.name == "RUNNING"]
        under_way = [trial for trial in running if self._is_alive(trial)]
        return [trial.params for trial in (*_spent(self.study), *under_way)]

    def _is_alive(self, trial: FrozenTrial) -> bool:
        """Whether somebody works on a trial that has not ended: it was not killed."""
        match trial.user_attrs.get(PROCESS):
            case [str(machine), int(process)] if os.name == "posix" and process != os.getpid():
                return machine != gethostname() or _runs(process)
        # Asked for just now, or left behind by an earlier search of this process.
        return trial.datetime_start is not None and trial.datetime_start >= self.begun

    def _grid(self) -> list[dict[str, Any]]:
        """Return every combination of a space of choices alone; none of one with ranges."""
        choices = [getattr(kind, "choices", ()) for kind in self.space.values()]
        combinations = itertools.product(*choices)
        return [dict(zip(self.space, values, strict=True)) for values in combinations]

    def _value(self, settings: Mapping[str, Any]) -> float:
        rows, estimator = self.rows, with_settings(self.estimator, settings)
        if estimator.random_state is None:
            estimator.set_params(random_state=self.seed)
        if self.score == "agreement":
            seeds = (derived_seed(self.seed, run) for run in range(AGREEING_FITS))
            fits = (rows.fitted(with_settings(estimator, {"random_state": s})) for s in seeds)
            return agreement(np.stack([fit.predict_proba(rows.X_target) for fit in fits]))
        model = rows.fitted(estimator).model_
        evidence = Evidence.prepared(
            model.prepare,
            model.target_type,
            rows.X_held_out,
            rows.y_held_out,
            rows.X_target,
            rows.X,
        )
        return evaluate(model, evidence, (self.score,))[self.score]


def _run(runner: _Runner, number: int) -> int | None:
    with _quiet():
        return runner.run(number)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # it is somebody else's
        pass
    return True


def _spent(study: Study) -> list[FrozenTrial]:
    """Return the trials that have used up budget: they ended by themselves, well or not."""
    return [t for t in study.trials if t.state.name == "COMPLETE" or "error" in t.user_attrs]


def _split(
    X: Any, y: Any, X_target: Any, weights: Any, held_out: float, seed: int, task: Task
) -> _Rows:
    labels, _ = label_column(y, len(read_frame(X, "the source")), task)
    if task == RegressionTarget.task:
        labels = RegressionTarget().strata(labels)
    is_held = np.zeros(len(labels), dtype=bool)
    is_held[held_out_share(labels, held_out, seed)[1]] = True
    if is_held.sum() < FEWEST_HELD_OUT:
        raise InputError(
            f"held_out={held_out} of {len(labels)} source rows leaves {is_held.sum()} to measure "
            f"on; at least {FEWEST_HELD_OUT} are needed."
        )
    if weights is not None:
        weights = checked_weights(weights, len(labels))[~is_held]
    train = take_rows(X, ~is_held), take_rows(y, ~is_held)
    return _Rows(*train, take_rows(X, is_held), take_rows(y, is_held), X_target, weights)


def _fingerprint(runner: _Runner, options: Any, held_out: float) -> str:
    """Hash what determines the value of a trial but its settings."""
    parameters = runner.estimator.get_params(deep=False)
    facts = {
        "options": options,
        "space": {name: repr(choices) for name, choices in runner.space.items()},
        "held_out": held_out,
        "seed": runner.seed,
        **{name: parameters.get(name) for name in SAME},
    }
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode())
    rows = runner.rows
    for inputs in (rows.X, rows.X_held_out, rows.X_target):
        read = read_frame(inputs, "rows")
        if isinstance(read, Images):
            digest.update(read.array.tobytes())
        else:
            digest.update(str(read.fingerprint()).encode())
    for labels in (rows.y, rows.y_held_out, *([] if rows.weights is None else [rows.weights])):
        digest.update(json.dumps(np.asarray(labels).tolist(), default=str).encode())
    return digest.hexdigest()


def _check_same(study: Study, fingerprint: str) -> None:
    known = study.user_attrs.get("fingerprint")
    if known is None:
        study.set_user_attr("fingerprint", fingerprint)
    elif known != fingerprint:
        raise InputError(
            f"The storage holds another search under the name {study.study_name!r} (other data, "
            "settings or seed); delete it, or give this search a storage of its own."
        )


def _optuna() -> Any:
    """Return the module that proposes settings, or say how to get it."""
    try:
        return importlib.import_module("optuna")
    except ImportError:
        raise HalfseenError("A search needs Optuna: pip install 'halfseen[tune]'.") from None


@contextmanager
def _kept(storage: str | Path | None) -> Iterator[Any]:
    """Give the storage of the trials, a temporary one where none is named."""
    if "://" in str(storage):
        yield str(storage)
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        open_journal(Path(storage or f"{folder}/trials.journal")) as kept,
    ):
        yield kept


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Optuna's log lines off the screen for a while."""
    logging = _optuna().logging
    level = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        logging.set_verbosity(level)
