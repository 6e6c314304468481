"""A search over settings by a score without target labels: resumable, and on several machines.

Optuna proposes settings and keeps what came of them; every trial is one fit, or three.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np

from halfseen.api import read_tables
from halfseen.arrays import Matrix
from halfseen.data.label_column import row_weights
from halfseen.data.preprocessing import RowStream
from halfseen.data.preprocessors import TablePreprocessor
from halfseen.data.schema_inference import InferredTables
from halfseen.errors import (
    HalfseenError,
    InputError,
    OptionError,
    TrainingDivergedError,
    installed_by,
    one_line,
)
from halfseen.evidence.risk import SCORES, agreement
from halfseen.fitting.pipeline import fit_rows
from halfseen.fitting.prepared_rows import (
    HELD_OUT,
    is_resident,
    measured_columns,
    prepared_in_memory,
)
from halfseen.members import Sample
from halfseen.model.model import Model
from halfseen.networks.loop import derived_seed
from halfseen.networks.variants import NetworkVariant
from halfseen.options import Options, dotted, option_names
from halfseen.selection import Evidence, evaluate, scores_for
from halfseen.settings import TREES_AND_REGRESSION, FitSettings
from halfseen.splitting import held_out_share

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

__all__ = ["ended_trials", "paper_space", "search", "with_params"]

AGREEING_FITS = 3
MOST_REPEATED = 50
"""Proposals that may turn out to be old ones, one after another, before a search ends."""
MOST_ROWS = 20_000
"""Rows of a table that is too large for memory that stand for all in a search."""
RATES = tuple(10**exponent for exponent in (-2, -2.5, -3, -3.5, -4))
"""Learning rates of the paper on digits; on ads,"""
SMALL_RATES = (1e-4, 1e-5, 1e-6, 1e-7)

Space = Mapping[str, "Sequence[Any] | BaseDistribution"]
"""What each setting may be: choices, or a distribution of Optuna's."""


def search(
    source: Any,
    target: Any,
    label: str,
    *,
    score: str = "dev",
    space: Space | None = None,
    trials: int = 20,
    storage: str | Path | None = None,
    on_trial: Callable[[FrozenTrial], None] = lambda trial: None,
    **settings: Any,
) -> Study:
    """Search the settings of a fit by a score without target labels.

    The first trial has the settings as given, which always belong to the space. Optuna's
    tree-structured Parzen estimator proposes the others; nothing is tried twice, and a space that
    holds fewer settings than trials has them all tried.

    Parameters
    ----------
    source, target, label, **settings
        As for :func:`halfseen.fit`. A fifth of the source rows is scored on, not trained on.
    score
        What decides: ``agreement`` (of three fits) or one of
        :data:`~halfseen.selection.ONE_FIT_SCORES`. The default is the paper's; on the pairs we
        compared, ``agreement`` chose better. Of amounts: ``dev``, ``importance_weighted`` or
        ``source_loss``, in squared error.
    space
        Choices, or a distribution of ``optuna.distributions``, by name of a setting or of an
        option of the networks, such as ``training.learning_rate``. By default the paper's grids,
        :func:`paper_space`; without networks members and effort.
    trials
        The budget: fits that ran to an end or diverged.
    storage
        A file for the database of trials, or a database address as Optuna takes it. A search that
        was stopped continues from it, and several processes or machines may share it.
    on_trial
        Told of every trial that ends.

    Returns
    -------
    optuna.Study
        With ``best_params``, which :func:`with_params` lays over settings, and
        ``trials_dataframe()``.

    Examples
    --------
    >>> import pyarrow as pa
    >>> a, b = np.random.default_rng(0).normal(size=(2, 100))
    >>> source = pa.table({"a": a, "b": b, "sick": a + b > 0})
    >>> target = source.select(["a"])
    >>> sizes = {"effort": ["quick", "default"]}
    >>> found = search(source, target, "sick", score="source_loss", space=sizes, trials=2)
    >>> sorted(trial.params["effort"] for trial in found.trials)
    ['default', 'quick']
    """
    chosen = FitSettings(**{"label": label} | settings)
    chosen.check()
    parts = read_tables(source, target, chosen)
    if len(parts) > 1:
        raise InputError("The targets lack different columns: search for one set at a time.")
    how: Any = {"space": space, "trials": trials, "storage": storage, "on_trial": on_trial}
    return search_tables(parts[0], chosen, score=score, **how)


