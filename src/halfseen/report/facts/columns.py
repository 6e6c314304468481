"""Columns of both tables side by side, from the summaries that were made of them anyway."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from halfseen.evidence import category_shift, feature_shift
from halfseen.evidence.features import adjusted_p_values
from halfseen.front.schema import CategoryColumn, NumberColumn, TableSchema
from halfseen.front.summary import ColumnSummary, Numbers, TableSummary
from halfseen.report.facts import ColumnFacts, Histogram, Shift

__all__ = ["MOST_COLUMNS", "column_facts", "number_histogram", "signed_log"]

MOST_COLUMNS = 200
"""Columns of each role whose facts are kept; of the observed ones, the most shifted."""
BINS = 24
MOST_BARS = 12
"""Values or categories that get a bar of their own."""
TAIL = 0.005
"""Share of rows at each end that is counted to the outermost bin, so that no extreme is shown."""
OTHERS = "others"
FEWEST = 2


def column_facts(
    schema: TableSchema, source: TableSummary, target: TableSummary
) -> tuple[tuple[ColumnFacts, ...], int]:
    """Return the facts of each column, the most shifted first, and how many were left out."""
    found = [_compared(column, source, target) for column in schema.columns]
    observed = [c for c in found if c.column.role == "observed"]
    compared = [c for c in observed if c.shift is not None]
    if compared:  # corrected for their number, before any is left out
        raw = [c.shift.p_value for c in compared if c.shift is not None]
        for c, p_value in zip(compared, adjusted_p_values(raw), strict=True):
            assert c.shift is not None
            c.shift = c.shift.model_copy(update={"p_value": float(p_value)})
    observed.sort(key=lambda c: -c.shift.population_stability if c.shift else 0.0)
    missing = [c for c in found if c.column.role == "missing"]
    kept = [*observed[:MOST_COLUMNS], *missing[:MOST_COLUMNS]]
    return tuple(c.facts() for c in kept), len(found) - len(kept)


@dataclass
class _Compared:
    """One column with its two summaries, and what was found by comparing them."""

    column: NumberColumn | CategoryColumn
    source: ColumnSummary
    target: ColumnSummary | None
    histogram: Histogram | None
    shift: Shift | None

    def facts(self) -> ColumnFacts:
        return ColumnFacts(
            name=self.column.name,
            kind=self.column.kind,
            role=self.column.role,
            source_known=1.0 - self.source.gap_share,
            target_known=0.0 if self.target is None else 1.0 - self.target.gap_share,
            source_mean=_mean(self.column, self.source),
            target_mean=None if self.target is None else _mean(self.column, self.target),
            histogram=self.histogram,
            shift=self.shift,
        )


def _compared(
    column: NumberColumn | CategoryColumn, source: TableSummary, target: TableSummary
) -> _Compared:
    one = source.columns[column.name]
    other = target.columns.get(column.name) if column.role == "observed" else None
    if isinstance(column, CategoryColumn):
        return _Compared(column, one, other, *_of_categories(column, one, other))
    return _Compared(column, one, other, *_of_numbers(column, one, other))


def _of_categories(
    column: CategoryColumn, source: ColumnSummary, target: ColumnSummary | None
) -> tuple[Histogram | None, Shift | None]:
    """Compare the categories that the schema names; all others are one."""
    counts = _counts(column, source)
    there = None if target is None else _counts(column, target)
    if not counts.sum():
        return None, None
    shift = None
    if there is not None and there.sum():
        found = category_shift(counts, there)
        shift = Shift(
            population_stability=found.population_stability,
            gap=found.statistic,
            p_value=found.p_value,
        )
    names = [*column.categories, OTHERS]
    share = counts / counts.sum()
    both = share if there is None or not there.sum() else share + there / there.sum()
    shown = sorted(np.argsort(-both[:-1], kind="stable")[: MOST_BARS - 1])

    def bars(all_counts: Numbers) -> tuple[float, ...]:
        known = all_counts[shown] / max(all_counts.sum(), 1.0)
        return (*(float(v) for v in known), max(0.0, float(1.0 - known.sum())))

    histogram = Histogram(
        labels=(*(names[i] for i in shown), OTHERS),
        source=bars(counts),
        target=None if there is None or not there.sum() else bars(there),
    )
    return histogram, shift


def _of_numbers(
    column: NumberColumn, source: ColumnSummary, target: ColumnSummary | None
) -> tuple[Histogram | None, Shift | None]:
    one = source.sample
    other = None if target is None else target.sample
    if len(one) < FEWEST:
        return None, None
    shift = None
    if other is not None and len(other) >= FEWEST:
        found = feature_shift(one[:, None], other[:, None])[0]
        shift = Shift(
            population_stability=found.population_stability,
            gap=found.statistic,
            p_value=found.p_value,
        )
    else:
        other = None
    values = set(source.counts) | (set() if target is None or other is None else set(target.counts))
    more = source.has_more or (target is not None and target.has_more)
    if not more and len(values) <= MOST_BARS:
        return _value_histogram(sorted(values), one, other), shift
    return number_histogram(one, other, log=column.log), shift


def number_histogram(source: Numbers, target: Numbers | None, *, log: bool = False) -> Histogram:
    """Return shares of rows in bins of equal width, between quantiles near the ends.

    Examples
    --------
    >>> found = number_histogram(np.arange(100.0), np.arange(50.0, 150.0))
    >>> len(found.source), round(found.source[0], 2), found.target[0]
    (24, 0.07, 0.0)
    """
    one = signed_log(source) if log else source
    other = None if target is None else signed_log(target) if log else target
    ends = [np.quantile(v, [TAIL, 1 - TAIL]) for v in (one, other) if v is not None]
    low, high = min(e[0] for e in ends), max(e[1] for e in ends)
    if not high > low:
        high = low + 1.0
    edges = np.linspace(low, high, BINS + 1)

    def shares(values: Numbers) -> tuple[float, ...]:
        counted, _ = np.histogram(np.clip(values, low, high), edges)
        return tuple(float(share) for share in counted / len(values))

    raw = np.sign(edges) * np.expm1(np.abs(edges)) if log else edges
    return Histogram(
        edges=tuple(float(edge) for edge in raw),
        log=log,
        source=shares(one),
        target=None if other is None else shares(other),
    )


def signed_log(values: Numbers) -> Numbers:
    """Return sign(v) log(1 + |v|), as the schema's `log` has it."""
    logarithm: Numbers = np.sign(values) * np.log1p(np.abs(values))
    return logarithm


def _value_histogram(values: Sequence[float], source: Numbers, target: Numbers | None) -> Histogram:
    def shares(sample: Numbers) -> tuple[float, ...]:
        return tuple(float(np.mean(sample == value)) for value in values)

    return Histogram(
        labels=tuple(f"{value:g}" for value in values),
        source=shares(source),
        target=None if target is None else shares(target),
    )


def _counts(column: CategoryColumn, summary: ColumnSummary) -> Numbers:
    known = [summary.counts.get(category, 0) for category in column.categories]
    return np.array([*known, sum(summary.counts.values()) - sum(known)], dtype=np.float64)


def _mean(column: NumberColumn | CategoryColumn, summary: ColumnSummary) -> float | None:
    known = isinstance(column, NumberColumn) and summary.plain.count
    return float(summary.plain.mean) if known and np.isfinite(summary.plain.mean) else None
