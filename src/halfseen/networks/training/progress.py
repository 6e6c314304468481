"""What a person sees while a model trains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from halfseen.networks.terms import loss_words
from halfseen.networks.training.phases import Phase

__all__ = ["NoProgress", "Progress", "ProgressBar"]


class Progress(Protocol):
    """Told by the loop how far it is."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def start(self, phases: Sequence[Phase], done: int) -> None:
        """Announce the phases, of which `done` epochs were finished by an earlier run."""

    def step(self, phase: Phase, epoch: int, step: int, steps: int) -> None:
        """Announce one step."""

    def end_epoch(self, record: Mapping[str, Any]) -> None:
        """Announce the record of one epoch."""


class NoProgress:
    """Shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    def start(self, phases: Sequence[Phase], done: int) -> None:
        """Do nothing."""

    def step(self, phase: Phase, epoch: int, step: int, steps: int) -> None:
        """Do nothing."""

    def end_epoch(self, record: Mapping[str, Any]) -> None:
        """Do nothing."""


class ProgressBar(NoProgress):
    """One line on standard error: phase, epoch, bar, losses, time left."""

    def __init__(self, title: str = "training") -> None:
        self.title = title
        self._losses = ""
        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[losses]}"),
            console=Console(stderr=True),
        )

    def __enter__(self) -> Self:
        self._bar.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.__exit__(kind, error, trace)

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
