"""The report of a fitted model, from its folder and whatever else is at hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from halfseen.alarms import Alarm
from halfseen.data.preprocessors import TablePreprocessor, preprocessor_from_dict
from halfseen.data.schema import TableSchema
from halfseen.errors import InputError, first_fault
from halfseen.members import NETWORKS
from halfseen.model.summaries import member_words
from halfseen.report.answer_section import (
    alarm_tiles,
    answer_parts,
    expected_parts,
    expected_tiles,
    reliability_parts,
)
from halfseen.report.facts import FORMAT, ReportFacts
from halfseen.report.html import Code, Head, Heading, Page, Paragraph, Part, Section, Tile, grid
from halfseen.report.losses import HOW_TRAINING, loss_figures
from halfseen.report.model_columns import missing_parts, shifted_parts
from halfseen.saving import REPORT, Description, read_description, read_report
from halfseen.targets import target_type_of

NOT_KEPT = (
    "this model keeps no data for it (it was fitted with --report-data none, or by an earlier "
    "version or an estimator); `halfseen fit` keeps them."
)
SECTIONS = {
    "expected": (
        "What to expect on the target",
        "Held-out source rows, weighted to look like the target, stand in for target labels: they "
        "tell as much as the verdicts allow.",
    ),
    "answer": (
        "How the answer is made",
        "The answer is the weighted mean of what its members say; each row below is one of them, "
        "asked about source rows that it had not seen.",
    ),
    "shifted": (
        "What shifted",
        "The further the outline (target) is from the filled shape (source), the less the source "
        "says about the target; a stability index below 0.1 is commonly read as stable, above "
        "0.25 as a marked shift.",
    ),
    "missing": (
        "What is missing",
        "These inputs exist on the source alone; the answer never needs them.",
    ),
    "calibration": (
        "Calibration",
        "Points on the diagonal mean that a stated probability comes true as often as it says; "
        "below it the model is too sure of the class.",
    ),
    "training": ("How the networks were trained", HOW_TRAINING),
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
    return Subject(
        folder.resolve().name,
        description,
        schema,
        _stored_facts(folder, description),
    )


def _drawn(description: Description) -> list[Part]:
    """Say whose training is drawn, where several networks answer together."""
    networks = [member for member in description.members if member.get("kind") == NETWORKS]
    if len(networks) < 2:
        return []
    of = f"{networks[0].get('method')}, the first of {len(networks)} networks"
    return [Paragraph(f"Drawn: {of} that answer together.")]


def model_page(subject: Subject) -> Page:
    """Return the report of a model."""
    facts, description = subject.facts, subject.description
    history = description.networks.get("history", [])
    parts: dict[str, list[Part]] = {
        "expected": expected_parts(facts, subject.alarms),
        "answer": answer_parts(description.metrics),
        "shifted": shifted_parts(facts, subject.alarms),
        "missing": missing_parts(description, subject.missing, facts),
        "calibration": reliability_parts(facts),
        "training": loss_figures(history) + (_drawn(description) if history else []),
        "command": _command_parts(subject),
    }
    unkept = NOT_KEPT if subject.schema else "a model of images keeps no data for it."
    absent = dict.fromkeys(SECTIONS, unkept) | facts.left_out
    absent["answer"] = "nothing was measured on held-out rows; `halfseen fit` does so."
    absent["training"] = "the folder holds no record of the epochs."
    sections = []
    for name, (title, how) in SECTIONS.items():
        if name == "training" and not description.networks:
            continue
        reason = "" if parts[name] else absent[name]
        sections.append(Section(name, title, how, tuple(parts[name]), reason))
    learned = "complete, labelled rows, for"
    rows = (
        f"{facts.source_rows:,} {learned} {facts.target_rows:,}"
        if facts.source_rows
        else f"{learned} rows"
    )
    return Page(
        f"Predicting {subject.schema.label}" if subject.schema else subject.name,
        f"From the folder {subject.name}: learned on {rows} that have no labels and lack some "
        "inputs.",
        tuple(sections),
        _tiles(subject),
    )


def patterns_page(name: str, subjects: Sequence[Subject]) -> Page:
    """Return one report of a model's parts: each section speaks of them in turn."""
    pages = [model_page(subject) for subject in subjects]
    titles = [
        f"Part {number} of {len(pages)}, for tables that lack {', '.join(subject.missing)}"
        for number, subject in enumerate(subjects, 1)
    ]
    tiles, found = [], dict[str, list[Section]]()
    for number, (subject, page) in enumerate(zip(subjects, pages, strict=True), 1):
        urgent = alarm_tiles(subject.alarms) + expected_tiles(subject.facts, subject.alarms)
        tiles += [replace(tile, title=f"Part {number}: {tile.title}") for tile in urgent]
        for section in page.sections:
            found.setdefault(section.name, []).append(section)
    sections = []
    for its in found.values():
        parts: list[Part] = []
        for title, section in zip(titles, its, strict=False):
            absence = [Paragraph(f"Left out: {section.absent}")] if section.absent else []
            parts += [Heading(title), *absence, *section.parts]
        same = its[0].absent if len({section.absent for section in its}) == 1 else ""
        sections.append(replace(its[0], parts=() if same else tuple(parts), absent=same))
    words = f"From the folder {name}: a model for each of {len(pages)} missing patterns."
    return Page(pages[0].title, words, tuple(sections), tuple(tiles))


