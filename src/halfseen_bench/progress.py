"""How far a sweep is and how long it will still take, on a terminal and in a log file."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

__all__ = ["SweepProgress", "duration", "sweep_progress"]

_EVER = 1e9
"""Seconds over which speed is averaged: single runs take minutes, the whole sweep counts."""


class SweepProgress(Protocol):
    """Is told of every task that ended."""

    def advance(self, what: str) -> None:
        """Count one more."""


@contextmanager
def sweep_progress(title: str, total: int, done: int, quiet: bool) -> Iterator[SweepProgress]:
    """Show a bar on a terminal, or one line per finished task where there is none."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield _Lines(title, total, done, None if quiet else console)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, speed_estimate_period=_EVER) as bar:
        task = bar.add_task(title, total=total, completed=done)

        class Bar:
            def advance(self, what: str) -> None:
                bar.advance(task)

        yield Bar()


class _Lines:
    """Prints ``[3/40] what, 5 min left``."""

    def __init__(self, title: str, total: int, done: int, console: Console | None) -> None:
        self.total, self.done, self.console = total, done, console
        self.first, self.started = done, time.monotonic()
        if console is not None:
            console.print(f"{title}: {total - done} of {total} to do", highlight=False)

    def advance(self, what: str) -> None:
        """Count one more and say what is left."""
        self.done += 1
        if self.console is None:
            return
        each = (time.monotonic() - self.started) / (self.done - self.first)
        left = duration(each * (self.total - self.done))
        line = f"[{self.done}/{self.total}] {what}, {left} left"
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)


def duration(seconds: float) -> str:
    """Return a length of time as people say it.

    Examples
    --------
    >>> duration(42), duration(150), duration(3 * 3600 + 60)
    ('42 s', '2 min', '3.0 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
