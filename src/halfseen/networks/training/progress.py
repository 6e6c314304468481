"""What a person sees while a model trains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from halfseen.networks.terms import loss_words
from halfseen.networks.training.phases import Phase

__all__ = ["Progress", "ProgressBar"]


class Progress(AbstractContextManager["Progress"]):
    """Told by the loop how far it is; shows nothing by itself."""

    def __exit__(self, *raised: object) -> None:
        """End the display."""

    def start(self, phases: Sequence[Phase], done: int) -> None:
        """Take note of the phases, of which `done` epochs were finished by an earlier run."""

    def step(self, phase: Phase, epoch: int, step: int, steps: int) -> None:
        """Take note of one step."""

    def end_epoch(self, record: Mapping[str, Any]) -> None:
        """Take note of the record of one epoch."""


class ProgressBar(Progress):
    """One line on standard error: phase, epoch, bar, losses, time left."""

    def __init__(self, title: str = "training") -> None:
        self.title = title
        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[losses]}"),
            console=Console(stderr=True),
        )

    def __enter__(self) -> ProgressBar:
        self._bar.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._bar.stop()

    def start(self, phases: Sequence[Phase], done: int) -> None:
        """Open the bar over all epochs."""
        epochs = sum(phase.epochs for phase in phases)
        self._done = done
        self._task = self._bar.add_task(self.title, total=epochs, completed=done, losses="")

    def step(self, phase: Phase, epoch: int, step: int, steps: int) -> None:
        """Move the bar within an epoch."""
        self._bar.update(
            self._task,
            completed=self._done + (step + 1) / steps,
            description=f"{self.title}: {phase.name} {epoch + 1}/{phase.epochs}",
        )

    def end_epoch(self, record: Mapping[str, Any]) -> None:
        """Show the epoch's losses."""
        self._done += 1
        losses = "  ".join(f"{name} {record[name]:.3g}" for name in loss_words() if name in record)
        self._bar.update(self._task, completed=self._done, losses=losses)
