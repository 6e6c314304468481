"""Two data frames, or two files, to one model: the Python twin of ``halfseen fit``."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from halfseen.alarms import refuse, table_alarms
from halfseen.errors import InputError, OptionError
from halfseen.front.dates import read_dates
from halfseen.front.files import TableFiles, open_table
from halfseen.front.frames import read_frame
from halfseen.front.inference import Understanding, understand
from halfseen.front.pairing import doubtful
from halfseen.front.roles import Roles
from halfseen.front.tables import ArrowTable
from halfseen.model.fitting import fit_tables
from halfseen.model.model import Model
from halfseen.model.settings import FitSettings, needs_complete_target
from halfseen.report.gathering import facts_of_fit

__all__ = ["fit"]


def fit(
    source: Any,
    target: Any,
    label: str,
    *,
    missing: Sequence[str] = (),
    keep: Sequence[str] = (),
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    dates: Mapping[str, Sequence[str]] | None = None,
    drop: Sequence[str] = (),
    id: Sequence[str] = (),
    positive: str | None = None,
    strict: bool = False,
    report: bool = True,
    **settings: Any,
) -> Model:
    """Learn from a complete, labelled table for one that lacks columns and labels.

    Parameters
    ----------
    source, target
        Data frames of pandas or polars, Arrow tables, or paths of files. What the target lacks, or
        has entirely empty, is the missing block.
    label
        The source's column to predict. One of that name in the target is not used for training.
    missing, keep
        Columns never measured on the target beside those found, and columns that are although
        they look otherwise.
    categorical, numeric, drop, id
        Numbers that are names of categories, numbers among which texts are gaps, columns not to
        use, and columns carried through.
    dates
        Parts to read of columns of dates: ``{"visit": ["month", "weekday"]}``.
    positive
        The class of two that metrics speak of.
    strict
        Whether an alarm is an error; otherwise it is a warning.
    report
        Whether the model keeps what ``halfseen report`` shows: aggregates, nothing of single rows.
    **settings
        Any of :class:`halfseen.model.settings.FitSettings`: models, members, effort, align,
        preset, divergence, options, refine, seed, memory and others.

    Returns
    -------
    Model
        With ``predict_proba``, ``predict``, ``evaluate``, ``save``, and ``metrics``, whose
        ``alarms`` are what looked wrong.

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
    chosen = FitSettings(**settings | {name: tuple(settings[name]) for name in several})
    chosen.check("table")
    roles = Roles(
        label, tuple(missing), tuple(keep), tuple(categorical), tuple(drop), tuple(id), positive,
        in_python=True, numeric=tuple(numeric), dates=read_dates(dates or {}),
    )  # fmt: skip
    here, there = (
        _table(given, where).with_dates(roles.dates)
        for given, where in ((source, "the source"), (target, "the target"))
    )
    found = understand(here, there, roles, complete=needs_complete_target(chosen.models))
    if not isinstance(found, Understanding):
        raise doubtful(found)
    if strict:
        refuse(table_alarms(found))
    fitted = fit_tables(found, chosen)
    model = fitted.model
    if strict:
        refuse(model.alarms)
    for alarm in model.alarms:
        warnings.warn(alarm.says, stacklevel=2)
    if report:
        model.report = facts_of_fit(found, fitted).model_dump(mode="json")
    return model


def _table(given: Any, where: str) -> ArrowTable | TableFiles:
    if isinstance(given, str | Path):
        return open_table(given)
    read = read_frame(given, where)
    if not isinstance(read, ArrowTable) or read.positional:
        raise InputError(
            f"{where.capitalize()} has no column names: give data frames, Arrow tables or paths of "
            "files, or use AdaptationImputationClassifier for arrays and images."
        )
    return read
