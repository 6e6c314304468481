"""A search over settings by a score without target labels: resumable, and in parallel.

Optuna proposes settings and keeps what came of them; every trial is one fit, or three.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import joblib
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sklearn.base import clone

from halfseen.arrays import Floats
from halfseen.data.frames import label_column, read_frame, take_rows
from halfseen.data.label_column import checked_weights, some_labels
from halfseen.data.preprocessing import read_rows
from halfseen.data.schema import TableSchema
from halfseen.data.schema_inference import InferredTables
from halfseen.data.table_summary import TableSummary
from halfseen.data.values import as_numbers
from halfseen.errors import (
    HalfseenError,
    InputError,
    OptionError,
    TrainingDivergedError,
    installed_by,
    one_line,
)  # fmt: skip
from halfseen.estimators import AdaptationImputationClassifier, AdaptationImputationRegressor
from halfseen.evidence.scores import SCORES, agreement
from halfseen.fitting.pipeline import is_resident
from halfseen.fitting.prepared_rows import HELD_OUT
from halfseen.members import NETWORKS
from halfseen.networks.training.loop import derived_seed
from halfseen.networks.variants import NetworkVariant, variant_named
from halfseen.options import Options, dotted, option_names
from halfseen.selection import Evidence, evaluate, scores_for
from halfseen.settings import TREES_AND_LINES, FitSettings
from halfseen.splitting import held_out_share
from halfseen.targets import LABEL_KINDS, RegressionTarget

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

__all__ = ["ended_trials", "paper_space", "search", "with_settings"]

AGREEING_FITS = 3
MOST_REPEATED = 50
"""Proposals that may turn out to be old ones, one after another, before a search ends."""
MOST_ROWS = 20_000
"""Rows of a table that is too large for memory that stand for all in a search."""
MEMBERS = "Trees and regression"
"""What a model without networks is called."""
RATES = tuple(10**exponent for exponent in (-2, -2.5, -3, -3.5, -4))
"""Learning rates of the paper on digits; on ads,"""
SMALL_RATES = (1e-4, 1e-5, 1e-6, 1e-7)
SAME = ("members", "effort", "align", "refine", "random_state", "seeds", "class_weight")
"""Parameters of an estimator, beside its options, that a search must go on with."""

Estimator = AdaptationImputationClassifier | AdaptationImputationRegressor
E = TypeVar("E", bound=Estimator)
Space = Mapping[str, "Sequence[Any] | BaseDistribution"]
"""What each setting may be: choices, or a distribution of Optuna's."""


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
    storage: str | Path | None = None,
    seed: int = 0,
    on_trial: Callable[[FrozenTrial], None] = lambda trial: None,
) -> Study:
    """Search the settings of an estimator by a score without target labels.

    The first trial is the estimator as given, whose settings always belong to the space. Optuna's
    tree-structured Parzen estimator proposes the others; nothing is tried twice, and a space that
    holds fewer settings than trials has them all tried.

    Parameters
    ----------
    estimator, X, y, X_target, sample_weight
        What is fitted to which rows. A fifth of the source rows is scored on, not trained on.
    score
        What decides: ``agreement`` (of three fits) or one of
        :data:`~halfseen.selection.ONE_FIT_SCORES`. The default is the paper's; on the pairs we
        compared, ``agreement`` chose better. Of amounts: ``dev``, ``importance_weighted`` or
        ``source_loss``, in squared error.
    space
        Choices, or a distribution of ``optuna.distributions``, by name of an option, such as
        ``training.learning_rate``, or of an estimator's parameter. By default the paper's grids,
        :func:`paper_space`; without networks members and effort.
    trials
        The budget: fits that ran to an end or diverged.
    storage
        A file for the database of trials, or a database address as Optuna takes it. A search that
        was stopped continues from it, and several processes or machines may share it.
    seed
        Of the split, of what is proposed, and of estimators that have no seed of their own.
    on_trial
        Told of every trial that ends.

    Returns
    -------
    optuna.Study
        With ``best_params``, which :func:`with_settings` gives to an estimator, and
        ``trials_dataframe()``.

    Examples
    --------
    >>> from halfseen import AdaptationImputationClassifier
    >>> random = np.random.default_rng(0)
    >>> source, target = random.normal(size=(150, 3)), random.normal(size=(80, 2)) + 0.5
    >>> label = (source.sum(axis=1) > 0).astype(int)
    >>> options = {"training.joint_epochs": 2, "training.learning_rate": 1e-9}
    >>> model = AdaptationImputationClassifier(
    ...     missing=[2], members=["networks"], options=options, random_state=0
    ... )
    >>> rates = {"training.learning_rate": [1e-2]}
    >>> found = search(model, source, label, target, score="source_loss", space=rates, trials=2)
    >>> found.best_params
    {'training.learning_rate': 0.01}
    """
    kind = LABEL_KINDS[estimator.task]
    scores = [*scores_for(kind), *(["agreement"] if kind.answers_tell else [])]
    if score not in scores:
        reason = f"does not judge {kind.task}" if score in SCORES else "is unknown"
        raise OptionError(f"The score {score!r} {reason}; choose one of {scores}.")
    if trials < 1:
        raise OptionError(f"trials={trials} must be at least 1.")
    rows = _Rows.split(X, y, X_target, sample_weight, seed, estimator.task)
    name, own, options = _defaults(estimator, image=getattr(X, "ndim", 2) > 2)
    with _optuna(storage) as (optuna, kept):
        widened, given = _with_given(own if space is None else space, estimator, options)
        study: Study = optuna.create_study(
            storage=kept,
            study_name=f"{name} by {score}",
            direction="minimize" if SCORES[score].better == "lower" else "maximize",
            load_if_exists=True,
        )
        parameters = [estimator.get_params(deep=False).get(name) for name in SAME]
        rows_given = [X, y, X_target, sample_weight]
        facts = joblib.hash([*rows_given, options, parameters, repr(widened), seed])
        if study.user_attrs.get("facts", facts) != facts:
            raise InputError(
                f"The storage holds another search under the name {study.study_name!r} (other "
                "data, settings or seed); delete it, or give this search a storage of its own."
            )
        study.set_user_attr("facts", facts)
        _enqueue(study, widened, given, trials)
        repeated = 0
        while len(ended := ended_trials(study)) < trials and repeated < MOST_REPEATED:
            next_seed = derived_seed(seed, len(study.trials))  # others may share the storage
            study.sampler = optuna.samplers.TPESampler(seed=next_seed, constant_liar=True)
            trial = study.ask(widened)
            repeated += 1
            if trial.params in [each.params for each in ended]:  # it would have the same value
                study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                continue
            try:
                value = _value(with_settings(estimator, trial.params), rows, score, seed)
                on_trial(study.tell(trial, value))
            except TrainingDivergedError as error:
                trial.set_user_attr("error", str(error))
                on_trial(study.tell(trial, state=optuna.trial.TrialState.FAIL))
            repeated = 0
    return study


