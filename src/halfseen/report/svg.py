"""Drawings as SVG inside a page: coloured by its theme, readable without colour.

Source and target differ in form (filled or outlined) before they differ in colour. Every drawing
says in words what it shows. Lengths are CSS pixels at the size a phone shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from markupsafe import Markup, escape

from halfseen.networks.terms import loss_words
from halfseen.report.html import Figure, Figures, Paragraph, Part

WIDE, HIGH, LEFT, RIGHT, TOP, BOTTOM = 320.0, 190.0, 46.0, 10.0, 10.0, 24.0
"""A plot, and the room around its axes."""
SMALL = 176.0
"""How wide a drawing within a table is."""
MOST_LETTERS = 14
HOW_TRAINING = (
    "Each panel is one named loss over the epochs, phase by phase: classification should fall, "
    "while the losses of critics (adaptation and imputation) may settle or rise, because a critic "
    "that can no longer tell the two sides apart has a high loss."
)


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


def signed_bar(value: float, most: float, words: str, *, signed: bool = True) -> Markup:
    """Draw one number from a line in the middle: filled to the right, outlined to the left.

    Numbers that have no sign begin at the left end.
    """
    middle = SMALL / 2 if signed else 1.0
    reach = (SMALL - middle - 2) * min(1.0, abs(value) / max(most, 1e-9))
    start, kind = (middle, "fill-source") if value >= 0 else (middle - reach, "line-target")
    shapes = [
        f'<rect class="{kind}" x="{start:.1f}" y="3" width="{reach:.1f}" height="10"/>',
        f'<path class="axis" d="M{middle:g} 0V16"/>',
    ]
    return _svg(SMALL, 16, words, shapes, "small")


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


def loss_figures(history: Sequence[Mapping[str, Any]]) -> list[Part]:
    """Draw every named loss over the epochs, a panel each; nothing where none was recorded."""
    bands, epoch = [], 0
    for phase, records in groupby(history, key=lambda record: str(record.get("phase", ""))):
        bands.append((phase, epoch + 1, epoch := epoch + len(list(records))))
    phases = ", ".join(f"{phase} to epoch {last}" for phase, _, last in bands)
    figures = []
    for name, title in loss_words().items():
        values = [_number(record.get(name)) for record in history]
        known = [value for value in values if value is not None]
        if known:
            words = f"{name.replace('_', ' ')} loss, from {known[0]:.3g} to {known[-1]:.3g}."
            figures.append(Figure(title, _line_plot(values, bands[1::2], words)))
    return [Figures(figures), Paragraph(f"Phases: {phases}.")] if figures else []


def _line_plot(
    values: Sequence[float | None], bands: Sequence[tuple[str, int, int]], words: str
) -> Markup:
    """Draw one quantity over the epochs, some of them on a band."""
    known = {epoch: value for epoch, value in enumerate(values, 1) if value is not None}
    low, high, last = min(0.0, *known.values()), max(1e-9, *known.values()), len(values)
    shapes = []
    for _, first, end in bands:
        (start, foot), (stop, top) = _place((first - 1) / last, 0), _place(end / last, 1)
        shapes.append(
            f'<path class="band" d="M{start:.1f} {foot:g}H{stop:.1f}V{top:g}H{start:.1f}z"/>'
        )
    across = {float(k): (k - 0.5) / last for k in (1, (last + 1) // 2, last)}
    shapes += _axes(across, {low + share * (high - low): share for share in (0.0, 0.5, 1.0)})
    places = [_place((k - 0.5) / last, (v - low) / (high - low)) for k, v in known.items()]
    shapes.append(f'<path class="line-plain" d="{_path(places)}"/>')
    return _svg(WIDE, HIGH, words, shapes, "plot")


def _number(value: Any) -> float | None:
    """Return what can be drawn; a description may have been written by anybody."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e30:
        return None
    return float(value)


def _place(across: float, up: float) -> tuple[float, float]:
    """Return pixels of shares of the axes."""
    return LEFT + (WIDE - LEFT - RIGHT) * across, HIGH - BOTTOM - (HIGH - TOP - BOTTOM) * up


def _axes(across: Mapping[float, float], up: Mapping[float, float]) -> list[str]:
    """Draw ticks at their shares of each axis."""
    shapes = []
    for tick, share in up.items():
        y = _place(0, share)[1]
        shapes.append(f'<path class="rule" d="M{LEFT:g} {y:.1f}H{WIDE - RIGHT:g}"/>')
        shapes.append(_text(LEFT - 6, y + 3.5, f"{tick:.3g}", "end"))
    for tick, share in across.items():
        shapes.append(_text(_place(share, 0)[0], HIGH - 8, f"{tick:g}", "middle"))
    return shapes


def _svg(width: float, height: float, words: str, shapes: Sequence[str], kind: str) -> Markup:
    return Markup(
        f'<svg class="{kind}" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{escape(words)}">{"".join(shapes)}</svg>'
    )


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _path(places: Sequence[tuple[float, float]]) -> str:
    """Join places with lines; a single one is a dot."""
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places) + "h0" if places else ""
