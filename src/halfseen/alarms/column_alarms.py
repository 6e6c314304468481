"""Columns of a target beside those of the source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

import numpy as np

from halfseen.alarms import FEWEST_ROWS, Alarm
from halfseen.arrays import Floats
from halfseen.data.schema import Shape, TableSchema
from halfseen.data.schema_inference import unmeasured

FACTOR = 5.0
"""Ratio of typical sizes from which another unit is suspected."""
SMALL_FACTOR = 1.5
"""The same where the two columns do not overlap at all: pounds for kilograms."""
APART, ALIKE = 0.6, 0.25
"""Largest difference of two cumulated shares: of different columns at least, of alike at most."""
WIDER = 1.6
"""How much the width of the middle half may differ once the unit is converted."""
OUTSIDE = 0.2
"""Share of target rows outside the source's range."""
MARGIN = 0.1
"""Part of the source's range by which it is widened first."""
NEW = 0.3
"""Share of target rows with categories that the source does not have."""
SPIKE = 0.02
"""Share of rows that hold one isolated value."""
ISOLATED = 0.25
"""How far such a value is from the others, in their range, where it is one that people use."""
USED = {0.0, -1.0} | {sign * float(d * n) for d in "789" for n in range(1, 8) for sign in (1, -1)}
"""Numbers that stand for gaps: 999, -1, 0."""
CODES = {value for value in USED if abs(value) > 9}
"""Those that are hardly anything else, so that both sides may have them: 99, -999."""
LARGEST = 1e150
"""Numbers beyond it, or nearer to each other than its inverse, have no squares."""
OUTLIER = 1_000.0
"""How many times the range of all other values a single one may be away from them."""
MOST_PAIRED = 60
"""Columns at most that are compared crosswise."""


def column_alarms(schema: TableSchema, there: Mapping[str, Shape]) -> list[Alarm]:
    """Compare the columns of a table with those of the source, which the schema tells of."""
    pairs = {
        column.name: (column.shape, there[column.name])
        for column in schema.observed
        if column.shape is not None and column.name in there
    }
    known = {
        name: pair
        for name, pair in pairs.items()
        if all(shape.known >= FEWEST_ROWS for shape in pair)
    }
    alarms = list(_swapped(known))
    swapped = {name for alarm in alarms for name in alarm.columns}
    for name, pair in pairs.items():
        checks = [_unmeasured]
        if name in known and name not in swapped:
            checks = [_scale, _row_number, _unmeasured, _categories, _sentinel, _unit]
            checks += [_outlier, _range]
        # The first that fits explains the others.
        raised = (check(name, *pair) for check in checks)
        alarms += [alarm for alarm in raised if alarm is not None][:1]
    return alarms


# --- one column -----------------------------------------------------------------------------


def _unmeasured(name: str, source: Shape, target: Shape) -> Alarm | None:
    """Find what a fit asks about."""
    doubt = unmeasured(source, target)
    fewest = target.rows if doubt and doubt.kind == "gaps" else min(source.known, target.known)
    if doubt is None or fewest < FEWEST_ROWS:
        return None
    return Alarm(doubt.kind, f"{name} {doubt.says}: was it measured?", (name,), doubt.figures)


def _scale(name: str, source: Shape, target: Shape) -> Alarm | None:
    """Find numbers whose squares are nothing or without end."""
    if not source.quantiles or source.distinct < 2:
        return None
    least, most = source.quantiles[0], source.quantiles[-1]
    if max(-least, most) < LARGEST and most - least > 1 / LARGEST:
        return None
    says = (
        f"{name} goes from {least:g} to {most:g} in the source, which cannot be squared: give it "
        "in another unit, or it says nothing."
    )
    return Alarm("scale", says, (name,), {"low": least, "high": most})


def _row_number(name: str, source: Shape, target: Shape) -> Alarm | None:
    """Find whole numbers, each of which the source has once."""
    if not source.quantiles or source.distinct < source.rows:
        return None
    first, last = source.quantiles[0], source.quantiles[-1]
    if first != round(first) or last - first != source.rows - 1:
        return None
    says = (
        f"{name} numbers the source's rows from {first:.0f} to {last:.0f}, and says nothing of "
        "others: name it as an id, or drop it."
    )
    return Alarm("row number", says, (name,), {"first": first, "last": last})


