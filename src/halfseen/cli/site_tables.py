"""The tables of a command, one of each role or several sites: ``--source`` and ``--target``."""

from __future__ import annotations

import glob
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from halfseen.cli.fit_config import open_renamed
from halfseen.cli.terminal import Terminal
from halfseen.errors import InputError, OptionError
from halfseen.settings import FitSettings

OneSource = Annotated[
    Path | None, typer.Argument(help="Complete, labelled rows: a file or a folder.")
]
OneTarget = Annotated[
    Path | None, typer.Argument(help="Rows that lack some columns, and labels in most rows or all.")
]
Sources = Annotated[
    list[str] | None,
    typer.Option(
        "--source",
        metavar="[NAME=]PATH",
        help="A source site, instead of the first table (repeatable; a quoted pattern such as "
        "'sites/*.csv' names several).",
    ),
]
Targets = Annotated[
    list[str] | None,
    typer.Option("--target", metavar="[NAME=]PATH", help="A target site, alike."),
]
Unlabelled = Annotated[
    list[str] | None,
    typer.Option(
        "--unlabelled",
        metavar="[NAME=]PATH",
        help="More complete rows, from anywhere, without the label (repeatable).",
    ),
]
Paths = Sequence[tuple[str, Path]]


@dataclass(frozen=True)
class Sites:
    """Where the tables of both spec are, by the names of their sites."""

    sources: Paths
    targets: Paths
    unlabelled: Paths = ()
    """Complete rows without a label."""

    @classmethod
    def given(
        cls, source: Path | None, target: Path | None,
        sources: list[str] | None = None, targets: list[str] | None = None,
        unlabelled: list[str] | None = None,
    ) -> Sites:  # fmt: skip
        """Take two tables in their places, or those that options name."""
        if (source is not None) + bool(sources) != 1 or (target is not None) + bool(targets) != 1:
            if source is not None and target is None and sources and targets:
                raise OptionError(
                    f"{source} stands beside --source and --target: put a pattern of several files "
                    "in quotes."
                )
            raise OptionError(
                "Give two tables, SOURCE TARGET; or name sites with --source PATH and --target "
                "PATH, each as often as needed."
            )
        from halfseen.data.sites import site_name

        one, other = ([(site_name(p), p)] if p is not None else [] for p in (source, target))
        return cls(
            one or _expanded(sources, "source"),
            other or _expanded(targets, "target"),
            _expanded(unlabelled, "unlabelled"),
        )

    def read(self) -> dict[str, Path | None]:
        """Return what is read, by what messages call it."""
        if len(self.sources) == len(self.targets) == 1 and not self.unlabelled:
            return {"the source table": self.sources[0][1], "the target table": self.targets[0][1]}
        return {
            f"the {role} table {number}": path
            for role, paths in (
                ("source", self.sources),
                ("target", self.targets),
                ("unlabelled", self.unlabelled),
            )
            for number, (_, path) in enumerate(paths, 1)
        }

    def inferred(self, settings: FitSettings, terminal: Terminal) -> list[Any]:
        """Look at the tables; return what they are for each missing pattern.

        Ambiguous columns are asked about in a terminal, and refused elsewhere.
        """
        from halfseen.data.schema_inference import AmbiguousColumn, ambiguous_columns
        from halfseen.data.sites import infer_sites

        with terminal.status("Reading the tables"):
            sources = _opened(self.sources, settings, "source")
            targets = _opened(self.targets, settings, "target")
            more = _opened(self.unlabelled, settings, "unlabelled") if self.unlabelled else {}
        while True:
            with terminal.status("Looking at the columns"):
                inferred = infer_sites(sources, targets, settings.spec(), unlabelled=more)
            ambiguous = [column for column in inferred if isinstance(column, AmbiguousColumn)]
            if not ambiguous:
                return inferred
            if not is_terminal():
                raise ambiguous_columns(ambiguous, settings.spec())
            for column in ambiguous:
                question = f"Column {column.name!r} {column.reason}. Was it never measured there?"
                field = "missing" if typer.confirm(question, err=True) else "keep"
                names = (*getattr(settings, field), column.name)
                settings = settings.model_copy(update={field: names})


def is_terminal() -> bool:
    return sys.stdin.isatty()


def _expanded(given: list[str] | None, role: str) -> Paths:
    from halfseen.data.sites import site_name

    found: list[tuple[str, Path]] = []
    for entry in given or ():
        name, equals, place = entry.partition("=")
        named = bool(equals) and not Path(entry).exists()
        path = Path(place if named else entry)
        matching = [path] if path.exists() else sorted(map(Path, glob.glob(str(path))))
        if not matching:
            raise InputError(f"There is no file {path} (--{role} {entry}).")
        if named and len(matching) > 1:
            raise OptionError(f"--{role} {entry} gives one name to {len(matching)} files.")
        found += [(name if named else site_name(match), match) for match in matching]
    return found


def _opened(paths: Paths, settings: FitSettings, role: str) -> Any:
    from halfseen.data.sites import named_sites

    try:
        opened = [(name, open_renamed(path, settings.rename)) for name, path in paths]
        return named_sites(opened, role)
    except InputError as error:
        if "are called" not in str(error):
            raise
        raise InputError(f"{str(error)[:-1]}: --{role} NAME=PATH.") from None
