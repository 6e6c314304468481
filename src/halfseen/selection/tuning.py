"""Search over settings by a score without target labels: resumable, pruned, in parallel."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed

from halfseen.errors import InputError, OptionError
from halfseen.evidence.registry import SCORES
from halfseen.front.frames import Images, label_column, read_frame, take_rows
from halfseen.selection.choosing import split_held_out
from halfseen.selection.evidence import ONE_FIT_SCORES
from halfseen.selection.journal import open_journal
from halfseen.selection.spaces import Space, paper_space, with_given, with_settings
from halfseen.selection.trials import (
    Rows,
    TrialRunner,
    is_abandoned,
    is_spent,
    is_under_way,
    optuna,
    this_process,
)

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

__all__ = ["SearchResult", "SearchTrial", "search"]

FIRST_NOT_PRUNED = 5
"""Trials of a model that run to their end before any is pruned."""
SAME = ("model", "members", "refine", "epoch_choice", "held_out", "patience", "random_state")
"""Parameters of an estimator, beside its options, that a search must go on with."""


@dataclass(frozen=True)
class SearchTrial:
    """One fit of a search.

    Parameters
    ----------
    model, number
        Which model, and its how-manieth trial.
    settings
        What was set.
    state
        ``complete``, ``pruned`` (stopped early, because others were better by then) or
        ``failed``.
    value
        The score in its natural sense; for a pruned one that of the epoch where it ended.
    seconds
        How long it took.
    note
        Why it failed.
    """

    model: str
    number: int
    settings: dict[str, Any]
    state: str
    value: float | None
    seconds: float
    note: str = ""


@dataclass(frozen=True)
class SearchResult:
    """All trials of a search, for every model.

    Parameters
    ----------
    score
        The score's name.
    trials
        Every finished trial, model by model.
    models
        The estimators as given.
    """

    score: str
    trials: tuple[SearchTrial, ...]
    models: Mapping[str, Any]

    @property
    def best(self) -> SearchTrial:
        """The best complete trial of all models."""
        return self.best_of(*self.models)

    def best_of(self, *names: str) -> SearchTrial:
        """Return the best complete trial of some models."""
        complete = [t for t in self.trials if t.state == "complete" and t.model in names]
        values = [np.nan if trial.value is None else trial.value for trial in complete]
        return complete[SCORES[self.score].best(values)]

    def estimator(self, name: str | None = None) -> Any:
        """Return an unfitted estimator with the best settings, of one model or of all."""
        best = self.best if name is None else self.best_of(name)
        return with_settings(self.models[best.model], best.settings)

    def table(self) -> list[dict[str, Any]]:
        """Return one plain row per trial, the best complete one first, then the others."""
        sign = 1.0 if SCORES[self.score].better == "lower" else -1.0

        def place(trial: SearchTrial) -> tuple[bool, float]:
            return trial.state != "complete", np.inf if trial.value is None else sign * trial.value

        return [
            {"model": t.model, self.score: t.value, "state": t.state, **t.settings}
            for t in sorted(self.trials, key=place)
        ]


def search(
    models: Any,
    X: Any,
    y: Any,
    X_target: Any,
    *,
    score: str = "dev",
    space: Space | Mapping[str, Space] | None = None,
    trials: int = 20,
    held_out: float = 0.2,
    prune: bool = True,
    storage: str | Path | None = None,
    n_jobs: int = 1,
    seed: int = 0,
    back: Any = None,
    on_trial: Callable[[SearchTrial], None] = lambda trial: None,
) -> SearchResult:
    """Search the settings of one or several models; each gets the same number of trials.

    The first trial of a model is the model as given, whose settings always belong to the space.
    Optuna's tree-structured Parzen estimator proposes the others; nothing is tried twice, and a
    model whose space holds fewer settings than trials has them all tried.

    Parameters
    ----------
    models
        An estimator, or several by name.
    X, y, X_target
        Source rows with labels, and target rows.
    score
        What decides: a name in :data:`~halfseen.selection.SCORES`. The default is the paper's and
        takes one fit a trial; on the pairs we compared, ``agreement`` (three fits) chose better.
    space
        What may be varied: choices or a :class:`Range` by name of an option, such as
        ``training.learning_rate``, or of an estimator's parameter; or one such mapping per model.
        By default the paper's grids, :func:`paper_space`.
    trials
        The budget of every model: fits that ran to an end, were pruned or diverged.
    held_out
        Share of the source rows that is scored on and not trained on.
    prune
        Whether a fit is given up when its score, looked at every five epochs, is worse than the
        median of the fits before it. The first five of a model are not.
    storage
        A file that keeps every trial (or a database address as Optuna takes it). A search that
        was stopped continues from it, the trial it was stopped in from its last epoch. Several
        machines may make the same call with the same storage and share the trials, which the
        results of the one that ends last hold all.
    n_jobs
        How many fits run at the same time, each in its own process.
    seed
        Of the split, of what is proposed, and of estimators that have no seed of their own.
    back
        Estimator of the way back, for ``score="reverse"``: one for complete inputs.
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
    if score not in SCORES:
        raise OptionError(f"The score {score!r} is unknown; choose one of {list(SCORES)}.")
    if score == "reverse" and back is None:
        raise OptionError("score='reverse' learns back from the target: say with what, back=...")
    if trials < 1 or n_jobs < 1:
        raise OptionError(f"trials={trials} and n_jobs={n_jobs} must be at least 1.")
    named = dict(models) if isinstance(models, Mapping) else {type(models).__name__: models}
    if not named:
        raise InputError("There is no model to search the settings of.")
    rows = _split(X, y, X_target, held_out, seed)
    with _quiet(), _kept(storage) as (kept, checkpoints):
        runners = {}
        for name, estimator in named.items():
            method, options = estimator.plan(image=getattr(X, "ndim", 2) > 2)
            own = paper_space(method, options) if space is None else _space_of(space, name)
            widened, given = with_given(own, estimator, options)
            pruned = prune and score in ONE_FIT_SCORES
            runner = TrialRunner(
                name, _study(kept, f"{name} by {score}", score, prune=pruned), estimator, widened,
                score, rows, back, seed, pruned, checkpoints, this_process(), trials,
            )  # fmt: skip
            _check_same(runner.study, _fingerprint(runner, options, held_out))
            _recover(runner.study, given)
            runners[name] = runner
        for runner, number in _ended(_plan(runners, trials), n_jobs):
            on_trial(_trial(runner.name, runner.study.trials[number]))
        found = [
            _trial(name, trial)
            for name, runner in runners.items()
            for trial in runner.study.trials
            if is_spent(trial)
        ]
    return SearchResult(score, tuple(found), named)