def ended_trials(study: Study) -> list[FrozenTrial]:
    """Return the trials that have used up budget: they ended by themselves, well or not."""
    return [t for t in study.trials if t.state.name == "COMPLETE" or "error" in t.user_attrs]


def _enqueue(
    study: Study, space: dict[str, BaseDistribution], given: dict[str, Any], trials: int
) -> None:
    """Let the settings as given be tried first; and all that there are, where they are few."""
    wanted, choices = [given], [getattr(kind, "choices", ()) for kind in space.values()]
    if 0 < math.prod(map(len, choices)) <= trials:
        wanted += [dict(zip(space, values, strict=True)) for values in product(*choices)]
    kept = [trial.params for trial in ended_trials(study)]
    kept += [t.system_attrs["fixed_params"] for t in study.trials if t.state.name == "WAITING"]
    for settings in wanted:
        if not any(settings.items() <= params.items() for params in kept):
            study.enqueue_trial(settings)
            kept.append(settings)


class _Rows(NamedTuple):
    X: Any
    y: Any
    X_held_out: Any
    y_held_out: Any
    X_target: Any
    weights: Any

    @classmethod
    def split(cls, X: Any, y: Any, X_target: Any, weights: Any, seed: int, task: Any) -> _Rows:
        labels, _ = label_column(y, len(read_frame(X, "the source")), task)
        if task == RegressionTarget.task:
            labels = RegressionTarget().strata(labels)
        is_held = np.zeros(len(labels), dtype=bool)
        is_held[held_out_share(labels, HELD_OUT, seed)[1]] = True
        if weights is not None:
            weights = checked_weights(weights, len(labels))[~is_held]
        train = take_rows(X, ~is_held), take_rows(y, ~is_held)
        return cls(*train, take_rows(X, is_held), take_rows(y, is_held), X_target, weights)


