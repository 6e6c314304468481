"""A report as plain data, and its one way into HTML.

A page is a list of sections, a section a list of parts. Everything that comes from a user's data
(names of columns, classes, files) is escaped where it becomes HTML: by the template, or by
:mod:`halfseen.report.svg`. The page carries a content security policy under which a browser
loads nothing and runs no script but the page's own.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from halfseen import __version__
from halfseen.atomic_files import write_text


@dataclass(frozen=True)
class Cell:
    """One cell: what is shown, and the value that is sorted by.

    The value is copied too, instead of the text, where it is `exact`.
    """

    text: str
    value: float | None = None
    exact: bool = True
    strong: bool = False
    drawing: Markup | None = None


@dataclass(frozen=True)
class Head:
    """One column of a grid: numbers stand on the right; a drawing is neither sorted nor copied."""

    title: str
    numeric: bool = True
    drawn: bool = False
    descending: bool = False


@dataclass(frozen=True)
class Grid:
    """A table that can be sorted and copied as CSV; folded away under its caption if `folded`."""

    kind: ClassVar[str] = "grid"
    caption: str
    heads: tuple[Head, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    folded: bool = False


def grid(
    caption: str,
    titles: Sequence[str | Head],
    rows: Iterable[Sequence[Cell | str | float | None]],
    notes: Sequence[str] = (),
    *,
    folded: bool = False,
) -> Grid:
    """Return a table whose first column holds names and whose others hold numbers, unless said."""

    def cell(entry: Cell | str | float | None) -> Cell:
        if isinstance(entry, Cell):
            return entry
        return Cell(entry) if isinstance(entry, str) else number(entry)

    columns = (
        Head(title, numeric=place > 0) if isinstance(title, str) else title
        for place, title in enumerate(titles)
    )
    cells = (tuple(map(cell, row)) for row in rows)
    return Grid(caption, tuple(columns), tuple(cells), tuple(notes), folded)


@dataclass(frozen=True)
class Figure:
    """One drawing or picture with its title; `alt` says in words what it shows."""

    title: str
    drawing: Markup | None = None
    picture: str = ""
    alt: str = ""


@dataclass(frozen=True)
class Figures:
    """Figures side by side where there is room, with one legend: (class of the swatch, words)."""

    kind: ClassVar[str] = "figures"
    figures: tuple[Figure, ...]
    legend: tuple[tuple[str, str], ...] = ()
    wide: bool = False


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of text."""

    kind: ClassVar[str] = "paragraph"
    text: str
    warning: bool = False


@dataclass(frozen=True)
class Heading:
    """What the parts below it are about, within a section."""

    kind: ClassVar[str] = "heading"
    text: str


@dataclass(frozen=True)
class Judgement:
    """One assumption with its verdict; `holds` is None where nothing can tell."""

    question: str
    holds: bool | None
    sentence: str


@dataclass(frozen=True)
class Judgements:
    """Assumptions with their verdicts."""

    kind: ClassVar[str] = "judgements"
    judgements: tuple[Judgement, ...]


@dataclass(frozen=True)
class Code:
    """Preformatted text; folded away under its title where `folded`."""

    kind: ClassVar[str] = "code"
    title: str
    text: str
    folded: bool = False


Part = Grid | Figures | Heading | Paragraph | Judgements | Code


@dataclass(frozen=True)
class Section:
    """One section: how to read it in one sentence, and its parts; or why it is left out."""

    name: str
    title: str
    how: str
    parts: tuple[Part, ...] = ()
    absent: str = ""


@dataclass(frozen=True)
class Tile:
    """One figure of the first screen; `bad` marks what must not be overlooked."""

    title: str
    value: str
    words: str = ""
    bad: bool = False


@dataclass(frozen=True)
class Page:
    """A whole report."""

    title: str
    subtitle: str
    sections: tuple[Section, ...]
    tiles: tuple[Tile, ...] = ()
    notes: tuple[str, ...] = ()


def number(value: float | None, form: str = ".3f", *, strong: bool = False) -> Cell:
    """Return a number as a cell, or a dash where there is none."""
    if value is None or not math.isfinite(value):
        return Cell("–")
    return Cell(format(value, form).replace("-", "−"), float(value), strong=strong)


def percent(share: float | None) -> Cell:
    """Return a share as a cell in percent."""
    return number(share, ".1%")


def rendered_page(page: Page) -> str:
    """Return a page as HTML that needs no other file and no network."""
    environment = Environment(
        loader=PackageLoader("halfseen.report"),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["words"] = _words
    style = environment.get_template("report.css").render()
    script = environment.get_template("report.js").render()
    policy = (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    )
    return environment.get_template("report.html").render(
        page=page,
        style=Markup(style),
        script=Markup(script),
        policy=policy,
        version=__version__,
    )


def write_page(path: Path, page: Page) -> None:
    """Write a page in one piece."""
    write_text(path, rendered_page(page))


def _words(text: str) -> Markup:
    """Return a text as HTML, with what stands between backticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def _digest(content: str) -> str:
    """Return what a content security policy calls this very text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