def _categories(name: str, source: Shape, target: Shape) -> Alarm | None:
    if not source.shares or not target.shares:
        return None
    unseen = {value: s for value, s in target.shares.items() if value not in source.shares}
    # Categories too rare to be listed are outside on both sides.
    new = sum(unseen.values()) - max(0.0, 1 - sum(source.shares.values()))
    if new < NEW:
        return None
    similar = {_spelling(value) for value in source.shares}
    respelled = sum(share for value, share in unseen.items() if _spelling(value) in similar)
    advice = (
        "they differ from the source's in capitals or spaces alone, so spell them alike"
        if respelled > new / 2
        else "is it the same code on both sides?"
    )
    shown = ", ".join(repr(value) for value in list(unseen)[:3])
    says = (
        f"{name} has categories that the source never had in {new:.0%} of the rows, such as "
        f"{shown}: {advice}{'' if advice.endswith('?') else '.'}"
    )
    return Alarm("categories", says, (name,), {"share": new})


def _sentinel(name: str, source: Shape, target: Shape) -> Alarm | None:
    """Find a value far from all others that many rows of one side hold, and few of the other."""
    for side, own, other in (("target", target, source), ("source", source, target)):
        for value, share, gap, low, high in _ends(own):
            spread = high - low
            if share < SPIKE or share * own.known < 3:
                continue
            isolated = gap >= ISOLATED * spread and gap > 3 * spread / (own.distinct - 2)
            negative = value < 0 <= low
            if not (gap >= 2 * spread or (value in USED and (isolated or negative))):
                continue
            there = other.share(value)
            inside = other.low[0] < value < other.high[0]
            on_both = value in CODES and (negative or gap >= 2 * spread)
            if inside or (there > share / 5 and not on_both):
                continue
            says = (
                f"{name} is {value:g} in {share:.0%} of the {side}'s rows, far from all other "
                f"values ({low:g} to {high:g}), and in {there:.0%} of the other's: does it stand "
                "for a gap? Leave such cells empty."
            )
            return Alarm("sentinel", says, (name,), {"value": value, "share": share})
    return None


def _unit(name: str, source: Shape, target: Shape) -> Alarm | None:
    if not source.quantiles or not target.quantiles or min(source.distinct, target.distinct) < 6:
        return None
    here, there = np.array(source.quantiles), np.array(target.quantiles)
    sizes = [float(np.median(np.abs(values))) for values in (here, there)]
    if min(sizes) == 0:
        return None
    factor = sizes[1] / sizes[0]
    with np.errstate(over="ignore", divide="ignore"):
        scaled = there / factor
    if not (0 < factor < np.inf and 1 / factor < np.inf and np.isfinite(scaled).all()):
        return None  # no unit is at the edge of what numbers hold; such values are out of range
    apart = _difference(here, there)
    least = FACTOR if apart < 1 else SMALL_FACTOR
    if max(factor, 1 / factor) < least or apart < APART / 2:
        return None
    widths = [float(np.subtract(*np.quantile(values, [0.75, 0.25]))) for values in (here, scaled)]
    if _difference(here, scaled) > ALIKE or max(widths) > WIDER * min(widths):
        return None
    times = (
        f"about {_about(factor)} times"
        if factor > 1
        else f"about {_about(1 / factor)} times smaller than"
    )
    says = (
        f"{name} on the target is {times} the source's (median {_median(there)} against "
        f"{_median(here)}), with the same shape: another unit? Convert one of them."
    )
    return Alarm("unit", says, (name,), {"factor": factor})


def label_alarms(schema: TableSchema) -> list[Alarm]:
    """Say so where one amount is so far from all others that they look alike beside it."""
    if schema.amounts is None:
        return []
    alarm = _outlier(schema.label, schema.amounts, schema.amounts)
    return [] if alarm is None else [alarm]