def search_tables(
    tables: InferredTables,
    settings: FitSettings,
    *,
    score: str,
    space: Space | None = None,
    trials: int,
    storage: str | Path | None,
    on_trial: Callable[[FrozenTrial], None],
) -> Study:
    """Search as :func:`search` does, on tables whose columns are known; large ones are sampled."""
    kind = tables.schema.target_type
    scores = [*scores_for(kind), *(["agreement"] if kind.answers_tell else [])]
    if score not in scores:
        reason = f"does not judge {kind.task}" if score in SCORES else "is unknown"
        raise OptionError(f"The score {score!r} {reason}; choose one of {scores}.")
    if trials < 1:
        raise OptionError(f"trials={trials} must be at least 1.")
    with _optuna(storage) as (optuna, kept):
        name, own, present = _as_given(settings, classes=kind.networks)
        widened, given = _with_present(own if space is None else space, present)
        rows = _Rows.of(tables, settings)
        study: Study = optuna.create_study(
            storage=kept,
            study_name=f"{name} by {score}",
            direction="minimize" if SCORES[score].better == "lower" else "maximize",
            load_if_exists=True,
        )
        facts = joblib.hash([rows.training, rows.held_out, rows.target, present, repr(widened)])
        if study.user_attrs.get("facts", facts) != facts:
            raise InputError(
                f"The storage holds another search under the name {study.study_name!r} (other "
                "data, settings or seed); delete it, or give this search a storage of its own."
            )
        study.set_user_attr("facts", facts)
        _enqueue(study, widened, given, trials)
        repeated = 0
        while len(ended := ended_trials(study)) < trials and repeated < MOST_REPEATED:
            seed = derived_seed(settings.seed, len(study.trials))  # others may share the storage
            study.sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
            trial = study.ask(widened)
            repeated += 1
            if trial.params in [each.params for each in ended]:  # it would have the same value
                study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                continue
            try:
                value = rows.value(with_params(settings, trial.params), score)
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


@dataclass(frozen=True)
class _Rows:
    """Prepared rows: what is trained on, and what is scored on."""

    preprocessor: TablePreprocessor
    training: Sample
    held_out: Sample
    target: Matrix

    @classmethod
    def of(cls, tables: InferredTables, settings: FitSettings) -> _Rows:
        schema, kind = tables.schema, tables.schema.target_type
        most = 2**62 if is_resident(tables, settings) else MOST_ROWS
        source, target = (
            RowStream(part.table, schema, is_source, seed=settings.seed).at_most(most, part.rows)
            for part, is_source in ((tables.source, True), (tables.target, False))
        )
        given = None
        if schema.weight is not None:
            if len(source[0]) < tables.source.rows:
                raise InputError("Weights of rows need the tables in memory: give more memory.")
            given = row_weights(tables.source.table, schema)
        sample = Sample(*source, kind.class_weights(source[1], given, settings.class_weight))
        split = held_out_share(kind.strata(sample.labels), HELD_OUT, settings.seed)
        return cls(TablePreprocessor(schema), sample[split[0]], sample[split[1]], target[0])

    def value(self, settings: FitSettings, score: str) -> float:
        """Fit with these settings and return the score."""
        blocks, kind = self.preprocessor.blocks, self.preprocessor.target_type
        if score == "agreement":
            seeds = [derived_seed(settings.seed, run) for run in range(AGREEING_FITS)]
            models = [self._fitted(settings.model_copy(update={"seed": each})) for each in seeds]
            value = agreement(np.stack([model.score(self.target) for model in models]))
        else:
            held_out, training = (
                blocks.hide(each.inputs) for each in (self.held_out, self.training)
            )
            evidence = Evidence(held_out, self.held_out.labels, self.target, training, kind)
            value = evaluate(self._fitted(settings), evidence, (score,))[score]
        if not np.isfinite(value):
            raise TrainingDivergedError(f"{score} is {value}.")
        return value

    def _fitted(self, settings: FitSettings) -> Model:
        rows = prepared_in_memory(
            self.preprocessor.blocks,
            self.preprocessor.target_type,
            self.training,
            self.target,
            hold_out=settings.holds_out("table"),
            seed=settings.seed,
            thorough=settings.effort == "best",
        )
        rows = replace(rows, measured=measured_columns(self.preprocessor.schema))
        return fit_rows(self.preprocessor, rows, settings).model


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


