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
from halfseen.data.preprocessing import signed_log
from halfseen.data.schema import CategoryColumn, Kind, NumberColumn, Role, TableSchema
from halfseen.errors import HalfseenError
from halfseen.evidence import category_shift, effective_sample_size, feature_shift, overlap
from halfseen.evidence.density_ratio import ENOUGH_OVERLAP
from halfseen.evidence.features import adjusted_p_values
from halfseen.evidence.risk import deep_embedded_validation, source_validation
from halfseen.metrics import expected_calibration_error
from halfseen.targets import TargetType

if TYPE_CHECKING:
    from halfseen.data.column_summary import ColumnSummary
    from halfseen.data.schema_inference import InferredTables
    from halfseen.data.table_summary import TableSummary
    from halfseen.fitting.pipeline import Fit

FORMAT = 3
MOST_ENTRIES = 10_000
MOST_COLUMNS = 200
"""Columns of each role whose facts are kept; of the observed ones, the most shifted."""
BINS, RELIABILITY_BINS = 24, 10
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
    kind: Kind
    role: Role
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


class ReliabilityBin(_Fact):
    """Rows of about the same predicted probability, and how often it came true."""

    rows: Count
    predicted: Share
    observed: Share


class Reliability(_Fact):
    """How often a probability came true; `of` is the class that it speaks of, if one."""

    of: str | None
    error: float
    bins: tuple[ReliabilityBin, ...]


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
    reliability: Reliability | None = None
    left_out: dict[str, str] = {}


def facts_of_fit(found: InferredTables, fit: Fit) -> ReportFacts:
    """Return what a report will show of a fit that has just ended."""
    held_out, schema = fit.chosen.held_out, fit.model.schema
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
    observed, missing = ([c for c in columns if c.role == r] for r in ("observed", "missing"))
    kept = (*observed[:MOST_COLUMNS], *missing[:MOST_COLUMNS])
    names = schema.class_names
    return ReportFacts(
        measured_on=f"{len(labels):,} source rows, each held out of the training that predicted it",
        source_rows=found.source.rows,
        target_rows=found.target.rows,
        columns=kept,
        more_columns=len(columns) - len(kept),
        expectation=attempt("expected", expected),
        reliability=attempt("calibration", lambda: _reliability(predicted, labels, names))
        if names
        else None,
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


def _reliability(probability: Floats, labels: Labels, names: tuple[str, ...]) -> Reliability:
    """Count how often probabilities came true: of the last of two classes, or of the top one."""
    two = probability.shape[1] == 2
    claimed = probability[:, 1] if two else probability.max(1)
    came_true = labels == 1 if two else probability.argmax(1) == labels
    place = np.minimum((claimed * RELIABILITY_BINS).astype(np.int64), RELIABILITY_BINS - 1)
    bins = [
        ReliabilityBin(
            rows=int((place == b).sum()),
            predicted=float(np.clip(claimed[place == b].mean(), 0.0, 1.0)),
            observed=float(came_true[place == b].mean()),
        )
        for b in np.unique(place)
    ]
    error = expected_calibration_error(probability, labels)
    return Reliability(of=names[1] if two else None, error=error, bins=tuple(bins))


# --- columns of both tables, from the summaries that were made of them anyway -------------------


def column_facts(
    schema: TableSchema, source: TableSummary, target: TableSummary
) -> list[ColumnFacts]:
    """Return the facts of each column, the most shifted first."""
    found = [_column(column, source, target) for column in schema.columns]
    shifts = {c.name: c.shift for c in found if c.shift is not None}
    if shifts:  # corrected for their number
        adjusted = adjusted_p_values([shift.p_value for shift in shifts.values()])
        for (name, shift), p_value in zip(shifts.items(), adjusted, strict=True):
            shifts[name] = shift.model_copy(update={"p_value": float(p_value)})
    found = [c.model_copy(update={"shift": shifts.get(c.name)}) for c in found]
    return sorted(found, key=lambda c: -c.shift.population_stability if c.shift else 0.0)


def _column(
    column: NumberColumn | CategoryColumn, source: TableSummary, target: TableSummary
) -> ColumnFacts:
    here = source.columns[column.name]
    there = target.columns.get(column.name) if column.role == "observed" else None
    compare = _numbers if isinstance(column, NumberColumn) else _categories
    histogram, shift = compare(column, here, there)  # type: ignore[arg-type]
    means = [
        summary.moments().mean if summary is not None and len(summary.sample) else np.nan
        for summary in (here, there)
    ]
    return ColumnFacts(
        name=column.name,
        kind=column.kind,
        role=column.role,
        source_known=1.0 - here.gap_share,
        target_known=0.0 if there is None else 1.0 - there.gap_share,
        source_mean=means[0] if np.isfinite(means[0]) else None,
        target_mean=means[1] if np.isfinite(means[1]) else None,
        histogram=histogram,
        shift=shift,
    )


def _categories(
    column: CategoryColumn, source: ColumnSummary, target: ColumnSummary | None
) -> tuple[Histogram | None, Shift | None]:
    """Compare the categories that the schema names; all others are one."""

    def counted(summary: ColumnSummary) -> Floats:
        known = [summary.counts.get(category, 0) for category in column.categories]
        others = sum(summary.counts.values()) - sum(known)
        return np.array([*known, others], dtype=np.float64)

    here, there = counted(source), None if target is None else counted(target)
    if not here.sum():
        return None, None
    there = there if there is not None and there.sum() else None
    share = here / here.sum()
    both = share if there is None else share + there / there.sum()
    drawn = sorted(np.argsort(-both[:-1], kind="stable")[: MOST_BARS - 1])

    def bars(counts: Floats) -> tuple[float, ...]:
        known = counts[drawn] / max(counts.sum(), 1.0)
        return (*(float(v) for v in known), max(0.0, float(1.0 - known.sum())))

    histogram = Histogram(
        labels=(*(column.categories[i] for i in drawn), "others"),
        source=bars(here),
        target=None if there is None else bars(there),
    )
    if there is None:
        return histogram, None
    return histogram, Shift.model_validate(category_shift(column.name, here, there))


def _numbers(
    column: NumberColumn, source: ColumnSummary, target: ColumnSummary | None
) -> tuple[Histogram | None, Shift | None]:
    here = source.sample
    there = None if target is None or len(target.sample) < 2 else target.sample
    if len(here) < 2:
        return None, None
    histogram = number_histogram(here, there, log=column.log)
    if there is None:
        return histogram, None
    (shift,) = feature_shift(here[:, None], there[:, None])
    return histogram, Shift.model_validate(shift)


def number_histogram(source: Floats, target: Floats | None, *, log: bool = False) -> Histogram:
    """Return shares of rows in bins of equal width, between quantiles near the ends."""
    given = [values for values in (source, target) if values is not None]
    drawn = [signed_log(v) for v in given] if log else given
    ends = [np.quantile(v, [TAIL, 1 - TAIL]) for v in drawn]
    low, high = min(e[0] for e in ends), max(e[1] for e in ends)
    edges = np.linspace(low, high if high > low else low + 1.0, BINS + 1)
    shares = [np.histogram(np.clip(v, low, edges[-1]), edges)[0] / len(v) for v in drawn]
    raw = np.sign(edges) * np.expm1(np.abs(edges)) if log else edges
    return Histogram(
        edges=tuple(raw.tolist()),
        log=log,
        source=tuple(shares[0].tolist()),
        target=None if target is None else tuple(shares[1].tolist()),
    )