def _outlier(name: str, source: Shape, target: Shape) -> Alarm | None:
    """Find a value so far from all others that they look alike beside it."""
    for side, own in (("source", source), ("target", target)):
        for value, share, gap, low, high in _ends(own):
            if share < SPIKE and OUTLIER * (high - low) < gap < np.inf:
                says = (
                    f"{name} is {value:g} in {share:.1%} of the {side}'s rows, and {low:g} to "
                    f"{high:g} in all others, which look alike beside it: a slip? Correct it, or "
                    "leave the cell empty."
                )
                return Alarm("outlier", says, (name,), {"value": value, "share": share})
    return None


def _ends(shape: Shape) -> Iterator[tuple[float, float, float, float, float]]:
    """Yield the least and the greatest value, each with its share, gap, and range of the others."""
    (least, _, second), (greatest, _, second_last) = shape.low, shape.high
    if shape.distinct < 6 or not shape.quantiles:
        return
    if greatest > second:
        yield least, shape.low[1], second - least, second, greatest
    if second_last > least:
        yield greatest, shape.high[1], greatest - second_last, least, second_last


def _range(name: str, source: Shape, target: Shape) -> Alarm | None:
    if not source.quantiles or not target.quantiles or source.distinct < 3:
        return None
    least, most = source.quantiles[0], source.quantiles[-1]
    margin = MARGIN * (most - least)
    positions = np.linspace(0, 1, len(target.quantiles))
    low, high = np.interp([least - margin, most + margin], target.quantiles, positions)
    outside = float(low + 1 - high)
    if outside <= OUTSIDE:
        return None
    says = (
        f"{name} is outside the source's range ({least:g} to {most:g}) in about {outside:.0%} of "
        f"the target's rows ({target.quantiles[0]:g} to {target.quantiles[-1]:g}): another unit, "
        "another meaning, or cases that the source never saw?"
    )
    return Alarm("range", says, (name,), {"share": outside})


# --- two columns ----------------------------------------------------------------------------


def _swapped(pairs: Mapping[str, tuple[Shape, Shape]]) -> Iterator[Alarm]:
    """Find two columns of numbers, each of which looks like the other on the target."""
    numbers = {
        name: tuple(np.array(shape.quantiles) for shape in pair)
        for name, pair in pairs.items()
        if all(shape.quantiles and shape.distinct > 2 for shape in pair)
    }
    straight = {name: _difference(*pair) for name, pair in numbers.items()}
    changed = sorted(
        (name for name, apart in straight.items() if apart >= APART), key=lambda n: -straight[n]
    )[:MOST_PAIRED]
    for one, other in combinations(changed, 2):
        (here, there), (here_too, there_too) = numbers[one], numbers[other]
        crosswise = max(_difference(here, there_too), _difference(here_too, there))
        if crosswise > ALIKE:
            continue
        says = (
            f"{one} on the target looks like {other} in the source, and the other way round "
            f"(medians {_median(there)} and {_median(there_too)} against {_median(here)} and "
            f"{_median(here_too)}): are the two columns swapped?"
        )
        yield Alarm("swapped", says, (one, other), {"straight": straight[one], "cross": crosswise})


def _difference(here: Floats, there: Floats) -> float:
    """Return the largest difference of cumulated shares, as Kolmogorov and Smirnov have it."""
    grid = np.union1d(here, there)
    cumulated = [np.searchsorted(q, grid, side="right") / len(q) for q in (here, there)]
    return float(np.abs(cumulated[0] - cumulated[1]).max())


def _median(values: Floats) -> str:
    """Return a median with four digits, as people write it."""
    median = float(f"{np.median(values):.4g}")
    return f"{median:,.0f}" if abs(median) >= 1000 else f"{median:g}"


def _about(factor: float) -> str:
    """Return a factor as people name it: 1,013 is about 1,000."""
    power = 10.0 ** round(np.log10(factor))
    if power >= 10 and abs(np.log10(factor / power)) < 0.1:
        return f"{power:,.0f}"
    digits = 1 - int(np.floor(np.log10(factor)))
    return f"{round(factor, digits):,g}"


def _spelling(value: str) -> str:
    return " ".join(value.split()).casefold()
