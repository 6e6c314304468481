"""Tables of several sites on the command line: ``--source`` and ``--target``."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from halfseen.errors import InputError, OptionError

if TYPE_CHECKING:
    from halfseen.cli.config import FitConfig
    from halfseen.front.tables import Table

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


def given_paths(
    source: Path | None, target: Path | None, sources: list[str] | None, targets: list[str] | None
) -> tuple[Paths, Paths]:
    """Return the tables of both roles with their names: two in their places, or by options."""
    if (source is not None) + bool(sources) != 1 or (target is not None) + bool(targets) != 1:
        if source is not None and target is None and sources and targets:
            raise OptionError(
                f"{source} stands beside --source and --target: put a pattern of several files in "
                "quotes."
            )
        raise OptionError(
            "Give two tables, SOURCE TARGET; or name sites with --source PATH and --target PATH, "
            "each as often as needed."
        )
    from halfseen.front.sites import site_name

    one = [(site_name(path), path) for path in (source, target) if path is not None]
    named = [_expanded(given, role) for given, role in ((sources, "source"), (targets, "target"))]
    return named[0] or one[:1], named[1] or one[-1:]


def _expanded(given: list[str] | None, role: str) -> Paths:
    from halfseen.front.sites import site_name

    found: Paths = []
    for entry in given or ():
        name, equals, place = entry.partition("=")
        named = bool(equals) and not Path(entry).exists()
        path = Path(place if named else entry)
        if path.exists():
            found.append((name if named else site_name(path), path))
            continue
        matching = sorted(Path(match) for match in glob.glob(str(path)))
        if not matching:
            raise InputError(f"There is no file {path} (--{role} {entry}).")
        if named and len(matching) > 1:
            raise OptionError(f"--{role} {entry} gives one name to {len(matching)} files.")
        found += [(name if named else site_name(match), match) for match in matching]
    return found


def opened(paths: Paths, config: FitConfig, role: str) -> dict[str, Table]:
    """Open the tables of one role, by name."""
    from halfseen.front.sites import named_sites

    try:
        return named_sites([(name, config.open(path)) for name, path in paths], role)
    except InputError as error:
        if "are called" not in str(error):
            raise
        raise InputError(f"{str(error)[:-1]}: --{role} NAME=PATH.") from None


def read_paths(sources: Paths, targets: Paths) -> dict[str, Path | None]:
    """Return what is read, by what messages call it."""
    if len(sources) == len(targets) == 1:
        return {"the source table": sources[0][1], "the target table": targets[0][1]}
    found: dict[str, Path | None] = {}
    for role, paths in (("source", sources), ("target", targets)):
        found |= {f"the {role} table {number}": path for number, (_, path) in enumerate(paths, 1)}
    return found
