"""Sections on columns: how the observed ones shifted, and which are missing."""

from __future__ import annotations

import math
from collections.abc import Sequence

from halfseen.alarms import Alarm, sentences
from halfseen.report.facts import ColumnFacts, Histogram, ReportFacts
from halfseen.report.html import Cell, Figures, Head, Paragraph, Part, grid, number, percent
from halfseen.report.svg import bars
from halfseen.saving import Description

MOST_NAMES = 50


def shifted_parts(facts: ReportFacts, alarms: Sequence[Alarm] = ()) -> list[Part]:
    """Put the distributions of both domains side by side, the most shifted first.

    What an alarm says of a column stands above, and its kind beside the column.
    """
    of_columns = [alarm for alarm in alarms if alarm.columns]
    warnings: list[Part] = [Paragraph(f"Alarm: {s}", warning=True) for s in sentences(of_columns)]
    observed = [column for column in facts.columns if column.shift is not None]
    if not observed:
        return warnings
    kinds = {name: alarm.kind for alarm in of_columns for name in alarm.columns}
    titles: list[str | Head] = ["column", *([Head("alarm", numeric=False)] if kinds else [])]
    titles += [Head("distribution", drawn=True), Head("stability index", descending=True)]
    titles += ["largest gap", "p, corrected", "source mean", "target mean"]
    titles += [f"{domain} rows with a value" for domain in ("source", "target")]
    notes = [
        "Largest gap: between the cumulative shares of numbers (Kolmogorov-Smirnov), and between "
        "the shares of any set of categories (total variation). The p-value is Holm's, corrected "
        "for the number of columns; with many rows, tiny gaps are significant too."
    ]
    if facts.more_columns:
        notes.append(f"{facts.more_columns:,} more columns were left out.")
    rows = [_shift_row(column) for column in observed]
    if kinds:
        marked = (Cell(kinds.get(column.name, ""), strong=True) for column in observed)
        rows = [(name, mark, *rest) for (name, *rest), mark in zip(rows, marked, strict=True)]
    return [
        *warnings,
        Figures((), (("filled", "source"), ("outlined", "target"))),
        grid("Observed columns, the most shifted first", titles, rows, notes),
    ]


def missing_parts(description: Description, names: Sequence[str], facts: ReportFacts) -> list[Part]:
    """Show what the source alone has: columns as they are known, or rows of an image."""
    shape = description.preprocessor.get("blocks", {}).get("shape", ())
    if len(shape) == 3:
        blocks = description.preprocessor["blocks"]
        missing, (channels, height, width) = blocks["missing"], shape
        images = f"Images of {width} × {height} pixels and {channels} channels: of the"
        if blocks.get("by_pixel"):
            told = f"{width * height:,} pixels, {len(missing):,} are never seen on the target."
        else:
            told = (
                f"{height} rows of pixels, {len(missing)} are never seen on the target (rows "
                f"{min(missing, default=0)} to {max(missing, default=0)}, counted from the top)."
            )
        return [Paragraph(f"{images} {told}")]
    if not names:
        return [Paragraph("The target has every column that the source has.")]
    known = [column for column in facts.columns if column.role == "missing"]
    if not known:
        shown = ", ".join(names[:MOST_NAMES])
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        return [Paragraph(f"The target never has: {shown}{more}.")]
    drawn, kind = Head("distribution on the source", drawn=True), Head("kind", numeric=False)
    rows = [(c.name, _drawn(c.name, c.histogram), c.kind, percent(c.source_known)) for c in known]
    titles = ("column", drawn, kind, "source rows with a value")
    return [grid("Columns that only the source has", titles, rows)]


def _shift_row(column: ColumnFacts) -> tuple[Cell, ...]:
    assert column.shift is not None
    shift = column.shift
    p_value = number(shift.p_value, ".3f")
    return (
        Cell(column.name),
        _drawn(column.name, column.histogram),
        number(shift.population_stability, strong=shift.population_stability > 0.25),
        number(shift.gap),
        Cell("< 0.001", shift.p_value) if shift.p_value < 0.001 else p_value,
        number(column.source_mean, ".4g"),
        number(column.target_mean, ".4g"),
        percent(column.source_known),
        percent(column.target_known),
    )


def _drawn(name: str, histogram: Histogram | None) -> Cell:
    if histogram is None or not histogram.source:
        return Cell("–")
    source, target = histogram.source, histogram.target
    labels, edges = histogram.labels, histogram.edges
    if target is not None and len(target) != len(source):
        target = None
    if labels:
        places = range(min(len(source), len(labels)))
        most = [labels[max(places, key=s.__getitem__)] for s in (source, target) if s]
        words = f"{name}: {most[0]} is the source's most frequent"
        words += f", {most[1]} the target's." if target else "."
        drawing = bars(source, target, words, (labels[0], labels[-1]), apart=True)
        return Cell("", drawing=drawing)
    if len(edges) < 2:
        return Cell("–")
    ends = _end(edges[0], edges), _end(edges[-1], edges)
    scale = ", on a logarithmic scale" if histogram.log else ""
    words = f"{name}: shares of rows from {ends[0]} to {ends[1]}{scale}."
    return Cell("", drawing=bars(source, target, words, ends))


def _end(edge: float, edges: Sequence[float]) -> str:
    """Round an edge to what the span of all of them lets one see."""
    span = abs(edges[-1] - edges[0])
    decimals = 2 - math.floor(math.log10(span)) if span else 2
    return f"{round(edge, decimals) + 0.0:.10g}"
