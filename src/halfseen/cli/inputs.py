"""What commands are given: models, tables, folders of images."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from halfseen.cli.terminal import Terminal
from halfseen.errors import InputError, OptionError

if TYPE_CHECKING:
    from halfseen.data.image_folders import ImageFolder
    from halfseen.data.schema_inference import InferredTables
    from halfseen.data.table_files import TableFiles
    from halfseen.model.model import Model
    from halfseen.settings import FitSettings

ModelFolder = Annotated[Path, typer.Argument(help="Folder that `halfseen fit` wrote.")]
Rename = Annotated[
    list[str] | None,
    typer.Option(metavar="OLD=NEW", help="Another name for a column of either table."),
]
OneSource = Annotated[
    Path | None, typer.Argument(help="Complete, labelled rows: a file or a folder.")
]
OneTarget = Annotated[
    Path | None, typer.Argument(help="Rows that lack some columns, and labels in most rows or all.")
]
Sources = Annotated[
    list[Path] | None,
    typer.Option("--source", help="A source, instead of the first table (repeatable)."),
]
Targets = Annotated[
    list[Path] | None, typer.Option("--target", help="A target, alike (repeatable).")
]
Unlabelled = Annotated[
    list[Path] | None,
    typer.Option(
        "--unlabelled", help="More complete rows, from anywhere, without the label (repeatable)."
    ),
]
MOST_NAMED = 20
"""Unreadable files that are named at the terminal; ``--json`` names all."""


@dataclass(frozen=True)
class TablePaths:
    """Where the tables of both domains are."""

    sources: Sequence[Path]
    targets: Sequence[Path]
    unlabelled: Sequence[Path] = ()
    """Complete rows without a label."""

    @classmethod
    def given(
        cls, source: Path | None, target: Path | None,
        sources: list[Path] | None = None, targets: list[Path] | None = None,
        unlabelled: list[Path] | None = None,
    ) -> TablePaths:  # fmt: skip
        """Take two tables in their places, or those that options name."""
        if (source is not None) + bool(sources) != 1 or (target is not None) + bool(targets) != 1:
            raise OptionError(
                "Give two tables, SOURCE TARGET; or several with --source PATH and --target PATH, "
                "each as often as needed."
            )
        one, other = ([path] if path is not None else [] for path in (source, target))
        return cls(one or sources or [], other or targets or [], unlabelled or [])

    def read(self) -> dict[str, Path | None]:
        """Return what is read, by what messages call it."""
        roles = {"source": self.sources, "target": self.targets, "unlabelled": self.unlabelled}
        return {
            f"the {role} table{f' {number}' if len(paths) > 1 else ''}": path
            for role, paths in roles.items()
            for number, path in enumerate(paths, 1)
        }

    def inferred(self, settings: FitSettings, terminal: Terminal) -> list[InferredTables]:
        """Look at the tables; return what they are for each missing pattern.

        Ambiguous columns are asked about in a terminal, and refused elsewhere.
        """
        from halfseen.data.schema_inference import (
            AmbiguousColumn,
            InferredTables,
            ambiguous_columns,
            infer_tables,
        )

        with terminal.status("Reading the tables"):
            sources, targets, more = (
                [open_renamed(path, settings.rename) for path in paths]
                for paths in (self.sources, self.targets, self.unlabelled)
            )
        while True:
            with terminal.status("Looking at the columns"):
                inferred = infer_tables(sources, targets, settings.spec(), more)
            ambiguous = [column for column in inferred if isinstance(column, AmbiguousColumn)]
            if not ambiguous:
                return [part for part in inferred if isinstance(part, InferredTables)]
            if not is_terminal():
                raise ambiguous_columns(ambiguous, settings.spec())
            for column in ambiguous:
                question = f"Column {column.name!r} {column.reason}. Was it never measured there?"
                field = "missing" if typer.confirm(question, err=True) else "keep"
                names = (*getattr(settings, field), column.name)
                settings = settings.model_copy(update={field: names})


def is_terminal() -> bool:
    return sys.stdin.isatty()


def open_renamed(path: Path, renames: Sequence[str] | None) -> TableFiles:
    """Open a table whose columns get other names, each said as old=new."""
    from halfseen.data.table_files import open_table

    names = {}
    parts = ",(?=[^,=]+=)"  # a name may have a comma
    for entry in (part for given in renames or () for part in re.split(parts, given)):
        old, equals, new = entry.partition("=")
        if not equals or not new.strip():
            raise OptionError(f"--rename {entry}: write it as OLD=NEW.")
        names[old] = new.strip()
    return open_table(path).renamed(names)


class Skipped:
    """The images and folders left out, each as a sentence; the first one ends a strict run."""

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self.sentences: list[str] = []
        self.notes: list[str] = []

    def __call__(self, error: InputError) -> None:
        if self.strict:
            raise error
        self.sentences.append(str(error))

    def note(self, folder: ImageFolder, terminal: Terminal) -> ImageFolder:
        """Say what a folder's listing left out."""
        if folder.notes and self.strict:
            raise InputError(folder.notes[0])
        self.notes += folder.notes
        for note in folder.notes:
            terminal.say(f"Note: {note}")
        return folder

    def tell(self, terminal: Terminal) -> dict[str, list[str]]:
        """Say what was skipped; return it as data."""
        for sentence in self.sentences[:MOST_NAMED]:
            terminal.say(f"Skipped: {sentence}")
        if self.sentences:
            count = len(self.sentences)
            terminal.say(
                f"{count:,} {'image was' if count == 1 else 'images were'} skipped; --strict "
                "stops instead."
            )
        return {"skipped": self.sentences, "notes": self.notes}


@dataclass(frozen=True)
class Asked:
    """A model and what it is asked about: a table, or a folder of images."""

    model: Model
    table: TableFiles | None
    folder: Any
    skipped: Skipped


def open_rows(
    path: Path, data: Path, rename: Sequence[str] | None, terminal: Terminal, *,
    of_tables: dict[str, Any], labelled: bool = False, strict: bool = False,
) -> Asked:  # fmt: skip
    """Load a model, of several the part that the columns call for, and open rows for it.

    `of_tables` are options, beside ``--rename``, that only models of tables have.
    """
    from halfseen.data.preprocessors import ImagePreprocessor
    from halfseen.model.loading import load
    from halfseen.model.pattern_model import PatternModel

    model, skipped = load(path), Skipped(strict=strict)
    if not isinstance(model, PatternModel) and isinstance(model.preprocessor, ImagePreprocessor):
        from halfseen.data.image_folders import open_folder

        for name, value in (of_tables | {"--rename": rename}).items():
            if value:
                raise OptionError(f"{name} is for models of tables, and this one takes images.")
        folder = open_folder(data, labelled=labelled, fewest=1 if labelled else 2)
        return Asked(model, None, skipped.note(folder, terminal), skipped)
    with terminal.status("Reading the table"):
        table = open_renamed(data, rename)
    if isinstance(model, PatternModel):
        place = model.part_for(table)
        lacks = ", ".join(model.patterns[place])
        terminal.say(f"Part {place + 1} of {len(model.parts)}, which does without {lacks}.")
        model = model.parts[place]
    return Asked(model, table, None, skipped)
