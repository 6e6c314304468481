"""`halfseen report`: a model folder or a benchmark's output in, one HTML page out."""

from __future__ import annotations

import webbrowser
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from halfseen.cli.terminal import Force, Json, Terminal
from halfseen.errors import InputError, installed_by
from halfseen.outputs import Output, check_outputs, head

if TYPE_CHECKING:
    from halfseen.report.html import Page

MODEL, PATTERNS = "model.json", "patterns.json"


def report(
    path: Annotated[
        Path, typer.Argument(help="A model folder, or a folder that `halfseen bench run` wrote.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Page to write; FOLDER-report.html here by default."),
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write one HTML page on a model or a benchmark: what is missing, what shifted, what to expect.

    The page holds everything it shows and loads nothing. A section that the folder has no data
    for says so.

    Example: halfseen report model/ -o report.html
    """
    terminal = Terminal(as_json=as_json)
    written = output or Path(f"{path.resolve().name}-report.html")
    page = Output(written, "the report", is_page)
    check_outputs([page], _read(path), force=force)
    with installed_by("report", "A report"):
        from halfseen.report.html import write_page
    with terminal.status("Writing the report"):
        write_page(written, _page(path))
    terminal.result(f"Report: {written}")
    terminal.document({"report": written})
    if open_:
        webbrowser.open(written.resolve().as_uri())


def is_page(path: Path) -> bool:
    return b'<meta name="generator" content="halfseen' in head(path)


def _read(path: Path) -> dict[str, Path | None]:
    """Return what is read: a model with all of its folder, of a benchmark the log alone."""
    folder = path.parent if path.is_file() else path
    if (folder / MODEL).is_file() or (folder / PATTERNS).is_file():
        return {"the model": folder}
    logs = entry_points(group="halfseen.pages").names
    return {
        f"the log {name}{ending}": folder / f"{name}{ending}"
        for name in logs
        for ending in ("", ".gz")
    }


def _page(path: Path) -> Page:
    installed = entry_points(group="halfseen.pages")  # named by the file that marks a folder
    if path.is_file() and path.name in (MODEL, PATTERNS, *installed.names):
        path = path.parent
    if (path / MODEL).is_file() or (path / PATTERNS).is_file():
        from halfseen.report.model_page import model_page, patterns_page, read_subject
        from halfseen.saving import read_patterns

        parts = read_patterns(path)
        if parts:
            return patterns_page(path.resolve().name, [read_subject(part) for part in parts])
        return model_page(read_subject(path))
    for entry in installed:
        if (path / entry.name).is_file() or (path / f"{entry.name}.gz").is_file():
            page: Page = entry.load()(path)
            return page
    what = "does not exist" if not path.exists() else f"has no {MODEL}, nor the log of a benchmark"
    raise InputError(
        f"{path} {what}: give a folder that `halfseen fit`, `halfseen bench run` or `halfseen "
        "demo` wrote."
    )
