"""The report of a fitted model, from its folder and whatever else is at hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from halfseen.errors import InputError
from halfseen.front.files import TableFiles
from halfseen.front.fronts import TableFront, front_from_dict
from halfseen.front.schema import TableSchema
from halfseen.model.loading import load_table_model
from halfseen.report.embedding import latent_figures
from halfseen.report.expectation import (
    FEW_ROWS,
    comparison_parts,
    expected_parts,
    reliability_parts,
)
from halfseen.report.facts import FORMAT, ReportFacts
from halfseen.report.model_columns import imputation_parts, missing_parts, shifted_parts
from halfseen.report.page import Cell, Code, Grid, Head, Page, Paragraph, Part, Tile, number
from halfseen.report.sections import arranged, loss_figures
from halfseen.saving.folder import REPORT, Description, read_description, read_report

__all__ = ["Subject", "model_page", "read_subject"]

NOT_KEPT = (
    "this model keeps no data for it (it was fitted with --report-data none, or by an earlier "
    "version or in Python); give --source and --target to compute it."
)


@dataclass(frozen=True)
class Subject:
    """A model as a report sees it; `schema` is there for models of tables alone."""

    name: str
    description: Description
    schema: TableSchema | None
    facts: ReportFacts
    rehearsal: Mapping[str, Any] | None = None

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes as text."""
        if self.schema is not None:
            return self.schema.class_names
        return tuple(str(label) for label in self.description.front.get("classes", ()))


def read_subject(
    folder: Path,
    *,
    tables: tuple[TableFiles, TableFiles] | None = None,
    rehearsal: Path | None = None,
) -> Subject:
    """Read a model folder; facts that it does not hold are computed from tables, if given."""
    description = read_description(folder)
    front = front_from_dict(description.front)
    schema = front.schema if isinstance(front, TableFront) else None
    facts = _stored_facts(folder, description)
    if tables is not None:
        if schema is None:
            raise InputError(
                f"{folder} holds a model of images: --source and --target are for models of tables."
            )
        facts = _completed(facts, folder, tables)
    return Subject(
        folder.resolve().name,
        description,
        schema,
        facts or ReportFacts(),
        None if rehearsal is None else _read_rehearsal(rehearsal),
    )


def model_page(subject: Subject) -> Page:
    """Return the report of a model."""
    facts, description = subject.facts, subject.description
    absent = {name: _reason(subject, name) for name in ("shifted", "calibration", "latents")}
    parts: dict[str, list[Part]] = {
        "missing": missing_parts(description, subject.schema, facts),
        "shifted": shifted_parts(facts),
        "training": _training_parts(subject),
        "latents": _latent_parts(subject),
        "comparison": comparison_parts(description, facts),
        "expected": expected_parts(facts, subject.rehearsal),
        "calibration": reliability_parts(facts),
        "imputation": imputation_parts(facts),
        "command": _command_parts(subject),
    }
    absent |= {
        "missing": "the folder does not say which inputs are missing.",
        "training": "the folder holds no record of the epochs.",
        "comparison": "nothing was measured on held-out rows; `halfseen fit` does so.",
        "expected": _reason(subject, "expected"),
        "imputation": _reason(subject, "imputation")
        if "Imputation" in description.method and "Zero" not in description.method
        else f"{description.method} has no generator.",
        "command": "",
    }
    label = f"Predicting {subject.schema.label}" if subject.schema else subject.name
    return Page(
        label,
        f"{description.method}, from the folder {subject.name}: learned on {_rows(facts)}.",
        arranged(parts, absent),
        _tiles(subject),
    )


def _stored_facts(folder: Path, description: Description) -> ReportFacts | None:
    data = read_report(folder, description)
    if data is None:
        return None
    path = folder / REPORT
    found = data.get("format")
    if type(found) is not int or not 1 <= found <= FORMAT:
        raise InputError(
            f"{path} has format {found!r}, and this version of halfseen reads up to {FORMAT}: "
            "update halfseen, or delete the file for a report without it."
        )
    try:
        return ReportFacts.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(
            f"{path} cannot be understood: {place}: {first['msg']}. Delete it for a report "
            "without it."
        ) from None


def _completed(
    facts: ReportFacts | None, folder: Path, tables: tuple[TableFiles, TableFiles]
) -> ReportFacts:
    """Return the stored facts, with what they lack computed from tables."""
    from halfseen.report.facts.sources import facts_of_tables

    found = facts_of_tables(load_table_model(folder), *tables)
    if facts is None:
        return found
    lacking = {
        name: getattr(found, name)
        for name in ReportFacts.model_fields
        if name not in ("format", "model", "left_out") and not getattr(facts, name)
    }
    reasons = {k: v for k, v in facts.left_out.items() if k in found.left_out}
    return facts.model_copy(update={**lacking, "left_out": reasons})


def _read_rehearsal(path: Path) -> Mapping[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict) or not {"runs", "verdict", "trust"} <= data.keys():
        raise InputError(f"{path} is not what `halfseen rehearse --json` writes.")
    return data


