"""The report of a fitted model, from its folder alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from halfseen.alarms import Alarm, sentences
from halfseen.data.preprocessors import TablePreprocessor, preprocessor_from_dict
from halfseen.data.schema import TableSchema
from halfseen.errors import InputError, first_fault
from halfseen.evidence.density_ratio import ENOUGH_OVERLAP
from halfseen.fitting.report_facts import FORMAT, ColumnFacts, Expectation, Histogram, ReportFacts
from halfseen.model.summaries import held_out_rows, told
from halfseen.report.html import (
    Cell,
    Code,
    Figures,
    Head,
    Page,
    Paragraph,
    Part,
    Section,
    Tile,
    bars,
    grid,
    number,
)
from halfseen.report.measuring import MEASURING, measuring_parts
from halfseen.saving import REPORT, Description, read_description, read_report
from halfseen.targets import LABEL_KINDS

MOST_NAMES = 12
FEW_ROWS = 100
"""Effective rows below which an estimate rests on a handful of rows."""
WORDS = {"balanced_accuracy": "balanced accuracy"} | {
    name: measure.words for kind in LABEL_KINDS.values() for name, measure in kind.measures.items()
}
SHARES = ("accuracy", "balanced_accuracy", "coverage")
"""Measures that are shown in percent."""
NOT_KEPT = (
    "this model keeps no data for it (it takes images, or was fitted with --report-data none or by "
    "an estimator); `halfseen fit` keeps them of tables."
)
SECTIONS = {
    "expected": (
        "What to expect on the target",
        "Held-out source rows, weighted to look like the target, stand in for target labels.",
    ),
    "measuring": MEASURING,
    "answer": (
        "How the answer is made",
        "The weighted mean of what its members say, each asked about source rows it had not seen.",
    ),
    "shifted": (
        "What shifted",
        "The further the outline (target) is from the filled shape (source), the less the source "
        "says; a stability index below 0.1 is commonly read as stable, above 0.25 as marked.",
    ),
    "command": (
        "Command and configuration",
        "What was run, with every setting: enough to run it again.",
    ),
}
"""Title of each section and how to read it, the most useful first."""


@dataclass(frozen=True)
class Subject:
    """A model as a report sees it; `schema` is there for models of tables alone."""

    name: str
    description: Description
    schema: TableSchema | None
    facts: ReportFacts

    @property
    def alarms(self) -> list[Alarm]:
        return [Alarm.from_dict(alarm) for alarm in self.description.metrics.get("alarms", ())]

    @property
    def missing(self) -> list[str]:
        return [] if self.schema is None else [column.name for column in self.schema.missing]


def read_subject(folder: Path) -> Subject:
    """Read a model folder."""
    description = read_description(folder)
    preprocessor = preprocessor_from_dict(description.preprocessor)
    schema = preprocessor.schema if isinstance(preprocessor, TablePreprocessor) else None
    data, path = read_report(folder, description), folder / REPORT
    if data is not None and data.get("format") != FORMAT:
        raise InputError(
            f"{path} has format {data.get('format')!r}, and this version of halfseen reads "
            f"{FORMAT}: delete the file for a report without it, or fit again."
        )
    try:
        facts = ReportFacts.model_validate(data or {})
    except ValidationError as error:
        raise InputError(
            f"{path} cannot be understood: {first_fault(error)}. Delete it for a report without it."
        ) from None
    return Subject(folder.resolve().name, description, schema, facts)


def model_page(subject: Subject) -> Page:
    """Return the report of a model."""
    facts, description = subject.facts, subject.description
    parts: dict[str, list[Part]] = {
        "expected": expected_parts(facts, subject.alarms),
        "measuring": measuring_parts(description.metrics),
        "answer": answer_parts(description.metrics),
        "shifted": _shifted_parts(facts, subject.alarms),
        "command": _command_parts(subject),
    }
    absent = dict.fromkeys(SECTIONS, NOT_KEPT) | facts.left_out
    sections = [
        Section(name, title, how, parts[name], "" if parts[name] else absent[name])
        for name, (title, how) in SECTIONS.items()
        if parts[name] or name != "measuring"
    ]
    counts = [f"{n:,} " if n else "" for n in (facts.source_rows, facts.target_rows)]
    return Page(
        f"Predicting {subject.schema.label}" if subject.schema else subject.name,
        f"From the folder {subject.name}: learned on {counts[0]}complete, labelled rows, for "
        f"{counts[1]}rows that have no labels and lack some inputs.",
        sections,
        _tiles(subject),
    )


def patterns_page(name: str, subjects: Sequence[Subject]) -> Page:
    """Return one report of a model's parts, one after the other."""
    pages = [model_page(subject) for subject in subjects]
    sections, tiles = [], []
    for place, (subject, page) in enumerate(zip(subjects, pages, strict=True), 1):
        for each in page.sections:
            name_, title = f"{place}-{each.name}", f"Part {place}: {each.title}"
            how = f"For tables that lack {', '.join(subject.missing)}. {each.how}"
            sections.append(replace(each, name=name_, title=title, how=how))
        urgent = alarm_tiles(subject.alarms) + expected_tiles(subject.facts, subject.alarms)
        tiles += [replace(tile, title=f"Part {place}: {tile.title}") for tile in urgent]
    words = f"From the folder {name}: a model for each of {len(pages)} missing patterns."
    return Page(pages[0].title, words, sections, tiles)


