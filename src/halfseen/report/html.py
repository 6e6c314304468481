"""A page as plain data, and its one way into HTML.

A page is a list of sections, a section a list of parts. What comes from a user's data (names of
columns, classes, files) is escaped where it becomes HTML: by the template, or in
:func:`bars`. Under the page's content security policy a browser loads nothing and
runs no script but the page's own.
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

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from halfseen import __version__
from halfseen.outputs import write_text


@dataclass(frozen=True)
class Cell:
    """What is shown, as text or drawn, and the value that is sorted by."""

    text: str
    value: float | None = None
    strong: bool = False
    drawing: Markup | None = None


@dataclass(frozen=True)
class Head:
    """One column of a grid: numbers stand on the right, and a drawing is not sorted."""

    title: str
    numeric: bool = True
    drawn: bool = False
    descending: bool = False


@dataclass(frozen=True)
class Grid:
    """A table that can be sorted; folded away under its caption if `folded`."""

    kind: ClassVar[str] = "grid"
    caption: str
    heads: Sequence[Head]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()
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

    heads = [t if isinstance(t, Head) else Head(t, numeric=k > 0) for k, t in enumerate(titles)]
    return Grid(caption, heads, [[cell(entry) for entry in row] for row in rows], notes, folded)


def number(value: float | None, form: str = ".3f", *, strong: bool = False) -> Cell:
    """Return a number as a cell, or a dash where there is none."""
    if value is None or not math.isfinite(value):
        return Cell("–")
    return Cell(format(value, form).replace("-", "−"), float(value), strong=strong)


@dataclass(frozen=True)
class Figure:
    """One picture with its title; `alt` says in words what it shows."""

    title: str
    picture: str = ""
    alt: str = ""


@dataclass(frozen=True)
class Figures:
    """Figures side by side where there is room, with one legend: (class of the swatch, words)."""

    kind: ClassVar[str] = "figures"
    figures: Sequence[Figure]
    legend: Sequence[tuple[str, str]] = ()
    wide: bool = False


@dataclass(frozen=True)
class Paragraph:
    """A paragraph, in which backticks mark code."""

    kind: ClassVar[str] = "paragraph"
    text: str
    warning: bool = False


@dataclass(frozen=True)
class Code:
    """Preformatted text; folded away under its title where `folded`."""

    kind: ClassVar[str] = "code"
    title: str
    text: str
    folded: bool = False


Part = Grid | Figures | Paragraph | Code


@dataclass(frozen=True)
class Section:
    """One section: how to read it in one sentence, and its parts; or why it is left out."""

    name: str
    title: str
    how: str
    parts: Sequence[Part] = ()
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
    title: str
    subtitle: str
    sections: Sequence[Section]
    tiles: Sequence[Tile] = ()
    notes: Sequence[str] = ()


def rendered_page(page: Page) -> str:
    """Return a page as HTML that needs no other file and no network."""
    files = Environment(
        loader=PackageLoader("halfseen.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    files.filters["words"] = _words
    style, script = (
        Markup(files.get_template(f"report.{kind}").render()) for kind in ("css", "js")
    )
    policy = (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    )
    return files.get_template("report.html").render(
        page=page, style=style, script=script, policy=policy, version=__version__
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


# --- drawings as SVG: source and target differ in form before they differ in colour ------------

SMALL = 176.0
"""How wide a drawing within a table is."""
MOST_LETTERS = 14


def bars(
    source: Sequence[float],
    target: Sequence[float] | None,
    words: str,
    ends: tuple[str, str],
    *,
    apart: bool = False,
) -> Markup:
    """Draw shares of rows: the source filled, the target as an outline on top.

    `apart` leaves room between the bars, for values that are not neighbours.
    """
    high, step = 38.0, SMALL / max(len(source), 1)
    most, gap = max([*source, *(target or ()), 1e-9]), min(2.0, step / 4) if apart else 0.0

    def outline(shares: Sequence[float]) -> str:
        tops = [high - (high - 2) * share / most for share in shares]
        foot = f"V{high:g}" if apart else ""
        return (
            f"M0 {high:g}"
            + "".join(f"h{gap:.1f}V{top:.1f}h{step - 2 * gap:.1f}{foot}h{gap:.1f}" for top in tops)
            + f"V{high:g}"
        )

    shapes = [f'<path class="fill-source" d="{outline(source)}"/>']
    if target is not None:
        shapes.append(f'<path class="line-target" d="{outline(target)}"/>')
    shapes.append(f'<path class="axis" d="M0 {high:g}H{SMALL:g}"/>')
    for x, end, anchor in ((0.0, ends[0], "start"), (SMALL, ends[1], "end")):
        short = end if len(end) <= MOST_LETTERS else f"{end[: MOST_LETTERS - 1]}…"
        shapes.append(_text(x, high + 12, short, anchor))
    return _svg(SMALL, high + 14, words, shapes, "small")


def interval_bar(value: float, low: float, high: float, most: float, words: str) -> Markup:
    """Draw a number as a dot on its interval, and a line where nothing is gained."""
    least = -most / 4

    def place(number: float) -> float:
        return SMALL * (min(max(number, least), most) - least) / (most - least)

    shapes = [
        f'<path class="axis" d="M{place(0.0):.1f} 0V16"/>',
        f'<path class="line-plain" d="M{place(low):.1f} 8H{place(high):.1f}"/>',
        f'<circle class="fill-source" cx="{place(value):.1f}" cy="8" r="4"/>',
    ]
    return _svg(SMALL, 16, words, shapes, "small")


def _svg(width: float, height: float, words: str, shapes: Sequence[str], kind: str) -> Markup:
    return Markup(
        f'<svg class="{kind}" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{escape(words)}">{"".join(shapes)}</svg>'
    )


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
