"""Drawings as SVG inside a page: coloured by its theme, readable without colour.

Source and target differ in form (filled or outlined) before they differ in colour. Every drawing
says in words what it shows. Lengths are CSS pixels at the size a phone shows, so that text stays
readable there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape
from scipy.stats import binomtest

Point = tuple[float, float]
MOST_LETTERS = 14


def ticks(low: float, high: float, count: int = 4) -> list[float]:
    """Return round numbers between two ends, about so many."""
    if not high > low:
        return [low]
    rough = (high - low) / count
    scale = 10.0 ** math.floor(math.log10(rough))
    step = next(s * scale for s in (1.0, 2.0, 2.5, 5.0, 10.0) if s * scale >= 0.7 * rough)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(k * step, 12) + 0.0 for k in range(first, last + 1)]


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
    width, height, foot = 176.0, 38.0, 14.0
    most = max([*source, *(target or ()), 1e-9])
    step = width / max(len(source), 1)
    gap = min(2.0, step / 4) if apart else 0.0

    def top(share: float) -> float:
        return height - (height - 2) * share / most

    def boxes(shares: Sequence[float], end: str) -> str:
        return "".join(
            f"M{i * step + gap:.1f} {height:g}V{top(s):.1f}h{step - 2 * gap:.1f}V{height:g}{end}"
            for i, s in enumerate(shares)
            if s > 0
        )

    shapes = [f'<path class="fill-source" d="{boxes(source, "z")}"/>']
    if target is not None:
        outline = boxes(target, "")
        if not apart:
            steps = (f"V{top(t):.1f}h{step:.1f}" for t in target)
            outline = f"M0 {height:g}" + "".join(steps) + f"V{height:g}"
        shapes.append(f'<path class="line-target" d="{outline}"/>')
    shapes.append(f'<path class="axis" d="M0 {height:g}H{width:g}"/>')
    for x, end, anchor in ((0.0, ends[0], "start"), (width, ends[1], "end")):
        shown = end if len(end) <= MOST_LETTERS else f"{end[: MOST_LETTERS - 1]}…"
        shapes.append(_text(x, height + foot - 2, shown, anchor))
    return _svg(width, height + foot, words, shapes, "small")


def signed_bar(value: float, most: float, words: str, *, signed: bool = True) -> Markup:
    """Draw one number from a line in the middle: filled to the right, outlined to the left.

    Numbers that have no sign begin at the left end.
    """
    width, height = 176.0, 16.0
    middle = width / 2 if signed else 1.0
    reach = (width - middle - 2) * min(1.0, abs(value) / max(most, 1e-9))
    start, kind = (middle, "fill-source") if value >= 0 else (middle - reach, "line-target")
    shapes = [
        f'<rect class="{kind}" x="{start:.1f}" y="3" width="{reach:.1f}" height="10"/>',
        f'<path class="axis" d="M{middle:g} 0V{height:g}"/>',
    ]
    return _svg(width, height, words, shapes, "small")


def line_plot(
    values: Sequence[float | None], bands: Sequence[tuple[str, int, int]], words: str
) -> Markup:
    """Draw one quantity over the epochs; `bands` are phases with their first and last epoch."""
    width, height = 320.0, 170.0
    left, right, top, bottom = 46.0, 8.0, 18.0, 24.0
    known = [v for v in values if v is not None]
    low, high = min([0.0, *known]), 1.05 * max([*known, 1e-9])
    count = max(len(values), 2)

    def across(epoch: float) -> float:
        return left + (width - left - right) * (epoch - 0.5) / count

    def up(value: float) -> float:
        return height - bottom - (height - top - bottom) * (value - low) / (high - low)

    shapes = []
    for i, (name, first, last) in enumerate(bands):
        start, stop = across(first - 0.5), across(last + 0.5)
        shade = "band-even" if i % 2 == 0 else "band-odd"
        shapes.append(
            f'<rect class="{shade}" x="{start:.1f}" y="{top}" width="{stop - start:.1f}" '
            f'height="{height - top - bottom:g}"/>'
        )
        if stop - start > 6.2 * len(name):  # otherwise it would run into its neighbour
            shapes.append(_text(start + 3, top - 5, name, "start"))
    for tick in ticks(low, high, 3):
        shapes.append(f'<path class="rule" d="M{left} {up(tick):.1f}H{width - right:g}"/>')
        shapes.append(_text(left - 6, up(tick) + 3.5, f"{tick:g}", "end"))
    for tick in sorted({1, *(int(t) for t in ticks(1, len(values), 4) if t >= 1), len(values)}):
        if tick in (1, len(values)) or abs(across(tick) - across(len(values))) > 26:
            shapes.append(_text(across(tick), height - 8, str(tick), "middle"))
    places = [(across(i), up(v)) for i, v in enumerate(values, start=1) if v is not None]
    shapes.append(f'<path class="line-plain" d="{_path(places)}"/>')
    if len(places) < 30:  # strokes without length, which round caps make dots
        dots = "".join(f"M{x:.0f} {y:.0f}h0" for x, y in places)
        shapes.append(f'<path class="dots-plain" d="{dots}"/>')
    return _svg(width, height, words, shapes)


def reliability_plot(
    points: Sequence[tuple[float, float, int]], words: str, across: str, up: str
) -> Markup:
    """Draw predicted against observed shares; whiskers are Wilson's 95 % intervals."""
    width, height = 320.0, 300.0
    left, right, top, bottom = 44.0, 12.0, 10.0, 40.0

    def x_of(share: float) -> float:
        return left + (width - left - right) * share

    def y_of(share: float) -> float:
        return height - bottom - (height - top - bottom) * share

    shapes = []
    for tick in ticks(0.0, 1.0, 4):
        shapes.append(f'<path class="rule" d="M{left} {y_of(tick):.1f}H{width - right:g}"/>')
        shapes.append(_text(left - 6, y_of(tick) + 3.5, f"{tick:g}", "end"))
        shapes.append(_text(x_of(tick), height - bottom + 15, f"{tick:g}", "middle"))
    shapes.append(
        f'<path class="diagonal" d="M{x_of(0):.1f} {y_of(0):.1f}L{x_of(1):.1f} {y_of(1):.1f}"/>'
    )
    whiskers = ""
    for predicted, observed, rows in points:
        counted = binomtest(round(observed * rows), max(rows, 1))
        low, high = counted.proportion_ci(0.95, "wilson")
        whiskers += f"M{x_of(predicted):.1f} {y_of(low):.1f}V{y_of(high):.1f}"
    shapes.append(f'<path class="whisker" d="{whiskers}"/>')
    places = [(x_of(p), y_of(o)) for p, o, _ in points]
    shapes.append(f'<path class="line-plain" d="{_path(places)}"/>')
    most = max([rows for _, _, rows in points], default=1)
    for (x, y), (_, _, rows) in zip(places, points, strict=True):
        radius = 2.5 + 4.5 * math.sqrt(rows / most)
        shapes.append(f'<circle class="bubble" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>')
    shapes.append(_text((left + width - right) / 2, height - 6, across, "middle"))
    shapes.append(
        f'<text text-anchor="middle" transform="translate(11 '
        f'{(top + height - bottom) / 2:g}) rotate(-90)">{escape(up)}</text>'
    )
    return _svg(width, height, words, shapes)


def _svg(
    width: float, height: float, words: str, shapes: Iterable[str], kind: str = "plot"
) -> Markup:
    return Markup(
        f'<svg class="{kind}" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{escape(words)}">{"".join(shapes)}</svg>'
    )


def _text(x: float, y: float, words: str, anchor: str) -> str:
    place = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}"{place}>{escape(words)}</text>'


def _path(places: Sequence[Point]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places) if places else ""