# --- the first screen ---------------------------------------------------------------------------


def _tiles(subject: Subject) -> list[Tile]:
    """Return what is most useful and most certain, in that order."""
    facts = subject.facts
    tiles = alarm_tiles(subject.alarms) + expected_tiles(facts, subject.alarms)
    if facts.columns and facts.columns[0].shift is not None:
        words = f"stability index {facts.columns[0].shift.population_stability:.2f}"
        tiles.append(Tile("Most shifted column", facts.columns[0].name, words))
    return [*tiles, _missing_tile(subject)]


def _missing_tile(subject: Subject) -> Tile:
    """Return what the source alone has: columns, or pixels of an image."""
    if subject.schema is not None:
        value = f"{len(subject.missing)} of {len(subject.schema.columns)} columns"
        more = f" and {len(subject.missing) - MOST_NAMES} more"
        words = ", ".join(subject.missing[:MOST_NAMES])
        words += more if len(subject.missing) > MOST_NAMES else ""
        return Tile("Missing on the target", value, words)
    blocks = subject.description.preprocessor["blocks"]
    height, width = blocks["shape"][1:]
    hidden = len(blocks["missing"]) * (1 if blocks.get("by_pixel") else width)
    value = f"{hidden:,} of {width * height:,} pixels"
    return Tile("Missing on the target", value, f"of images of {width} × {height}")


def alarm_tiles(alarms: Sequence[Alarm]) -> list[Tile]:
    """Return what must be read before any number: how many alarms there are, and of what."""
    if not alarms:
        return []
    named = [": ".join([a.kind, *([", ".join(a.columns)] if a.columns else [])]) for a in alarms]
    more = f" and {len(named) - 3} more" if len(named) > 3 else ""
    value = f"{len(alarms)} alarm{'s' if len(alarms) > 1 else ''}"
    return [Tile("Looks wrong", value, "; ".join(named[:3]) + more, bad=True)]


def expected_tiles(facts: ReportFacts, alarms: Sequence[Alarm] = ()) -> list[Tile]:
    """Return the headline: the expected accuracy or error, or that nobody can tell and why."""
    known = facts.expectation
    if known is None and "expected" not in facts.left_out:
        return []
    name = next(iter(known.target)) if known is not None else "accuracy"
    title = f"Expected {WORDS.get(name, name)} on the target"
    if known is None or not known.tells:
        why = facts.left_out["expected"] if known is None else _overlap_sentence(known)
        return [Tile(title, "Cannot be told", f"{why} {_label_some(name)}", bad=True)]
    expected, form = known.target[name], ".1%" if name == "accuracy" else ".4g"
    words = (
        f"90% interval around {expected.value:{form}}; {known.source[name].value:{form}} on the "
        "source."
    )
    few = known.effective_rows < FEW_ROWS
    if few:
        words += f" Careful: it rests on {known.effective_rows:.0f} effective rows."
    if alarms:
        words += " Careful: it does not hold if an alarm is right."
    form = ".0%" if name == "accuracy" else ".3g"
    value = f"{expected.low:{form}} to {expected.high:{form}}"
    return [Tile(title, value, words, bad=few or bool(alarms))]


