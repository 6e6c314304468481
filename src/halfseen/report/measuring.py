"""The section of a report on what measuring missing columns would bring."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from halfseen.errors import InputError
from halfseen.model.value_of_measuring import evidence_sentences
from halfseen.report.html import Cell, Head, Part, grid, interval_bar, number
from halfseen.targets import target_type_of

MEASURING = (
    "What measuring would bring",
    "By how much the answers on the target would get better if missing columns were measured "
    "there: the dot, with its 90% interval; the upright line is no gain.",
)


def measuring_parts(metrics: Mapping[str, Any]) -> list[Part]:
    """Draw what measuring sets of missing columns would bring, the most useful first."""
    found, kind = metrics.get("value_of_measuring"), target_type_of(metrics)
    if not found:
        return []
    try:
        sets = sorted(found["sets"], key=lambda each: -float(each["gains"][kind.loss][0]))
        words = {name: kind.measures[name].words for name in sets[0]["gains"]}
        most = {n: max(1e-9, *(float(each["gains"][n][2]) for each in sets)) for n in words}
        rows: list[list[Cell | str | float | None]] = []
        for each in sets:
            row: list[Cell | str | float | None] = [" + ".join(each["columns"])]
            for name, gain in each["gains"].items():
                value, low, high = map(float, gain)
                says = f"{words[name]} better by {value:.3f}, from {low:.3f} to {high:.3f}"
                drawing = interval_bar(value, low, high, most[name], says)
                row += [Cell("", drawing=drawing), number(value)]
            rows.append(row)
        notes = evidence_sentences(found)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        raise InputError("The metrics in model.json cannot be understood: fit again.") from None
    titles: list[str | Head] = ["measuring"]
    for name in words.values():
        titles += [Head(f"{name} better by", drawn=True), name]
    return [grid("What each set of columns would bring", titles, rows, notes)]
