"""The tables of a command, one of each role or several sites: ``--source`` and ``--target``."""

from __future__ import annotations

import glob
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from halfseen.cli.fit_config import FitConfig
from halfseen.cli.terminal import Terminal
from halfseen.errors import InputError, OptionError

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
Paths = list[tuple[str, Path]]


@dataclass(frozen=True)
class Sites:
    """Where the tables of both spec are, by the names of their sites."""

    sources: Paths
    targets: Paths

    @classmethod
    def given(
        cls, source: Path | None, target: Path | None,
        sources: list[str] | None = None, targets: list[str] | None = None,
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
        from halfseen.data.tables import site_name

        one, other = ([(site_name(p), p)] if p is not None else [] for p in (source, target))
        return cls(one or _expanded(sources, "source"), other or _expanded(targets, "target"))

    def read(self) -> dict[str, Path | None]:
        """Return what is read, by what messages call it."""
        if len(self.sources) == len(self.targets) == 1:
            return {"the source table": self.sources[0][1], "the target table": self.targets[0][1]}
        return {
            f"the {role} table {number}": path
            for role, paths in (("source", self.sources), ("target", self.targets))
            for number, (_, path) in enumerate(paths, 1)
        }

    def understood(self, config: FitConfig, terminal: Terminal) -> list[Any]:
        """Look at the tables; return what was understood for each missing pattern.

        Doubts are asked about in a terminal, and refused elsewhere.
        """
        from halfseen.data.schema_inference import (
            AmbiguousColumn,
            ambiguous_columns,
            infer_sites,
        )  # fmt: skip

        with terminal.status("Reading the tables"):
            sources = _opened(self.sources, config, "source")
            targets = _opened(self.targets, config, "target")
        while True:
            with terminal.status("Looking at the columns"):
                found = infer_sites(sources, targets, config.spec())
            doubts = [doubt for doubt in found if isinstance(doubt, AmbiguousColumn)]
            if not doubts:
                return found
            if not is_terminal():
                raise ambiguous_columns(doubts, config.spec())
            for doubt in doubts:
                question = f"Column {doubt.name!r} {doubt.reason}. Was it never measured there?"
                if typer.confirm(question, err=True):
                    config.missing = [*(config.missing or ()), doubt.name]
                else:
                    config.keep = [*(config.keep or ()), doubt.name]


def is_terminal() -> bool:
    return sys.stdin.isatty()


def _expanded(given: list[str] | None, role: str) -> Paths:
    from halfseen.data.tables import site_name

    found: Paths = []
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


def _opened(paths: Paths, config: FitConfig, role: str) -> Any:
    from halfseen.data.tables import named_sites

    try:
        return named_sites([(name, config.open(path)) for name, path in paths], role)
    except InputError as error:
        if "are called" not in str(error):
            raise
        raise InputError(f"{str(error)[:-1]}: --{role} NAME=PATH.") from None