def _label_some(measure: str) -> str:
    tells = "accuracy within ten points" if measure == "accuracy" else "`halfseen evaluate` tells"
    return f"To know, label a hundred target rows drawn at random: {tells}."


def _overlap_sentence(known: Expectation) -> str:
    worth = (
        f"On the target, the {known.rows:,} source rows are worth {known.overlap:.1%} of their "
        "number"
    )
    if known.tells:
        return f"{worth}, at least {ENOUGH_OVERLAP:.0%} as an estimate needs."
    return f"{worth}, below {ENOUGH_OVERLAP:.0%}: too few of them look like its rows."


# --- sections -----------------------------------------------------------------------------------


def _alarms(alarms: Sequence[Alarm]) -> list[Part]:
    return [Paragraph(f"Alarm: {sentence}", warning=True) for sentence in sentences(alarms)]


def expected_parts(facts: ReportFacts, alarms: Sequence[Alarm] = ()) -> list[Part]:
    """Show what is known of the quality on the target, the warning beside its number."""
    known = facts.expectation
    parts = _alarms([alarm for alarm in alarms if not alarm.columns])
    if known is None:
        return parts
    verdict = "Source rows cover the target" if known.tells else "Source rows do not cover it"
    parts += [
        Paragraph(f"{verdict}. {_overlap_sentence(known)}", warning=not known.tells),
        Paragraph(
            "Whether labels follow from the observed columns on the target as on the source, no "
            f"unlabelled row can tell. {_label_some(next(iter(known.target)))}"
        ),
    ]
    rows: list[tuple[Cell | str | float, ...]] = [
        (f"{WORDS.get(n, n)} on the source", e.value, e.low, e.high)
        for n, e in known.source.items()
    ]
    notes = [f"Source rows: {facts.measured_on}."] if facts.measured_on else []
    if known.tells:
        rows += [
            (f"{WORDS.get(n, n)} expected on the target", e.value, e.low, e.high)
            for n, e in known.target.items()
        ]
        notes.append(
            "Expected: each source row counts by how much more often its observed columns occur on "
            f"the target (deep embedded validation; worth {known.effective_rows:,.0f} equally "
            "weighted rows). Intervals cover the sampling of rows, and by how much labels followed "
            "in another way on other problems; on yours it may be more."
        )
    else:
        unknown = Cell("cannot be told", strong=True)
        rows += [(f"{WORDS.get(n, n)} on the target", unknown, "–", "–") for n in known.target]
    return [*parts, grid("Quality", ("measure", "value", "90% interval, from", "to"), rows, notes)]


def answer_parts(metrics: Mapping[str, Any]) -> list[Part]:
    """Say how the answer is made: members, maps, teachers; and when a simple tool would do."""
    try:
        return [*_measured(metrics), *map(Paragraph, told(metrics))]
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError("The metrics in model.json cannot be understood: fit again.") from None


def _measured(metrics: Mapping[str, Any]) -> list[Part]:
    """Show the answer and each of its members on held-out source rows, with their weights."""
    known = held_out_rows(metrics)
    if not known:
        return []
    measures = [name for name in known[0][2] if name in WORDS]
    rows = [
        (
            Cell(words, strong=not place),
            number(weight, ".2f"),
            *(number(measured.get(n), ".1%" if n in SHARES else ".5g") for n in measures),
            number(measured.get("rows"), ",.0f"),
        )
        for place, (words, weight, measured) in enumerate(known)
    ]
    titles = ("who", "weight", *(WORDS[name] for name in measures), "rows")
    note = "Source rows: on a shifted target a model usually does worse."
    return [grid("The answer and its members, on held-out source rows", titles, rows, [note])]


