"""What a fit leaves behind for a report: aggregates, and nothing about a single row.

These facts are the file ``report.json`` of a model folder. They are read back from folders that
anybody may have written, so each is checked.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from halfseen.data.schema import Kind, Role
from halfseen.evidence.density_ratio import ENOUGH_OVERLAP

FORMAT = 3
MOST_ENTRIES = 10_000

Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Shares = Annotated[tuple[Share, ...], Field(max_length=MOST_ENTRIES)]


class _Fact(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class Histogram(_Fact):
    """Shares of rows: by category or value where `labels` are given, else between `edges`."""

    labels: tuple[str, ...] = ()
    edges: tuple[float, ...] = ()
    log: bool = False
    source: Shares
    target: Shares | None = None


class Shift(_Fact):
    """How far one column's distributions are apart.

    `gap` is Kolmogorov-Smirnov's for numbers and the total variation for categories; `p_value`
    is corrected for the number of columns.
    """

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