def _rows(facts: ReportFacts) -> str:
    if not facts.source_rows:
        return "complete, labelled rows, for rows that have no labels and lack some columns"
    return (
        f"{facts.source_rows:,} complete, labelled rows, for {facts.target_rows:,} that have no "
        "labels and lack some columns"
    )


def _reason(subject: Subject, section: str) -> str:
    if subject.schema is None:
        return "a model of images keeps no data for it."
    return subject.facts.left_out.get(section, NOT_KEPT)


def _tiles(subject: Subject) -> tuple[Tile, ...]:
    facts, schema = subject.facts, subject.schema
    tiles = []
    if facts.expectation is not None:
        expected, known = facts.expectation.accuracy.dev, facts.expectation.accuracy.source
        few = expected.effective_rows < FEW_ROWS
        caution = f" Rests on {expected.effective_rows:.0f} effective rows." if few else ""
        tiles.append(
            Tile(
                "Expected accuracy on the target",
                f"{expected.low:.0%} to {expected.high:.0%}",
                f"95% interval around {expected.value:.1%}, if only the inputs shifted; "
                f"{known.value:.1%} on the source.{caution}",
            )
        )
    if facts.verdicts:
        against = [v for v in facts.verdicts if v.holds is False]
        words = against[0].question if against else "of those that can be checked without labels"
        value = f"{len(against)} of {len(facts.verdicts)} refuted"
        tiles.append(Tile("Assumptions", value, words))
    if facts.separability is not None:
        apart = facts.separability
        tiles.append(
            Tile(
                "Domains told apart (AUC)",
                f"{apart.before_auc:.2f} → {apart.after_auc:.2f}",
                "in the observed columns, and in the latents; 0.5 is not at all",
            )
        )
    if schema is not None:
        missing = [column.name for column in schema.missing]
        value = f"{len(missing)} of {len(schema.columns)} columns"
        shown = ", ".join(missing[:4]) + (" …" if len(missing) > 4 else "")
        tiles.append(Tile("Missing on the target", value, shown))
    return tuple(tiles)


def _training_parts(subject: Subject) -> list[Part]:
    parts = loss_figures(subject.description.networks.get("history", []))
    apart = subject.facts.separability
    if apart is not None:
        rows = (
            (Cell("observed columns"), number(apart.before_auc), number(apart.before_distance)),
            (Cell("latents"), number(apart.after_auc), number(apart.after_distance)),
        )
        parts.append(
            Grid(
                "How well a classifier tells the domains apart",
                (Head("seen in", numeric=False), Head("AUC"), Head("proxy A-distance")),
                rows,
                (
                    f"On {apart.source_rows:,} source and {apart.target_rows:,} target rows, each "
                    "judged by a classifier that was fitted on others. 0.5 and 0: not at all; 1 "
                    "and 2: perfectly. A separation that vanishes is what adaptation asks for, "
                    "and no proof of a good model.",
                ),
            )
        )
    return parts


def _latent_parts(subject: Subject) -> list[Part]:
    latents, names = subject.facts.latents, subject.class_names
    if latents is None:
        return []
    if max([*latents.source_classes, *latents.target_classes], default=0) >= len(names):
        raise InputError(f"{REPORT} names a class that the model does not have. Delete it.")
    return [
        latent_figures(
            [
                ("Before, observed columns", latents.before_source, latents.before_target),
                ("After, latents", latents.after_source, latents.after_target),
            ],
            latents.source_classes,
            latents.target_classes,
            names,
            classes_are="target rows by the class that the model predicts",
        ),
        Paragraph(
            "Source rows have their label's colour; target rows, which have no label, that of the "
            "predicted class."
        ),
    ]


def _command_parts(subject: Subject) -> list[Part]:
    description, facts = subject.description, subject.facts
    parts: list[Part] = []
    if facts.command:
        parts.append(Code("The command, as it was typed", facts.command))
    data = description.training_data
    rows = []
    for role in ("source", "target"):
        table = data.get(role)
        files = table.get("files", []) if isinstance(table, dict) else []
        for file in files:
            if isinstance(file, dict):
                rows.append(
                    (
                        Cell(role),
                        Cell(str(file.get("name", ""))),
                        Cell(str(file.get("sha256", ""))[:16]),
                    )
                )
    if rows:
        heads = tuple(Head(t, numeric=False) for t in ("role", "file", "SHA-256, first 16 digits"))
        parts.append(Grid("What it learned from", heads, tuple(rows)))
    versions = ", ".join(f"{name} {version}" for name, version in description.versions.items())
    words = f"{description.method or 'Trees and regression'}, seed {description.seed}"
    parts.append(Paragraph(f"{words}. Trained with {versions or 'unrecorded versions'}."))
    options = description.networks.get("options", {})
    settings = json.dumps(options, indent=2, ensure_ascii=False)
    parts.append(Code("Every setting of the training", settings, folded=True))
    return parts
