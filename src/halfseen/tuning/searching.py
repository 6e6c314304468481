"""A search: the trials of one model, in turn or in parallel, kept in a storage."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed

from halfseen.classifier import AdaptationImputationClassifier
from halfseen.errors import InputError, OptionError
from halfseen.evidence.registry import SCORES
from halfseen.front.frames import Images, label_column, read_frame, take_rows
from halfseen.selection.epochs import split_held_out
from halfseen.selection.scoring import ONE_FIT_SCORES
from halfseen.tuning.journal import open_journal
from halfseen.tuning.spaces import Space, paper_space, with_given, with_settings
from halfseen.tuning.trials import (
    Rows,
    SearchTrial,
    TrialRunner,
    is_abandoned,
    is_spent,
    is_under_way,
    optuna,
    this_process,
)

if TYPE_CHECKING:
    from optuna import Study

__all__ = ["SearchResult", "search"]

FIRST_NOT_PRUNED = 5
"""Trials of a model that run to their end before any is pruned."""
SAME = (
    "members", "effort", "align", "refine", "epoch_choice", "held_out", "patience", "random_state",
)  # fmt: skip
"""Parameters of an estimator, beside its options, that a search must go on with."""


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

    def applied_to(
        self, estimator: AdaptationImputationClassifier
    ) -> AdaptationImputationClassifier:
        """Return an unfitted copy of an estimator with the best settings."""
        return with_settings(estimator, self.best.settings)

    def table(self) -> list[dict[str, Any]]:
        """Return one plain row per trial, the best first and what did not end well last."""
        sign = 1.0 if SCORES[self.score].better == "lower" else -1.0
        places = [
            (t.state != "complete", np.inf if t.value is None else sign * t.value, place)
            for place, t in enumerate(self.trials)
        ]
        ordered = (self.trials[place] for *_, place in sorted(places))
        return [
            {"model": t.model, self.score: t.value, "state": t.state, **t.settings} for t in ordered
        ]


def search(
    estimator: AdaptationImputationClassifier,
    X: Any,
    y: Any,
    X_target: Any,
    *,
    score: str = "dev",
    space: Space | None = None,
    trials: int = 20,
    held_out: float = 0.2,
    prune: bool = True,
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
    score
        What decides: ``agreement`` (of three fits) or one of
        :data:`~halfseen.selection.ONE_FIT_SCORES`. The default is the paper's; on the pairs we
        compared, ``agreement`` chose better.
    space
        What may be varied: choices, or a distribution of ``optuna.distributions``, by name of an
        option, such as ``training.learning_rate``, or of an estimator's parameter. By default the
        paper's grids, :func:`paper_space`.
    trials
        The budget: fits that ran to an end, were pruned or diverged.
    held_out
        Share of the source rows that is scored on and not trained on.
    prune
        Whether a fit is given up when its score, looked at every five epochs, is worse than the
        median of the fits before it. The first five are not.
    storage
        A file that keeps every trial (or a database address as Optuna takes it). A search that
        was stopped continues from it, the trial it was stopped in from its last epoch. Several
        machines may make the same call with the same storage and share the trials, which the
        results of the one that ends last hold all. It may keep searches of several models.
    n_jobs
        How many fits run at the same time, each in its own process.
    seed
        Of the split, of what is proposed, and of estimators that have no seed of their own.
    on_trial
        Told of every trial that ends.

    Examples
    --------
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
    scores = [*ONE_FIT_SCORES, "agreement"]
    if score not in scores:
        raise OptionError(f"The score {score!r} is unknown; choose one of {scores}.")
    if trials < 1 or n_jobs < 1:
        raise OptionError(f"trials={trials} and n_jobs={n_jobs} must be at least 1.")
    rows = _split(X, y, X_target, held_out, seed)
    with _quiet(), _kept(storage) as (kept, checkpoints):
        method, options = estimator.plan(image=getattr(X, "ndim", 2) > 2)
        own = paper_space(method, options) if space is None else space
        widened, given = with_given(own, estimator, options)
        pruned = prune and score in ONE_FIT_SCORES
        pruners = optuna().pruners
        study = optuna().create_study(
            storage=kept,
            study_name=f"{method.name} by {score}",
            direction="minimize" if SCORES[score].better == "lower" else "maximize",
            pruner=pruners.MedianPruner(FIRST_NOT_PRUNED) if pruned else pruners.NopPruner(),
            load_if_exists=True,
        )
        runner = TrialRunner(
            study, estimator, widened, score, rows, seed, pruned, checkpoints, this_process(),
            trials,
        )  # fmt: skip
        _check_same(study, _fingerprint(runner, options, held_out))
        _recover(study, given)
        done = sum(is_spent(trial) for trial in study.trials)
        # Optuna's own loop would run them in threads, where they share random numbers.
        jobs = (delayed(_run)(runner, number) for number in range(done, trials))
        for number in Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs):
            if number is not None:
                on_trial(SearchTrial.of(method.name, study.trials[number]))
        ended = [SearchTrial.of(method.name, trial) for trial in study.trials if is_spent(trial)]
    return SearchResult(score, tuple(ended))


def _run(runner: TrialRunner, number: int) -> int | None:
    with _quiet():
        return runner.run(number)


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


def _split(X: Any, y: Any, X_target: Any, held_out: float, seed: int) -> Rows:
    labels, _ = label_column(y, len(read_frame(X, "the source")))
    is_held = np.zeros(len(labels), dtype=bool)
    is_held[split_held_out(labels, held_out, seed)[1]] = True
    train = take_rows(X, ~is_held), take_rows(y, ~is_held)
    return Rows(*train, take_rows(X, is_held), take_rows(y, is_held), X_target)


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
