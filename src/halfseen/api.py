"""Two data frames, or two files, to one model: the Python twin of ``halfseen fit``."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

from halfseen.alarms import refuse
from halfseen.alarms.table_alarms import table_alarms
from halfseen.data.column_spec import ColumnSpec, Task
from halfseen.data.dates import read_dates
from halfseen.data.frames import read_frame
from halfseen.data.schema_inference import (
    AmbiguousColumn,
    InferredTables,
    ambiguous_columns,
    infer_sites,
)  # fmt: skip
from halfseen.data.table_files import TableFiles, open_table
from halfseen.data.tables import ArrowTable, Table, named_sites, site_name
from halfseen.errors import InputError, OptionError
from halfseen.fitting.pipeline import fit_tables
from halfseen.model.model import Model
from halfseen.model.pattern_model import PatternModel
from halfseen.report.gathering import facts_of_fit
from halfseen.settings import FitSettings


def fit(
    source: Any,
    target: Any,
    label: str,
    *,
    missing: Sequence[str] = (),
    keep: Sequence[str] = (),
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    dates: Mapping[str, str | Sequence[str]] | None = None,
    drop: Sequence[str] = (),
    id: Sequence[str] = (),
    positive: str | None = None,
    task: Task = "auto",
    weight: str | None = None,
    target_labels: bool | None = None,
    strict: bool = False,
    report: bool = True,
    **settings: Any,
) -> Model | PatternModel:
    """Learn from a complete, labelled table for one that lacks columns and labels.

    Parameters
    ----------
    source, target
        Data frames of pandas or polars, Arrow tables, or paths of files. What the target lacks, or
        has entirely empty, is the missing block. A list of them, or a mapping of names to them,
        are several sites: sources are pooled, and each set of columns that targets lack gets a
        model of its own.
    label
        The source's column to predict. The target may have it too, with values in some rows.
    missing, keep
        Columns never measured on the target beside those found, and columns that are although
        they look otherwise.
    categorical, numeric, drop, id
        Numbers that are names of categories, numbers among which texts are gaps, columns not to
        use, and columns carried through.
    dates
        Parts to read of columns of dates: ``{"visit": ["month", "weekday"]}``, or on the clock of
        a zone ``{"visit": "hour@Europe/Berlin"}``.
    positive
        The class of two that metrics speak of.
    task
        What the label is: ``"classification"``, ``"regression"`` (an amount), or ``"auto"``, which
        takes fractions of more than ten values for amounts, and asks where whole numbers look
        like them.
    weight
        The source's column that says how much each row counts.
    target_labels
        Whether labels of target rows are used; None uses them where some rows have none. A few
        weigh and calibrate the members, more are learned from; ``metrics["target_labels"]`` says
        what was done, and what cross-validation measured on them.
    strict
        Whether an alarm is an error; otherwise it is a warning.
    report
        Whether the model keeps what ``halfseen report`` shows: aggregates, nothing of single rows.
    **settings
        Any of :class:`halfseen.settings.FitSettings`: models, members, effort, align,
        preset, divergence, options, refine, seed, seeds, class_weight, time_limit, memory and
        others.

    Returns
    -------
    Model or PatternModel
        With ``predict_proba`` (for amounts ``predict_interval``), ``predict``, ``evaluate``,
        ``save``, and ``metrics``, whose ``alarms`` are what looked wrong.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> random = np.random.default_rng(0)
    >>> age, pulse, test = random.normal(size=(3, 80))
    >>> shop = random.choice(["north", "south"], 80)
    >>> source = {"age": age, "pulse": pulse, "shop": shop, "test": test, "sick": age + test > 0}
    >>> target = pa.table({"age": age[:40] + 0.3, "pulse": pulse[40:], "shop": shop[:40]})
    >>> model = fit(pa.table(source), target, "sick", effort="quick", report=False)
    >>> model.predict_proba(target).shape
    (40, 2)
    """
    known = [entry.name for entry in fields(FitSettings)]
    unknown = [name for name in settings if name not in known]
    if unknown:
        raise OptionError(f"There is no setting {unknown[0]!r}; there are {', '.join(known)}.")
    several = {name for name in ("models", "members") if settings.get(name) is not None}
    chosen = FitSettings(**settings | {name: _names(settings[name]) for name in several})
    chosen.check("table")
    spec = ColumnSpec(
        label, _names(missing), _names(keep), _names(categorical), _names(drop), _names(id),
        positive, in_python=True, numeric=_names(numeric), target_labels=target_labels,
        dates=read_dates(dates or {}), task=task, weight=weight,
    )  # fmt: skip
    if task not in get_args(Task):
        raise OptionError(f"task={task!r} is unknown; choose one of {list(get_args(Task))}.")
    here, there = (_sites(given, role) for given, role in ((source, "source"), (target, "target")))
    found = infer_sites(here, there, spec)
    doubts = [doubt for doubt in found if isinstance(doubt, AmbiguousColumn)]
    if doubts:
        raise ambiguous_columns(doubts, spec)
    understood = [part for part in found if isinstance(part, InferredTables)]
    for note in dict.fromkeys(note for part in understood for note in part.notes):
        warnings.warn(note, stacklevel=2)
    models = [_fitted(part, chosen, strict=strict, report=report) for part in understood]
    for alarm in dict.fromkeys(alarm.says for model in models for alarm in model.alarms):
        warnings.warn(alarm, stacklevel=2)
    return models[0] if len(models) == 1 else PatternModel(tuple(models))


def _fitted(found: InferredTables, settings: FitSettings, *, strict: bool, report: bool) -> Model:
    if strict:
        refuse(table_alarms(found))
    fitted = fit_tables(found, settings)
    model = fitted.model
    if strict:
        refuse(model.alarms)
    if report:
        model.report = facts_of_fit(found, fitted).model_dump(mode="json")
    return model


def _sites(given: Any, role: str) -> dict[str, Table]:
    table = _table
    if isinstance(given, Mapping):
        return named_sites([(str(n), table(g, f"the {role} {n}")) for n, g in given.items()], role)
    if not isinstance(given, list | tuple):
        return {role: table(given, f"the {role}")}
    names = [
        site_name(Path(each)) if isinstance(each, str | Path) else f"{role} {number}"
        for number, each in enumerate(given, start=1)
    ]
    tables = [table(each, f"the {n}") for n, each in zip(names, given, strict=True)]
    return named_sites(list(zip(names, tables, strict=True)), role)


def _table(given: Any, where: str) -> ArrowTable | TableFiles:
    if isinstance(given, str | Path):
        return open_table(given)
    try:
        read = read_frame(given, where)
    except InputError:
        raise
    except (TypeError, ValueError):  # of arrays that are none
        read = None
    if not isinstance(read, ArrowTable) or read.positional:
        raise InputError(
            f"{where.capitalize()} has no column names: give data frames, Arrow tables or paths of "
            "files, or use AdaptationImputationClassifier for arrays and images."
        )
    return read


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)
