"""The one fit: two domains and settings in, a model out. Every entrance calls it in one hop."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halfseen.alarms import refuse
from halfseen.alarms.table_alarms import table_alarms
from halfseen.arrays import Matrix
from halfseen.data.frames import read_frame
from halfseen.data.preprocessors import ImagePreprocessor
from halfseen.data.schema_inference import (
    AmbiguousColumn,
    InferredTables,
    ambiguous_columns,
    infer_tables,
)  # fmt: skip
from halfseen.data.table_files import TableFiles, open_table
from halfseen.data.tables import ArrowTable, Table
from halfseen.errors import AlarmWarning, InputError
from halfseen.fitting.member_training import Hooks
from halfseen.fitting.pipeline import fit_images, fit_tables
from halfseen.fitting.report_facts import facts_of_fit
from halfseen.members import Sample
from halfseen.model.model import Model
from halfseen.settings import FitSettings

if TYPE_CHECKING:
    from halfseen.model.pattern_model import PatternModel


@dataclass(frozen=True)
class ImageDomains:
    """Images of both domains, prepared: the source's with labels, the target's part hidden."""

    preprocessor: ImagePreprocessor
    source: Sample
    target: Matrix
    training_data: Mapping[str, Any] = field(default_factory=dict)
    unlabelled: Matrix | None = None
    """Complete images without a label."""


def fit_domains(
    domains: InferredTables | ImageDomains, settings: FitSettings, hooks: Hooks | None = None
) -> Model:
    """Fit two domains that were read: tables whose columns are known, or images."""
    if isinstance(domains, ImageDomains):
        images, own = domains, settings.for_side(min(domains.preprocessor.blocks.shape[1:]))
        result = fit_images(
            images.preprocessor,
            images.source,
            images.target,
            own,
            hooks,
            images.training_data,
            images.unlabelled,
        )
    else:
        if settings.strict:
            refuse(table_alarms(domains))
        result = fit_tables(domains, settings, hooks)
        if settings.report_data != "none" and result.candidate.held_out is not None:
            result.model.report = facts_of_fit(domains, result).model_dump(mode="json")
    if settings.strict:
        refuse(result.model.alarms)
    return result.model


def fit(
    source: Any,
    target: Any,
    label: str,
    *,
    unlabelled: Any = None,
    report: bool = True,
    **settings: Any,
) -> Model | PatternModel:
    """Learn from a complete, labelled table for one that lacks columns and labels.

    Parameters
    ----------
    source, target
        Data frames of pandas or polars, Arrow tables, or paths of files. What the target lacks, or
        has entirely empty, is the missing block. Of a list of them sources are pooled, and each
        set of columns that targets lack gets a model of its own.
    label
        The source's column to predict; rows in which it is empty teach what the missing columns
        say. The target may have it too, with values in some rows.
    unlabelled
        More complete rows, from anywhere, without the label: a table or a list of them.
    report
        Whether the model keeps what ``halfseen report`` shows: aggregates, nothing of single rows.
    **settings
        Any field of :class:`halfseen.settings.FitSettings`, the options of ``halfseen fit``:
        missing, keep, categorical, dates, drop, id, task, weight, effort, members, strict, seed
        and others.

    Returns
    -------
    Model or PatternModel
        With ``predict_proba`` (for amounts ``predict_interval``), ``predict``, ``evaluate``,
        ``save``, and ``metrics``, whose ``alarms`` are what looked wrong; they are also warnings.

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
    kept = "aggregates" if report else "none"
    chosen = FitSettings(**{"label": label, "report_data": kept} | settings)
    chosen.check()
    parts = read_tables(source, target, chosen, unlabelled)
    for note in dict.fromkeys(note for part in parts for note in part.notes):
        warnings.warn(note, stacklevel=2)
    models = [fit_domains(part, chosen) for part in parts]
    for alarm in dict.fromkeys(alarm.says for model in models for alarm in model.alarms):
        warnings.warn(alarm, AlarmWarning, stacklevel=2)
    if len(models) == 1:
        return models[0]
    from halfseen.model.pattern_model import PatternModel

    return PatternModel(tuple(models))


def read_tables(
    source: Any, target: Any, settings: FitSettings, unlabelled: Any = None
) -> list[InferredTables]:
    """Return what the columns of tables are, for each set of columns that targets lack."""
    spec = settings.spec(in_python=True)
    more = [] if unlabelled is None else _tables(unlabelled, "unlabelled rows")
    inferred = infer_tables(_tables(source, "source"), _tables(target, "target"), spec, more)
    ambiguous = [part for part in inferred if isinstance(part, AmbiguousColumn)]
    if ambiguous:
        raise ambiguous_columns(ambiguous, spec)
    return [part for part in inferred if isinstance(part, InferredTables)]


def _tables(given: Any, role: str) -> list[Table]:
    if not isinstance(given, list | tuple):
        return [_table(given, f"the {role}")]
    return [_table(each, f"the {role} {number}") for number, each in enumerate(given, start=1)]


def _table(given: Any, where: str) -> ArrowTable | TableFiles:
    if isinstance(given, str | Path):
        return open_table(given)
    try:
        table = read_frame(given, where)
    except InputError:
        raise
    except (TypeError, ValueError):  # of arrays that are none
        table = None
    if not isinstance(table, ArrowTable) or table.positional:
        raise InputError(
            f"{where.capitalize()} has no column names: give data frames, Arrow tables or paths of "
            "files, or use HalfSeenClassifier for arrays and images."
        )
    return table