def _study(storage: Any, name: str, score: str, *, prune: bool) -> Study:
    pruners = optuna().pruners
    study: Study = optuna().create_study(
        storage=storage,
        study_name=name,
        direction="minimize" if SCORES[score].better == "lower" else "maximize",
        pruner=pruners.MedianPruner(FIRST_NOT_PRUNED) if prune else pruners.NopPruner(),
        load_if_exists=True,
    )
    return study


def _plan(runners: Mapping[str, TrialRunner], budget: int) -> list[tuple[TrialRunner, int]]:
    """Return what is left to run, in turns, so that a stopped search has spent evenly."""
    left = []
    for place, runner in enumerate(runners.values()):
        done = sum(is_spent(trial) for trial in runner.study.trials)
        left += [(number, place, runner) for number in range(done, budget)]
    return [(runner, number) for number, _, runner in sorted(left, key=lambda entry: entry[:2])]


def _ended(plan: list[tuple[TrialRunner, int]], n_jobs: int) -> Iterator[tuple[TrialRunner, int]]:
    """Run the trials; yield each runner and the number of its trial as they end."""
    jobs = (delayed(_run)(place, runner, number) for place, (runner, number) in enumerate(plan))
    if n_jobs == 1:
        ended: Iterable[tuple[int, int | None]] = (_run(*job[1]) for job in jobs)
    else:
        ended = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs)
    for place, number in ended:
        if number is not None:
            yield plan[place][0], number