def _as_given(settings: FitSettings, *, classes: bool) -> tuple[str, Space, dict[str, Any]]:
    """Return a model's name, what may be varied of it by default, and its present settings."""
    present = settings.model_dump(exclude={"options", "device", "memory_mib", "report_data"})
    members = settings.members_for("table", classes=classes)
    present["members"] = "+".join(members)
    if "networks" not in members:
        sizes = range(len(TREES_AND_REGRESSION), 0, -1)
        some = (chosen for size in sizes for chosen in combinations(TREES_AND_REGRESSION, size))
        space = {"members": list(map("+".join, some)), "effort": ["default", "quick"]}
        return "Trees and regression", space, present
    variant = settings.variants("table")[0]
    options = settings.options_for(variant)
    present |= dotted(options.model_dump(mode="json"))
    return variant.name, paper_space(variant, options), present


def paper_space(variant: NetworkVariant, options: Options) -> dict[str, Sequence[Any]]:
    """Return the paper's grids for what matters to one model (appendix, hyperparameters).

    The learning rate for every model: the grid of its digits, or that of its ads where the
    model's own rate lies below it. λ_MSE for a model that imputes; λ_OT for one that imputes with
    transport; λ1 for one that adapts with it. With critics the paper keeps those two at one.
    """
    rates = RATES if options.training.learning_rate >= min(RATES) else SMALL_RATES
    space: dict[str, Sequence[Any]] = {"training.learning_rate": rates}
    transport = (1e-1, 1e-2, 1e-3)
    if variant.imputes:
        space["objective.reconstruction_weight"] = (1.0, 1e-1, 1e-2, 7.5e-3, 5e-3, 1e-3)
        if options.objective.divergence_of_imputation == "transport":
            space["objective.imputation_weight"] = transport
    if variant.adapts and options.objective.divergence == "transport":
        space["objective.adaptation_weight"] = transport
    return space


def with_params(settings: FitSettings, params: Mapping[str, Any]) -> FitSettings:
    """Return settings with what a search tried in their place; members are joined by ``+``."""
    own = {name: value for name, value in params.items() if name in FitSettings.model_fields}
    if isinstance(own.get("members"), str):
        own["members"] = own["members"].split("+")
    options = {name: value for name, value in params.items() if name not in own}
    if options or settings.options:
        own["options"] = {**dotted(settings.options), **options}
    return FitSettings(**settings.model_dump(exclude_unset=True) | own)


def _with_present(
    space: Space, present: Mapping[str, Any]
) -> tuple[dict[str, BaseDistribution], dict[str, Any]]:
    """Return the space with each setting's present value in it, and those values."""
    from optuna.distributions import CategoricalDistribution

    if not space:
        raise OptionError("The search has nothing to vary: its space is empty.")
    widened: dict[str, Any] = dict(space)
    given = {name: present.get(name) for name in space}
    for name, kind in space.items():
        if name not in {*FitSettings.model_fields, *option_names()}:
            raise OptionError(
                f"The search varies {name!r}, which is neither a setting nor an option of the "
                "networks, such as 'training.learning_rate'."
            )
        value, choices = given[name], getattr(kind, "choices", kind)
        if isinstance(choices, Sequence):
            choices = tuple(choices) if value in choices else (*choices, value)
            widened[name] = CategoricalDistribution(choices)
        elif not isinstance(value, int | float) or not kind.low <= value <= kind.high:  # type: ignore[union-attr]
            del given[name]
    return widened, given
