"""What a fit leaves behind for a report: aggregates, and nothing about a single row.

They are the file ``report.json`` of a model folder, which anybody may have written: it is checked.
No model is asked again for them, and none may cost a user the model: what cannot be computed, for
instance because a table is tiny, is left out with the reason.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, model_validator

from halfseen.arrays import Floats
from halfseen.data.schema import CategoryColumn, NumberColumn, TableSchema, signed_log
from halfseen.errors import HalfseenError
from halfseen.evidence import (
    FeatureShift,
    category_shift,
    effective_sample_size,
    feature_shift,
    overlap,
)
from halfseen.evidence.density_ratio import ENOUGH_OVERLAP
from halfseen.evidence.features import adjusted_p_values
from halfseen.evidence.risk import deep_embedded_validation, source_validation
from halfseen.targets import TargetType

if TYPE_CHECKING:
    from halfseen.data.column_types import ColumnSummary
    from halfseen.data.schema_inference import InferredTables
    from halfseen.data.table_summary import TableSummary
    from halfseen.fitting.pipeline import FitResult

FORMAT = 3
MOST_ENTRIES = 10_000
MOST_COLUMNS = 200
"""Columns whose facts are kept: the most shifted."""
BINS = 24
MOST_BARS = 12
"""Of categories; the others share one."""
TAIL = 0.005
"""Share of rows at each end that is counted to the outermost bin, so that no extreme is shown."""
LEVEL = 0.9
"""Of every interval on the page."""

Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Shares = Annotated[tuple[Share, ...], Field(max_length=MOST_ENTRIES)]
Labels = npt.NDArray[Any]
T = TypeVar("T")


class _Fact(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="ignore", allow_inf_nan=False, from_attributes=True
    )


class Histogram(_Fact):
    """Shares of rows: by category where `labels` are given, else between `edges`."""

    labels: tuple[str, ...] = ()
    edges: tuple[float, ...] = ()
    log: bool = False
    source: Shares
    target: Shares | None = None


class Shift(_Fact):
    """As in :class:`~halfseen.evidence.FeatureShift`."""

    population_stability: float
    gap: float
    p_value: float


class ColumnFacts(_Fact):
    """One column, as both domains show it."""

    name: str
    source_known: Share
    target_known: Share
    source_mean: float | None = None
    target_mean: float | None = None
    histogram: Histogram | None = None
    shift: Shift | None = None


class Estimate(_Fact):
    """A mean with its 90 % interval."""

    value: float
    low: float
    high: float


class Expectation(_Fact):
    """Quality on held-out source rows, and on the target as their weighted form says.

    `source` and `target` hold the same measures, the headline first. `overlap` is the share of
    their number that the source rows are worth on the target.
    """

    source: Annotated[dict[str, Estimate], Field(min_length=1)]
    target: Annotated[dict[str, Estimate], Field(min_length=1)]
    rows: Count
    effective_rows: float
    overlap: Share

    @model_validator(mode="after")
    def _same_measures(self) -> Expectation:
        if list(self.source) != list(self.target):
            raise ValueError("source and target have different measures")
        return self

    @property
    def tells(self) -> bool:
        """Whether enough source rows look like the target to say anything about it."""
        return self.overlap >= ENOUGH_OVERLAP


class ReportFacts(_Fact):
    """Everything that a report shows beside the model's description.

    `model` is the SHA-256 of the tensors that the facts belong to, `measured_on` says in words
    which source rows were measured on, and `left_out` why a section has no facts. Columns begin
    with the most shifted.
    """

    format: int = FORMAT
    model: str = ""
    command: str | None = None
    measured_on: str = ""
    source_rows: Count = 0
    target_rows: Count = 0
    columns: Annotated[tuple[ColumnFacts, ...], Field(max_length=MOST_ENTRIES)] = ()
    more_columns: Count = 0
    expectation: Expectation | None = None
    left_out: dict[str, str] = {}


def facts_of_fit(found: InferredTables, fit: FitResult) -> ReportFacts:
    """Return what a report will show of a fit that has just ended."""
    held_out, schema = fit.candidate.held_out, fit.model.schema
    assert held_out is not None
    predicted, labels = held_out.to_predictions(), held_out.labels
    kind, left_out = schema.target_type, dict[str, str]()

    def attempt(section: str, find: Callable[[], T]) -> T | None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return find()
        except (HalfseenError, ValueError, ArithmeticError) as error:
            left_out[section] = str(error).partition("\n")[0]
            return None

    def expected() -> Expectation:
        return expectation(predicted, labels, fit.weights, found.target.rows, kind)

    columns = attempt("shifted", lambda: column_facts(schema, found.source, found.target)) or []
    return ReportFacts(
        measured_on=f"{len(labels):,} source rows, each held out of the training that predicted it",
        source_rows=found.source.rows,
        target_rows=found.target.rows,
        columns=tuple(columns[:MOST_COLUMNS]),
        more_columns=max(0, len(columns) - MOST_COLUMNS),
        expectation=attempt("expected", expected),
        left_out=left_out,
    )


# --- what to expect ---------------------------------------------------------------------------


def expectation(
    predicted: Floats, labels: Labels, weight: Floats, target_rows: int, kind: TargetType
) -> Expectation:
    """Return what held-out source rows let expect of `target_rows` rows of the target."""
    source, target = {}, {}
    for name, found in kind.expected(predicted, labels).items():
        here = source_validation(found.losses, level=LEVEL)
        source[name] = as_read(here.risk, here.interval, found.read)
        there = on_target(found.losses, weight, target_rows, found.other)
        target[name] = as_read(*there, found.read)
    return Expectation(
        source=source,
        target=target,
        rows=len(labels),
        effective_rows=effective_sample_size(weight),
        overlap=overlap(weight),
    )


def on_target(
    loss: Floats, weight: Floats, rows: int, other: float
) -> tuple[float, tuple[float, float]]:
    """Estimate a mean loss on rows of the target, with its interval.

    It covers the sampling of source rows, that of target rows, and what domains differ in beyond
    their observed columns, as far as other problems let expect it.
    """
    found = deep_embedded_validation(loss, weight)
    spread = float(np.sqrt(np.average(np.square(loss - found.risk), weights=weight)))
    return found.risk, found.widened(spread / np.sqrt(rows), other, level=LEVEL)


def as_read(loss: float, interval: tuple[float, float], read: Callable[[float], float]) -> Estimate:
    """Turn an estimated mean loss into what people read, such as a share of hits."""
    value, *ends = (float(read(max(0.0, end))) for end in (loss, *interval))
    return Estimate(value=value, low=min(ends), high=max(ends))


# --- columns of both tables, from the summaries that were made of them anyway -------------------


def column_facts(
    schema: TableSchema, source: TableSummary, target: TableSummary
) -> list[ColumnFacts]:
    """Return the facts of each observed column, the most shifted first."""
    found = [
        _column(column, source.columns[column.name], target.columns[column.name])
        for column in schema.observed
    ]
    shifts = {c.name: c.shift for c in found if c.shift is not None}
    if shifts:  # corrected for their number
        adjusted = adjusted_p_values([shift.p_value for shift in shifts.values()])
        for (name, shift), p_value in zip(shifts.items(), adjusted, strict=True):
            shifts[name] = shift.model_copy(update={"p_value": float(p_value)})
    found = [c.model_copy(update={"shift": shifts.get(c.name)}) for c in found]
    return sorted(found, key=lambda c: -c.shift.population_stability if c.shift else 0.0)


def _column(
    column: NumberColumn | CategoryColumn, source: ColumnSummary, target: ColumnSummary
) -> ColumnFacts:
    if isinstance(column, CategoryColumn):
        histogram, shift = _categories(column, source, target)
    else:
        histogram, shift = _numbers(column, source.sample, target.sample)
    means = [
        summary.moments().mean if len(summary.sample) else np.nan for summary in (source, target)
    ]
    return ColumnFacts(
        name=column.name,
        source_known=1.0 - source.gaps / max(source.rows, 1),
        target_known=1.0 - target.gaps / max(target.rows, 1),
        source_mean=means[0] if np.isfinite(means[0]) else None,
        target_mean=means[1] if np.isfinite(means[1]) else None,
        histogram=histogram,
        shift=None if shift is None else Shift.model_validate(shift),
    )


def _categories(
    column: CategoryColumn, source: ColumnSummary, target: ColumnSummary
) -> tuple[Histogram | None, FeatureShift | None]:
    """Compare the categories that the schema names; all others are one."""

    def counted(summary: ColumnSummary) -> Floats:
        known = [summary.counts.get(category, 0) for category in column.categories]
        others = sum(summary.counts.values()) - sum(known)
        return np.array([*known, others], dtype=np.float64)

    here, there = counted(source), counted(target)
    if not here.sum() or not there.sum():
        return None, None
    both = here / here.sum() + there / there.sum()
    drawn = sorted(np.argsort(-both[:-1], kind="stable")[: MOST_BARS - 1])

    def bars(counts: Floats) -> tuple[float, ...]:
        known = counts[drawn] / counts.sum()
        return (*known.tolist(), max(0.0, float(1.0 - known.sum())))

    labels = (*(column.categories[i] for i in drawn), "others")
    histogram = Histogram(labels=labels, source=bars(here), target=bars(there))
    return histogram, category_shift(column.name, here, there)


def _numbers(
    column: NumberColumn, source: Floats, target: Floats
) -> tuple[Histogram | None, FeatureShift | None]:
    if min(len(source), len(target)) < 2:
        return None, None
    (shift,) = feature_shift(source[:, None], target[:, None])
    return number_histogram(source, target, log=column.log), shift


def number_histogram(source: Floats, target: Floats, *, log: bool = False) -> Histogram:
    """Return shares of rows in bins of equal width, between quantiles near the ends."""
    drawn = [signed_log(v) if log else v for v in (source, target)]
    ends = [np.quantile(v, [TAIL, 1 - TAIL]) for v in drawn]
    low, high = min(e[0] for e in ends), max(e[1] for e in ends)
    edges = np.linspace(low, high if high > low else low + 1.0, BINS + 1)
    shares = [np.histogram(np.clip(v, low, edges[-1]), edges)[0] / len(v) for v in drawn]
    raw = np.sign(edges) * np.expm1(np.abs(edges)) if log else edges
    return Histogram(
        edges=tuple(raw.tolist()),
        log=log,
        source=tuple(shares[0].tolist()),
        target=tuple(shares[1].tolist()),
    )