def _run(place: int, runner: TrialRunner, number: int) -> tuple[int, int | None]:
    with _quiet():
        return place, runner.run(number)


def _recover(study: Study, given: Mapping[str, Any]) -> None:
    """Line up what a search starts with: trials that were stopped, and the settings as given."""
    state = optuna().trial.TrialState
    for trial in study.get_trials(states=(state.RUNNING,)):
        if is_abandoned(trial):
            study.tell(trial.number, state=state.FAIL)
    known, stopped = [], []
    for trial in study.trials:
        if is_spent(trial) or is_under_way(trial) or trial.state == state.WAITING:
            known.append(trial.params or trial.system_attrs.get("fixed_params", {}))
        elif trial.state == state.FAIL and trial.params:
            stopped.append(trial.params)
    # Optuna's skip_if_exists would skip what was stopped too.
    for settings in (*stopped, given):
        if not any(settings.items() <= other.items() for other in known):
            study.enqueue_trial(dict(settings))
            known.append(settings)


def _trial(model: str, trial: FrozenTrial) -> SearchTrial:
    seconds = trial.duration.total_seconds() if trial.duration is not None else 0.0
    state = {"COMPLETE": "complete", "PRUNED": "pruned"}.get(trial.state.name, "failed")
    note = str(trial.user_attrs.get("error", ""))
    return SearchTrial(model, trial.number, dict(trial.params), state, trial.value, seconds, note)


def _split(X: Any, y: Any, X_target: Any, held_out: float, seed: int) -> Rows:
    labels, _ = label_column(y, len(read_frame(X, "the source")))
    is_held = np.zeros(len(labels), dtype=bool)
    is_held[split_held_out(labels, held_out, seed)[1]] = True
    return Rows(
        take_rows(X, ~is_held), take_rows(y, ~is_held),
        take_rows(X, is_held), take_rows(y, is_held),
        X_target,
    )  # fmt: skip


def _space_of(space: Any, name: str) -> Space:
    """Return one model's space, where each has its own."""
    per_model = space and all(isinstance(value, Mapping) for value in space.values())
    own = space.get(name) if per_model else space
    if own is None:
        raise OptionError(f"The space says nothing of the model {name!r}.")
    found: Space = own
    return found


def _fingerprint(runner: TrialRunner, options: Any, held_out: float) -> str:
    """Hash what determines the value of a trial but its settings."""
    parameters = runner.estimator.get_params(deep=False)
    facts = {
        "options": options.model_dump(mode="json"),
        "space": {name: repr(choices) for name, choices in runner.space.items()},
        "held_out": held_out,
        "seed": runner.seed,
        **{name: parameters.get(name) for name in SAME if not callable(parameters.get(name))},
    }
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode())
    rows = runner.rows
    for inputs in (rows.X, rows.X_held_out, rows.X_target):
        read = read_frame(inputs, "rows")
        if isinstance(read, Images):
            digest.update(read.array.tobytes())
        else:
            digest.update(str(read.fingerprint()).encode())
    for labels in (rows.y, rows.y_held_out):
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


@contextmanager
def _kept(storage: str | Path | None) -> Iterator[tuple[Any, str | None]]:
    """Give the storage, temporary where none is, and how the names of checkpoints begin."""
    if storage is None:
        with tempfile.TemporaryDirectory() as folder:
            yield open_journal(Path(folder) / "trials.journal"), None
    elif "://" in str(storage):
        yield str(storage), None
    else:
        yield open_journal(Path(storage)), f"{storage}.running."


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Optuna's log lines off the screen for a while."""
    logging = optuna().logging
    level = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        logging.set_verbosity(level)
