"""Sections on columns: which are missing, how they shifted, and what is imputed of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from halfseen.front.schema import TableSchema
from halfseen.report.facts import ColumnFacts, Histogram, ReportFacts
from halfseen.report.page import (
    Cell,
    Chip,
    Chips,
    Figures,
    Grid,
    Head,
    Paragraph,
    Part,
    number,
    percent,
)
from halfseen.report.svg import bars, presence
from halfseen.saving.folder import Description

__all__ = ["imputation_parts", "missing_parts", "shifted_parts"]

MOST_CHIPS = 120
MAP_LEGEND = (
    ("filled", "source: share of rows with a value"),
    ("target-cell", "target: share of rows with a value"),
    ("hatched", "never measured"),
)
SHIFT_LEGEND = (("filled", "source"), ("outlined", "target"))


def missing_parts(
    description: Description, schema: TableSchema | None, facts: ReportFacts
) -> list[Part]:
    """Map the columns by domain; without facts, as if every row had a value."""
    known = {column.name: column for column in facts.columns}
    both: list[tuple[str, ColumnFacts | None]] = []
    hidden: list[tuple[str, ColumnFacts | None]] = []
    if schema is not None:
        for column in schema.columns:
            kind = hidden if column.role == "missing" else both
            kind.append((column.name, known.get(column.name)))
    else:
        blocks = description.front.get("blocks", {})
        names = blocks.get("names")
        shape, missing = blocks.get("shape"), blocks.get("missing")
        if not isinstance(shape, list) or not isinstance(missing, list):
            return []
        if len(shape) == 3:
            return [_image_sentence(shape, missing, by_pixel=bool(blocks.get("by_pixel")))]
        for place in range(shape[0]):
            name = str(names[place]) if names else f"column {place}"
            (hidden if place in missing else both).append((name, None))
    parts: list[Part] = [
        _chips("Only the source has", hidden, seen=False),
        _chips("Both domains have", both, seen=True),
        Figures((), MAP_LEGEND),
    ]
    rows = tuple(
        (
            Cell(column.name),
            Cell("missing" if column.role == "missing" else "observed"),
            Cell(column.kind),
            percent(column.source_known),
            percent(column.target_known),
        )
        for column in facts.columns
    )
    if rows:
        heads = (
            Head("column", numeric=False),
            Head("role", numeric=False),
            Head("kind", numeric=False),
            Head("source rows with a value"),
            Head("target rows with a value"),
        )
        parts.append(Grid("Columns by domain, with shares", heads, rows, _more(facts), folded=True))
    return [part for part in parts if not isinstance(part, Chips) or part.chips]


def shifted_parts(facts: ReportFacts) -> list[Part]:
    """Put the distributions of both domains side by side, the most shifted first."""
    observed = [c for c in facts.columns if c.role == "observed" and c.shift is not None]
    if not observed:
        return []
    heads = (
        Head("column", numeric=False),
        Head("distribution", drawn=True),
        Head("stability index", descending=True),
        Head("largest gap"),
        Head("p, corrected"),
        Head("source mean"),
        Head("target mean"),
    )
    rows = tuple(_shift_row(column) for column in observed)
    notes = (
        "Largest gap: between the cumulative shares of numbers (Kolmogorov-Smirnov), and between "
        "the shares of any set of categories (total variation). The p-value is Holm's, corrected "
        "for the number of columns; with many rows, tiny gaps are significant too.",
        *_more(facts),
    )
    return [
        Figures((), SHIFT_LEGEND),
        Grid("Observed columns, the most shifted first", heads, rows, notes),
    ]


def imputation_parts(facts: ReportFacts) -> list[Part]:
    """Compare imputed with true latents, and the columns that can be read off them."""
    found = facts.imputation
    if found is None:
        return []
    noise = (
        "The generator draws no noise: the same observed values always get the same latent, so its "
        "spread over repeated draws is nil."
        if found.noise is None
        else f"Over repeated draws for one row, imputed latents spread by {found.noise:.0%} of "
        "what true latents spread by over all rows."
    )
    parts: list[Part] = [
        Paragraph(
            f"On {found.rows:,} source rows whose missing block is known, imputed latents explain "
            f"{max(found.explained, 0.0):.0%} of the variance of the true ones, and spread "
            f"{found.spread:.2f} times as much: an imputed mean spreads less than the truth."
        ),
        Paragraph(noise),
    ]
    if found.columns:
        heads = (
            Head("missing column", numeric=False),
            Head("true and imputed", drawn=True),
            Head("kept by the true latent, R²"),
            Head("recovered by the imputed one, R²"),
            Head("spread, imputed over true"),
        )
        rows = tuple(
            (
                Cell(column.name),
                _drawn(column.name, column.histogram, ("true", "imputed")),
                number(column.kept),
                number(column.recovered, strong=True),
                number(column.spread, ".2f"),
            )
            for column in found.columns
        )
        notes = (
            "A linear reader, fitted on true latents of other source rows, turns latents back into "
            "columns. What the true latent does not keep is not needed to classify; what the "
            "imputed one does not recover, the observed columns cannot tell, and a negative R² is "
            "worse than the mean. Of categories, the most likely one of each row is drawn.",
        )
        legend = (("filled", "true"), ("outlined", "read off the imputed latent"))
        parts += [
            Figures((), legend),
            Grid("Missing columns, read off latents", heads, rows, notes),
        ]
    return parts


def _shift_row(column: ColumnFacts) -> tuple[Cell, ...]:
    assert column.shift is not None
    shift = column.shift
    p_value = number(shift.p_value, ".3f")
    return (
        Cell(column.name),
        _drawn(column.name, column.histogram, ("source", "target")),
        number(shift.population_stability, strong=shift.population_stability > 0.25),
        number(shift.gap),
        Cell("< 0.001", shift.p_value) if shift.p_value < 0.001 else p_value,
        number(column.source_mean, ".4g"),
        number(column.target_mean, ".4g"),
    )


def _drawn(name: str, histogram: Histogram | None, sides: tuple[str, str]) -> Cell:
    if histogram is None or not histogram.source:
        return Cell("–")
    if not histogram.labels and len(histogram.edges) < 2:
        return Cell("–")
    target = histogram.target
    if target is not None and len(target) != len(histogram.source):
        target = None
    if histogram.labels:
        ends = histogram.labels[0], histogram.labels[-1]
        most = _most(histogram.source, histogram.labels)
        words = f"{name}: {most} is the most frequent of the {sides[0]}"
        if target:
            words += f", {_most(target, histogram.labels)} of the {sides[1]}"
        return Cell("", drawing=bars(histogram.source, target, f"{words}.", ends, apart=True))
    ends = _end(histogram.edges[0], histogram.edges), _end(histogram.edges[-1], histogram.edges)
    scale = ", on a logarithmic scale" if histogram.log else ""
    words = f"{name}: shares of {sides[0]} and {sides[1]} rows from {ends[0]} to {ends[1]}{scale}."
    return Cell("", drawing=bars(histogram.source, target, words, ends))


def _end(edge: float, edges: Sequence[float]) -> str:
    """Round an edge to what the span of all of them lets one see.

    Examples
    --------
    >>> _end(29.0137, (29.0137, 74.98)), _end(-1.7e-8, (-1.7e-8, 3.0))
    ('29', '0')
    """
    span = abs(edges[-1] - edges[0])
    decimals = 2 - math.floor(math.log10(span)) if span else 2
    return f"{round(edge, decimals) + 0.0:.10g}"


def _most(shares: Sequence[float], labels: Sequence[str]) -> str:
    return labels[max(range(min(len(shares), len(labels))), key=lambda i: shares[i])]


def _chips(title: str, columns: list[tuple[str, ColumnFacts | None]], *, seen: bool) -> Chips:
    chips = []
    for name, facts in columns[:MOST_CHIPS]:
        source = 1.0 if facts is None else facts.source_known
        target = 0.0 if not seen else 1.0 if facts is None else facts.target_known
        there = f"{target:.0%} of target rows have a value" if seen else "never measured there"
        words = f"{source:.0%} of source rows have a value, {there}"
        chips.append(Chip(name, presence(source, target), words))
    return Chips(f"{title} ({len(columns)})", tuple(chips), max(0, len(columns) - MOST_CHIPS))


def _image_sentence(shape: list[int], missing: list[int], *, by_pixel: bool) -> Paragraph:
    channels, height, width = shape
    images = f"Images of {width} × {height} pixels and {channels} channels: of the"
    if by_pixel:
        return Paragraph(
            f"{images} {width * height:,} pixels, {len(missing):,} are never seen on the target."
        )
    return Paragraph(
        f"{images} {height} rows of pixels, {len(missing)} are never seen on the target (rows "
        f"{min(missing, default=0)} to {max(missing, default=0)}, counted from the top)."
    )


def _more(facts: ReportFacts) -> tuple[str, ...]:
    return (f"{facts.more_columns:,} more columns were left out.",) if facts.more_columns else ()