def _value(estimator: Estimator, rows: _Rows, score: str, seed: int) -> float:
    """Fit an estimator and return its score."""

    def fitted(random_state: Any) -> Any:
        chosen = clone(estimator).set_params(random_state=random_state)
        return chosen.fit(rows.X, rows.y, X_target=rows.X_target, sample_weight=rows.weights)

    if score == "agreement":
        fits = [fitted(derived_seed(seed, run)) for run in range(AGREEING_FITS)]
        value = agreement(np.stack([fit.predict_proba(rows.X_target) for fit in fits]))
    else:
        model = fitted(seed if estimator.random_state is None else estimator.random_state).model_
        held_out = rows.X_held_out, rows.y_held_out, rows.X_target, rows.X
        evidence = Evidence.prepared(model.prepare, model.target_type, *held_out)
        value = evaluate(model, evidence, (score,))[score]
    if not np.isfinite(value):
        raise TrainingDivergedError(f"{score} is {value}.")
    return value


@contextmanager
def _optuna(storage: str | Path | None) -> Iterator[tuple[Any, Any]]:
    """Give Optuna, silent, and its storage; say in a sentence what is wrong with one."""
    with installed_by("tune", "A search"):
        import optuna
        from sqlalchemy.exc import SQLAlchemyError
    address, how = str(storage), {}
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        if storage is not None and "://" not in address:
            Path(storage).parent.mkdir(parents=True, exist_ok=True)
            address, how = f"sqlite:///{storage}", {"connect_args": {"timeout": 60}}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            kept = optuna.storages.RDBStorage(address, how) if storage is not None else None
            yield optuna, kept
    except (optuna.exceptions.OptunaError, SQLAlchemyError) as error:
        cause = getattr(error.__cause__ or error, "orig", None) or error
        raise HalfseenError(
            f"The trials cannot be kept in {storage} ({one_line(cause)}): name another file or "
            "address, or put a copy of this one back."
        ) from error
    finally:
        optuna.logging.set_verbosity(level)


# --- what may be varied -------------------------------------------------------------------


def _defaults(estimator: Estimator, *, image: bool) -> tuple[str, Space, dict[str, Any]]:
    """Return a model's name, what may be varied of it, and its options as given."""
    networks = isinstance(estimator, AdaptationImputationClassifier)
    if not networks or not estimator.has_networks(image=image):
        sizes = range(len(TREES_AND_LINES), 0, -1)
        some = (chosen for size in sizes for chosen in combinations(TREES_AND_LINES, size))
        return MEMBERS, {"members": list(map("+".join, some)), "effort": ["default", "quick"]}, {}
    method, options = estimator.plan(image=image)
    return method.name, paper_space(method, options), options.model_dump(mode="json")


def paper_space(method: NetworkVariant, options: Options) -> dict[str, Sequence[Any]]:
    """Return the paper's grids for what matters to one model (appendix, hyperparameters).

    The learning rate for every model: the grid of its digits, or that of its ads where the
    model's own rate lies below it. λ_MSE for a model that imputes; λ_OT for one that imputes with
    transport; λ1 for one that adapts with it. With critics the paper keeps those two at one.
    """
    rates = RATES if options.training.learning_rate >= min(RATES) else SMALL_RATES
    space: dict[str, Sequence[Any]] = {"training.learning_rate": rates}
    transport = (1e-1, 1e-2, 1e-3)
    if method.imputes:
        space["objective.reconstruction_weight"] = (1.0, 1e-1, 1e-2, 7.5e-3, 5e-3, 1e-3)
        if options.objective.divergence_of_imputation == "transport":
            space["objective.imputation_weight"] = transport
    if method.adapts and options.objective.divergence == "transport":
        space["objective.adaptation_weight"] = transport
    return space