def _stored_facts(folder: Path, description: Description) -> ReportFacts:
    data = read_report(folder, description)
    if data is None:
        return ReportFacts()
    path = folder / REPORT
    if data.get("format") != FORMAT:
        raise InputError(
            f"{path} has format {data.get('format')!r}, and this version of halfseen reads "
            f"{FORMAT}: delete the file for a report without it, or fit again."
        )
    try:
        return ReportFacts.model_validate(data)
    except ValidationError as error:
        raise InputError(
            f"{path} cannot be understood: {first_fault(error)}. Delete it for a report without it."
        ) from None


def _tiles(subject: Subject) -> tuple[Tile, ...]:
    """Return the first screen: what is most useful and most certain, in that order."""
    facts, metrics = subject.facts, subject.description.metrics
    tiles = alarm_tiles(subject.alarms) + expected_tiles(facts, subject.alarms)
    weights, kind = metrics.get("weights"), target_type_of(metrics)
    if weights:
        heaviest = sorted(weights, key=lambda name: -weights[name])[:3]
        words = ", ".join(f"{member_words(name, kind)} {weights[name]:.2f}" for name in heaviest)
        tiles.append(Tile("Carried by", member_words(heaviest[0], kind), f"weights: {words}"))
    teaching = metrics.get("teaching")
    if teaching:
        gain, error = teaching["gain"], 2 * teaching["standard_error"]
        value = f"{gain:.3g}{kind.unit}" if gain > error else "Nothing certain"
        loss = kind.row_loss_words
        words = f"{loss} lower by {gain:.4g} ± {error:.4g} on held-out source rows"
        tiles.append(Tile("What the missing columns brought", value, words))
    shifted = next((column for column in facts.columns if column.shift is not None), None)
    if shifted is not None and shifted.shift is not None:
        words = f"stability index {shifted.shift.population_stability:.2f}; above 0.25 is marked"
        tiles.append(Tile("Most shifted column", shifted.name, words))
    if subject.schema is not None:
        missing = subject.missing
        value = f"{len(missing)} of {len(subject.schema.columns)} columns"
        shown = ", ".join(missing[:4]) + (" …" if len(missing) > 4 else "")
        tiles.append(Tile("Missing on the target", value, shown))
    return tuple(tiles)


def _command_parts(subject: Subject) -> list[Part]:
    description, facts = subject.description, subject.facts
    parts: list[Part] = []
    if facts.command:
        parts.append(Code("The command, as it was typed", facts.command))
    rows = []
    for role in ("source", "target"):
        table = description.training_data.get(role)
        files = table.get("files", []) if isinstance(table, dict) else []
        rows += [
            (role, str(file.get("name")), str(file["sha256"])[:16])
            for file in files
            if isinstance(file, dict) and "sha256" in file
        ]
    if rows:
        heads = [Head(t, numeric=False) for t in ("role", "file", "SHA-256, first 16 digits")]
        parts.append(grid("What it learned from", heads, rows))
    counts = description.metrics.get("class_counts")
    if isinstance(counts, dict):
        shown = ", ".join(f"{count:,} of {name}" for name, count in counts.items())
        parts.append(Paragraph(f"Source rows by class: {shown}."))
    versions = ", ".join(f"{name} {version}" for name, version in description.versions.items())
    words = f"{description.method or 'Trees and regression'}, seed {description.seed}"
    parts.append(Paragraph(f"{words}. Trained with {versions or 'unrecorded versions'}."))
    options = description.networks.get("options")
    if options:
        settings = json.dumps(options, indent=2, ensure_ascii=False)
        parts.append(Code("Every setting of the networks", settings, folded=True))
    return parts
