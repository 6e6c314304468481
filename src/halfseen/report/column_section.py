"""Columns of both tables side by side, from the summaries that were made of them anyway."""

from __future__ import annotations

import numpy as np

from halfseen.arrays import Floats
from halfseen.data.column_types import ColumnSummary
from halfseen.data.schema import CategoryColumn, NumberColumn, TableSchema, signed_log
from halfseen.data.table_summary import TableSummary
from halfseen.evidence import FeatureShift, category_shift, feature_shift
from halfseen.evidence.features import adjusted_p_values
from halfseen.report.facts import ColumnFacts, Histogram, Shift

MOST_COLUMNS = 200
"""Columns of each role whose facts are kept; of the observed ones, the most shifted."""
BINS = 24
MOST_BARS = 12
"""Values or categories that get a bar of their own."""
TAIL = 0.005
"""Share of rows at each end that is counted to the outermost bin, so that no extreme is shown."""
OTHERS = "others"
FEWEST = 2

Found = tuple[Histogram | None, FeatureShift | None]


def column_facts(
    schema: TableSchema, source: TableSummary, target: TableSummary
) -> tuple[tuple[ColumnFacts, ...], int]:
    """Return the facts of each column, the most shifted first, and how many were left out."""
    found = [_facts(column, source, target) for column in schema.columns]
    shifts = {c.name: c.shift for c in found if c.shift is not None}
    if shifts:  # corrected for their number, before any is left out
        adjusted = adjusted_p_values([shift.p_value for shift in shifts.values()])
        for (name, shift), p_value in zip(shifts.items(), adjusted, strict=True):
            shifts[name] = shift.model_copy(update={"p_value": float(p_value)})
    found = [c.model_copy(update={"shift": shifts.get(c.name)}) for c in found]
    observed = [c for c in found if c.role == "observed"]
    observed.sort(key=lambda c: -c.shift.population_stability if c.shift else 0.0)
    missing = [c for c in found if c.role == "missing"]
    kept = (*observed[:MOST_COLUMNS], *missing[:MOST_COLUMNS])
    return kept, len(found) - len(kept)


def _facts(
    column: NumberColumn | CategoryColumn, source: TableSummary, target: TableSummary
) -> ColumnFacts:
    one = source.columns[column.name]
    other = target.columns.get(column.name) if column.role == "observed" else None
    if isinstance(column, CategoryColumn):
        histogram, shift = _of_categories(column, one, other)
    else:
        histogram, shift = _of_numbers(column, one, other)
    means = [
        summary.moments().mean if summary is not None and len(summary.sample) else np.nan
        for summary in (one, other)
    ]
    return ColumnFacts(
        name=column.name,
        kind=column.kind,
        role=column.role,
        source_known=1.0 - one.shape().gaps,
        target_known=0.0 if other is None else 1.0 - other.shape().gaps,
        source_mean=means[0] if np.isfinite(means[0]) else None,
        target_mean=means[1] if np.isfinite(means[1]) else None,
        histogram=histogram,
        shift=None if shift is None else Shift.model_validate(shift, from_attributes=True),
    )


def _of_categories(
    column: CategoryColumn, source: ColumnSummary, target: ColumnSummary | None
) -> Found:
    """Compare the categories that the schema names; all others are one."""
    counts = _counts(column, source)
    there = None if target is None else _counts(column, target)
    if not counts.sum():
        return None, None
    there = there if there is not None and there.sum() else None
    shift = None if there is None else category_shift(column.name, counts, there)
    share = counts / counts.sum()
    both = share if there is None else share + there / there.sum()
    shown = sorted(np.argsort(-both[:-1], kind="stable")[: MOST_BARS - 1])

    def bars(all_counts: Floats) -> tuple[float, ...]:
        known = all_counts[shown] / max(all_counts.sum(), 1.0)
        return (*(float(v) for v in known), max(0.0, float(1.0 - known.sum())))

    histogram = Histogram(
        labels=(*(column.categories[i] for i in shown), OTHERS),
        source=bars(counts),
        target=None if there is None else bars(there),
    )
    return histogram, shift


def _of_numbers(column: NumberColumn, source: ColumnSummary, target: ColumnSummary | None) -> Found:
    one = source.sample
    other = None if target is None or len(target.sample) < FEWEST else target.sample
    if len(one) < FEWEST:
        return None, None
    shift = None if other is None else feature_shift(one[:, None], other[:, None])[0]
    seen = [source] if target is None or other is None else [source, target]
    values = sorted({value for summary in seen for value in summary.counts})
    if len(values) > MOST_BARS or any(summary.has_more for summary in seen):
        return number_histogram(one, other, log=column.log), shift

    def shares(sample: Floats) -> tuple[float, ...]:
        return tuple(float(np.mean(sample == value)) for value in values)

    histogram = Histogram(
        labels=tuple(f"{value:g}" for value in values),
        source=shares(one),
        target=None if other is None else shares(other),
    )
    return histogram, shift


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
        edges=tuple(float(edge) for edge in raw),
        log=log,
        source=tuple(float(share) for share in shares[0]),
        target=None if target is None else tuple(float(share) for share in shares[1]),
    )


def _counts(column: CategoryColumn, summary: ColumnSummary) -> Floats:
    known = [summary.counts.get(category, 0) for category in column.categories]
    return np.array([*known, sum(summary.counts.values()) - sum(known)], dtype=np.float64)
