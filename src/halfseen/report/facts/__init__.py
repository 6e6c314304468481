"""What a fit leaves behind for a report: aggregates, and a few hundred latents where allowed.

These facts are the file ``report.json`` of a model folder. They are read back from folders that
anybody may have written, so each is checked; a field that an older file lacks has a default that
means "not known".
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from halfseen.front.schema import Kind, Role

__all__ = [
    "FORMAT",
    "CandidateFacts",
    "ColumnFacts",
    "Estimate",
    "Expectation",
    "Histogram",
    "ImputationFacts",
    "ImputedColumn",
    "LatentRows",
    "Quality",
    "Reliability",
    "ReliabilityBin",
    "ReportDetail",
    "ReportFacts",
    "Separability",
    "Shift",
    "Term",
    "Verdict",
]

FORMAT = 1
ReportDetail = Literal["all", "aggregates", "none"]
"""What is kept for a report: aggregates with some latents, aggregates alone, or nothing."""
MOST_ENTRIES = 10_000

Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Shares = Annotated[tuple[Share, ...], Field(max_length=MOST_ENTRIES)]
Points = Annotated[tuple[tuple[float, ...], ...], Field(max_length=MOST_ENTRIES)]
Positions = Annotated[tuple[Count, ...], Field(max_length=MOST_ENTRIES)]


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


class Separability(_Fact):
    """How well a classifier tells the domains apart, in the observed columns and in the latents."""

    before_auc: Share
    after_auc: Share
    before_distance: float
    after_distance: float
    source_rows: Count
    target_rows: Count


class Verdict(_Fact):
    """One assumption, whether something speaks against it, and the figures behind that."""

    question: str
    holds: bool | None
    sentence: str


class Term(_Fact):
    """One estimated term of the paper's bounds, with how far to trust it."""

    name: str
    symbol: str
    value: float
    trust: str


class Estimate(_Fact):
    """A mean with its 95 % interval, and the equally weighted rows that it is worth."""

    value: float
    low: float
    high: float
    effective_rows: float


class Quality(_Fact):
    """One measure on the source, and as expected on the target by two ways of weighting."""

    source: Estimate
    weighted: Estimate
    dev: Estimate


class Expectation(_Fact):
    """What held-out source rows, weighted to look like the target, say of it."""

    cross_entropy: Quality
    accuracy: Quality
    rows: Count


class ReliabilityBin(_Fact):
    """Rows of about the same predicted probability, and how often it came true."""

    rows: Count
    predicted: Share
    observed: Share


class Reliability(_Fact):
    """How often a probability came true; `of` is the class that it speaks of, if one."""

    of: str | None
    rows: Count
    error: float
    bins: tuple[ReliabilityBin, ...]


class CandidateFacts(_Fact):
    """One of the models that a fit chose from."""

    model: str
    accuracy: float
    cross_entropy: float
    auc: float | None
    risk: Estimate
    chosen: bool


class ImputedColumn(_Fact):
    """How much of a missing column its true latent keeps, and the imputed one recovers.

    In the histogram, `source` is the true column and `target` what is read off the imputed latent.
    """

    name: str
    kept: float
    recovered: float
    spread: float
    histogram: Histogram | None = None


class ImputationFacts(_Fact):
    """Imputed against true latents, on held-out source rows.

    `explained` is the share of the true latents' variance that the imputed ones explain, `spread`
    the ratio of their standard deviations, and `noise` the spread over repeated draws in units
    of the true one's; None where the generator draws nothing.
    """

    rows: Count
    explained: float
    spread: float
    noise: float | None = None
    columns: tuple[ImputedColumn, ...] = ()


class LatentRows(_Fact):
    """Leading principal components of a few hundred rows, before and after adaptation.

    The only facts about single rows. `source_classes` are labels, `target_classes` predictions.
    """

    before_source: Points
    before_target: Points
    after_source: Points
    after_target: Points
    source_classes: Positions
    target_classes: Positions

    @model_validator(mode="after")
    def _fits(self) -> Self:
        """Check that each row has its class, and that all rows of a picture have one width."""
        for own, there in (
            (self.before_source, self.before_target),
            (self.after_source, self.after_target),
        ):
            if len(own) != len(self.source_classes) or len(there) != len(self.target_classes):
                raise ValueError("there are not as many rows as classes")
            if len({len(row) for row in (*own, *there)}) != 1:
                raise ValueError("rows differ in width")
        return self


class ReportFacts(_Fact):
    """Everything that a report shows beside the model's description.

    Parameters
    ----------
    format
        Number of this file's format.
    model
        SHA-256 of the tensors that the facts belong to.
    command
        What was typed, where that is known.
    measured_on
        Which source rows the figures on source rows come from, in words.
    columns, more_columns
        The columns, the most shifted first, and how many were left out.
    left_out
        Why a section has no facts, by the section's name.
    """

    format: int = FORMAT
    model: str = ""
    command: str | None = None
    measured_on: str = ""
    source_rows: Count = 0
    target_rows: Count = 0
    columns: Annotated[tuple[ColumnFacts, ...], Field(max_length=MOST_ENTRIES)] = ()
    more_columns: Count = 0
    separability: Separability | None = None
    verdicts: tuple[Verdict, ...] = ()
    terms: tuple[Term, ...] = ()
    candidates: tuple[CandidateFacts, ...] = ()
    expectation: Expectation | None = None
    reliability: Reliability | None = None
    imputation: ImputationFacts | None = None
    latents: LatentRows | None = None
    left_out: dict[str, str] = {}