def _shifted_parts(facts: ReportFacts, alarms: Sequence[Alarm]) -> list[Part]:
    """Put both domains' distributions side by side, what alarms say of columns above them."""
    of_columns = [alarm for alarm in alarms if alarm.columns]
    warnings = _alarms(of_columns)
    rows = [_shift_row(column) for column in facts.columns if column.shift is not None]
    if not rows:
        return warnings
    kinds = {name: alarm.kind for alarm in of_columns for name in alarm.columns}
    titles: list[str | Head] = [
        "column",
        *([Head("alarm", numeric=False)] if kinds else []),
        Head("distribution", drawn=True),
        Head("stability index", descending=True),
        *("largest gap", "p, corrected", "source mean", "target mean"),
        *(f"{domain} rows with a value" for domain in ("source", "target")),
    ]
    notes = [
        "Largest gap: of cumulative shares of numbers (Kolmogorov-Smirnov), of shares of any set "
        "of categories (total variation). The p-value is Holm's, corrected for the number of "
        "columns; with many rows, tiny gaps are significant too."
    ]
    if facts.more_columns:
        notes.append(f"{facts.more_columns:,} more columns were left out.")
    if kinds:
        rows = [(row[0], Cell(kinds.get(row[0].text, ""), strong=True), *row[1:]) for row in rows]
    return [
        *warnings,
        Figures((), (("filled", "source"), ("outlined", "target"))),
        grid("Observed columns, the most shifted first", titles, rows, notes),
    ]


def _shift_row(column: ColumnFacts) -> tuple[Cell, ...]:
    assert column.shift is not None
    shift = column.shift
    return (
        Cell(column.name),
        _drawn(column.name, column.histogram),
        number(shift.population_stability, strong=shift.population_stability > 0.25),
        number(shift.gap),
        Cell("< 0.001", shift.p_value) if shift.p_value < 0.001 else number(shift.p_value),
        number(column.source_mean, ".4g"),
        number(column.target_mean, ".4g"),
        number(column.source_known, ".1%"),
        number(column.target_known, ".1%"),
    )


def _drawn(name: str, histogram: Histogram | None) -> Cell:
    if histogram is None or not histogram.source:
        return Cell("–")
    source, target, labels = histogram.source, histogram.target, histogram.labels
    if target is not None and len(target) != len(source):
        target = None
    if len(labels) == len(source):
        words = f"{name}: shares of rows from {labels[0]} to {labels[-1]}."
        drawing = bars(source, target, words, (labels[0], labels[-1]), apart=True)
    elif len(histogram.edges) < 2:
        return Cell("–")
    else:
        low, high = (f"{edge:.4g}" for edge in (histogram.edges[0], histogram.edges[-1]))
        scale = ", on a logarithmic scale" if histogram.log else ""
        words = f"{name}: shares of rows from {low} to {high}{scale}."
        drawing = bars(source, target, words, (low, high))
    return Cell("", drawing=drawing)


def _command_parts(subject: Subject) -> list[Part]:
    description, facts = subject.description, subject.facts
    parts: list[Part] = []
    if facts.command:
        parts.append(Code("The command, as it was typed", facts.command))
    counts = description.metrics.get("class_counts")
    if isinstance(counts, dict):
        each = ", ".join(f"{count:,} of {name}" for name, count in counts.items())
        parts.append(Paragraph(f"Source rows by class: {each}."))
    versions = ", ".join(f"{name} {version}" for name, version in description.versions.items())
    words = f"{description.method or 'Trees and regression'}, seed {description.seed}"
    parts.append(Paragraph(f"{words}. Trained with {versions or 'unrecorded versions'}."))
    for title, settings in (
        ("What it learned from", description.training_data),
        ("Every setting of the networks", description.networks.get("options")),
    ):
        if settings:
            text = json.dumps(settings, indent=2, ensure_ascii=False)
            parts.append(Code(title, text, folded=True))
    return parts
