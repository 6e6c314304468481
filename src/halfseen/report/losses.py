"""How the training of networks went: every named loss over the epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from halfseen.networks.terms import loss_words
from halfseen.report.html import Figure, Figures, Paragraph, Part
from halfseen.report.svg import line_plot

HOW_TRAINING = (
    "Each panel is one named loss over the epochs, phase by phase: classification should fall, "
    "while the losses of critics (adaptation and imputation) may settle or rise, because a critic "
    "that can no longer tell the two sides apart has a high loss."
)


def loss_figures(history: Sequence[Mapping[str, Any]]) -> list[Part]:
    """Draw every named loss, a panel each; nothing where nothing was recorded."""
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
