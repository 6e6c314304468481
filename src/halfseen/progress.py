"""What a person sees while a model trains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

NO_LOSSES = frozenset({"strength", "learning_rate", "seconds"})
"""Numbers of an epoch's record that are not shown."""


class Epochs(Protocol):
    """What is shown of some epochs."""

    @property
    def name(self) -> str: ...
    @property
    def epochs(self) -> int: ...


class Progress(AbstractContextManager["Progress"]):
    """Told by the loop how far it is; shows nothing by itself."""

    def __exit__(self, *raised: object) -> None:
        """End the display."""

    def start(self, phases: Sequence[Epochs], done: int) -> None:
        """Take note of the phases, of which `done` epochs were finished by an earlier run."""

    def step(self, phase: Epochs, epoch: int, step: int, steps: int) -> None:
        """Take note of one step."""

    def end_epoch(self, record: Mapping[str, Any]) -> None:
        """Take note of the record of one epoch."""


def _lines(*, only_shown: bool = False) -> RichProgress:
    """Return lines on standard error; `only_shown`, none where no terminal shows them move."""
    console = Console(stderr=True)
    return RichProgress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[losses]}"),
        console=console,
        disable=only_shown and not console.is_terminal,
    )


class FitBar(AbstractContextManager["FitBar"]):
    """A line for the whole fit on standard error, and below it one for the training under way."""

    def __init__(self) -> None:
        self._lines = _lines(only_shown=True)
        self._whole = self._lines.add_task("fit", total=None, losses="")

    def __enter__(self) -> FitBar:
        self._lines.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._lines.stop()

    def part(self, doing: str, done: int, parts: int) -> None:
        """Show which part of the fit begins, and how much time the parts left may take."""
        self._lines.update(self._whole, description=doing, completed=done, total=parts)

    def training(self, title: str) -> ProgressBar:
        return ProgressBar(title, self._lines)


class ProgressBar(Progress):
    """One line on standard error: phase, epoch, bar, losses, time left."""

    def __init__(self, title: str = "training", lines: RichProgress | None = None) -> None:
        self.title = title
        self._is_part = lines is not None
        self._bar = lines or _lines()

    def __enter__(self) -> ProgressBar:
        if not self._is_part:
            self._bar.start()
        return self

    def __exit__(self, *raised: object) -> None:
        if self._is_part:
            self._bar.remove_task(self._task)
        else:
            self._bar.stop()

    def start(self, phases: Sequence[Epochs], done: int) -> None:
        epochs = sum(phase.epochs for phase in phases)
        self._done = done
        self._task = self._bar.add_task(self.title, total=epochs, completed=done, losses="")

    def step(self, phase: Epochs, epoch: int, step: int, steps: int) -> None:
        self._bar.update(
            self._task,
            completed=self._done + (step + 1) / steps,
            description=f"{self.title}: {phase.name} {epoch + 1}/{phase.epochs}",
        )

    def end_epoch(self, record: Mapping[str, Any]) -> None:
        self._done += 1
        shown = {
            name: value
            for name, value in record.items()
            if isinstance(value, float) and name not in NO_LOSSES
        }
        losses = "  ".join(f"{name} {value:.3g}" for name, value in shown.items())
        self._bar.update(self._task, completed=self._done, losses=losses)