def members_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with members that were one choice, joined by ``+``, as a list of them."""
    given = settings.get("members")
    return dict(settings) | ({"members": given.split("+")} if isinstance(given, str) else {})


def with_settings(estimator: E, settings: Mapping[str, Any]) -> E:
    """Return an unfitted copy of an estimator with some options or parameters replaced."""
    known = estimator.get_params(deep=False)
    for name in settings:
        is_option = name in option_names() or name.startswith("objective.terms.")
        if name not in known and not ("options" in known and is_option):
            raise OptionError(
                f"The search varies {name!r}, which is neither an option, such as "
                f"'training.learning_rate', nor a parameter of {type(estimator).__name__}."
            )
    changed: E = clone(estimator)
    given = members_of(settings)
    return changed.set_params(**{name.replace(".", "__"): v for name, v in given.items()})


def _with_given(
    space: Space, estimator: Estimator, options: Mapping[str, Any]
) -> tuple[dict[str, BaseDistribution], dict[str, Any]]:
    """Return the space with each setting's present value in it, and those values."""
    from optuna.distributions import CategoricalDistribution

    if not space:
        raise OptionError("The search has nothing to vary: its space is empty.")
    with_settings(estimator, dict.fromkeys(space))  # unknown names
    present = estimator.get_params(deep=False) | dotted(options)
    present["members"] = "+".join(present["members"] or TREES_AND_LINES)
    widened: dict[str, Any] = dict(space)
    given = {name: present.get(name) for name in space}
    for name, kind in space.items():
        value, choices = given[name], getattr(kind, "choices", kind)
        if isinstance(choices, Sequence):
            choices = tuple(choices) if value in choices else (*choices, value)
            widened[name] = CategoricalDistribution(choices)
        elif not isinstance(value, int | float) or not kind.low <= value <= kind.high:  # type: ignore[union-attr]
            del given[name]
    return widened, given


# --- tables -------------------------------------------------------------------------------


def search_tables(
    found: InferredTables, settings: FitSettings, **how: Any
) -> Iterator[tuple[str, Study]]:
    """Search the settings of each model asked for, with its name; `how` as for :func:`search`.

    Tables that do not fit into memory are sampled.
    """
    schema, resident = found.schema, is_resident(found, settings)
    source, labels, weights = _rows(found.source, schema, resident, settings.seed, is_source=True)
    target, _, _ = _rows(found.target, schema, resident, settings.seed, is_source=False)
    how |= {"sample_weight": weights, "seed": settings.seed}
    networks = NETWORKS in settings.members_for("table", schema.target_type)
    for model in settings.models if networks else settings.models[:1]:
        study = search(estimator_for(model, schema, settings), source, labels, target, **how)
        yield model if networks else MEMBERS, study


def estimator_for(model: str, schema: TableSchema, settings: FitSettings) -> Estimator:
    """Return the estimator that fits what `halfseen fit` would fit to tables of this schema."""
    kind: Any = AdaptationImputationRegressor
    if schema.target_type.networks:
        kind = AdaptationImputationClassifier
    given = vars(settings) | {
        "model": model,
        "missing": [column.name for column in schema.missing] or None,
        "keep": [column.name for column in schema.observed],
        "categorical": [column.name for column in schema.columns if column.kind == "categorical"],
        "random_state": settings.seed,
        "refine": settings.refine and variant_named(model).adapts,
        "options": dict(settings.options) or None,
    }
    found: Estimator = kind(**{n: given[n] for n in kind().get_params() if n in given})
    return found


def _rows(
    part: TableSummary, schema: TableSchema, resident: bool, seed: int, *, is_source: bool
) -> tuple[pa.Table, npt.NDArray[Any], Floats | None]:
    """Return a table's rows as the schema reads them, or a random part of a long one.

    Those of the source are labelled; with them come their labels, and weights where there are some.
    """
    random, where = np.random.default_rng(seed), part.table.where
    apart = [schema.label, *([] if schema.weight is None else [schema.weight])]
    names = [*schema.cells(complete=is_source), *(apart if is_source else ())]
    tables, labels, weights = [], [np.empty(0, dtype=np.int64)], []
    for batch in part.table.batches(names):
        if not resident:
            chosen = random.random(batch.num_rows) < MOST_ROWS / part.rows
            batch = batch.filter(pa.array(chosen))
        if is_source:
            positions = some_labels(schema, batch.column(schema.label), schema.label, where)
            known = schema.target_type.known(positions)
            batch = batch.filter(pa.array(known))
            labels.append(positions[known])
        if is_source and schema.weight is not None:
            written = schema.written.get(schema.weight)
            given = batch.column(schema.weight)
            weights.append(as_numbers(given, schema.weight, where=where, written=written))
        read = read_rows(schema, batch, complete=is_source, where=where)
        columns = {
            name: pa.array(values, from_pandas=True) if isinstance(values, np.ndarray) else values
            for name, values in read.columns.items()
        }
        tables.append(pa.table(columns))
    found = np.concatenate(labels)
    if schema.classes:
        found = np.array(schema.classes)[found]
    return pa.concat_tables(tables), found, np.concatenate(weights) if weights else None
