"""The sections that every report has, in their order, with how to read each.

A report of a model and one of a benchmark fill the same sections; what one cannot fill says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from halfseen.networks.terms import loss_words
from halfseen.report.page import Figure, Figures, Paragraph, Part, Section
from halfseen.report.svg import line_plot

__all__ = ["SECTIONS", "arranged", "loss_figures"]

SECTIONS: dict[str, tuple[str, str]] = {
    "missing": (
        "What is missing",
        "Each column is a pair of bars, the source above the target: a bar is filled as far as "
        "rows have a value, and hatched where nothing was ever measured.",
    ),
    "shifted": (
        "What shifted",
        "The further the outline (target) is from the filled shape (source), the less the source "
        "says about the target; a stability index below 0.1 is commonly read as stable, above "
        "0.25 as a marked shift.",
    ),
    "training": (
        "How training went",
        "Each panel is one named loss over the epochs, phase by phase: classification should "
        "fall, while the losses of critics (adaptation and imputation) may settle or rise, "
        "because a critic that can no longer tell the two sides apart has a high loss.",
    ),
    "latents": (
        "Latents before and after adaptation",
        "By domain, the more circles and triangles mix, the better the domains are aligned; by "
        "class, clumps of one colour are what the classifier wants (distances between clumps "
        "mean nothing in such a map).",
    ),
    "comparison": (
        "How models compare",
        "Each row is a model, each choice of epoch is named: “last” is the final epoch, what a "
        "user gets, and “oracle” the best one in hindsight, which nobody can know.",
    ),
    "expected": (
        "What to expect on the target",
        "Held-out source rows, weighted to look like the target, stand in for target labels: "
        "trust the figures as far as the verdicts below them go.",
    ),
    "calibration": (
        "Calibration",
        "Points on the diagonal mean that a stated probability comes true as often as it says; "
        "below it the model is too sure of the class.",
    ),
    "imputation": (
        "What the generator imputes",
        "The generator imputes latents, not values: the closer what is read off them (outline) is "
        "to the true column (filled), the more of it the observed columns could tell.",
    ),
    "command": (
        "Command and configuration",
        "What was run, with every setting: enough to run it again.",
    ),
}
"""Title of each section, and how to read it."""


def arranged(
    parts: Mapping[str, Sequence[Part]],
    absent: Mapping[str, str],
    how: Mapping[str, str] | None = None,
) -> tuple[Section, ...]:
    """Return every section, each with its parts or with why it is left out.

    `how` replaces how to read a section, where its content is of another kind.
    """
    found = []
    for name, (title, usual) in SECTIONS.items():
        content = tuple(parts.get(name, ()))
        reason = "" if content else absent[name]
        found.append(Section(name, title, (how or {}).get(name, usual), content, reason))
    return tuple(found)


def loss_figures(history: Sequence[Mapping[str, Any]]) -> list[Part]:
    """Draw every named loss over the epochs, a panel each; nothing where nothing was recorded."""
    bands: list[tuple[str, int, int]] = []
    for number, record in enumerate(history, start=1):
        phase = str(record.get("phase", ""))
        if bands and bands[-1][0] == phase:
            bands[-1] = (phase, bands[-1][1], number)
        else:
            bands.append((phase, number, number))
    phases = ", ".join(
        f"epochs {first} to {last} {phase}" if last > first else f"epoch {first} {phase}"
        for phase, first, last in bands
    )
    figures = []
    for name, shown in loss_words().items():
        values = [_number(record.get(name)) for record in history]
        known = [value for value in values if value is not None]
        if not known:
            continue
        words = f"{name.replace('_', ' ')} loss, from {known[0]:.3g} to {known[-1]:.3g}; {phases}."
        figures.append(Figure(shown, line_plot(values, bands, words)))
    return [Figures(tuple(figures)), Paragraph(f"Phases: {phases}.")] if figures else []


def _number(value: Any) -> float | None:
    """Return what can be drawn; a description may have been written by anybody."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e30:
        return None
    return float(value)
