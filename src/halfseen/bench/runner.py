"""Run many independent tasks over the cores, keep each result at once, never repeat one."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from halfseen.errors import InputError
from halfseen.files import write_text

__all__ = ["Task", "run_tasks"]

Result = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """One unit of work: a key that identifies it, and the arguments of the worker."""

    key: str
    arguments: Mapping[str, Hashable]


def run_tasks(
    tasks: Sequence[Task],
    worker: Callable[..., Result],
    log: Path,
    *,
    jobs: int | None = None,
    title: str = "running",
    quiet: bool = False,
) -> tuple[list[Result], list[str]]:
    """Run what the log does not hold yet; return all results and the sentences of failed tasks.

    Parameters
    ----------
    tasks, worker
        ``worker(**task.arguments)`` must return plain data, and be importable by name.
    log
        One line of JSON per finished task. A stopped run continues from it.
    jobs
        Processes, each on one thread; by default one per core.
    title, quiet
        What the progress bar says, and whether to show none.
    """
    finished = _read_log(log)
    waiting = [task for task in tasks if task.key not in finished]
    failures: list[str] = []
    parallel = Parallel(jobs or os.cpu_count() or 1, return_as="generator_unordered")
    with _progress_bar(quiet) as bar, log.open("a", encoding="utf-8") as file:
        line = bar.add_task(title, total=len(tasks), completed=len(tasks) - len(waiting))
        for key, result, failure in parallel(delayed(_attempt)(worker, task) for task in waiting):
            if failure is None:
                finished[key] = result
                file.write(json.dumps({"key": key, "result": result}) + "\n")
                file.flush()
            else:
                failures.append(f"{key}: {failure}")
            bar.advance(line)
    return [finished[task.key] for task in tasks if task.key in finished], failures


def _attempt(
    worker: Callable[..., Result], task: Task
) -> tuple[str, Result, None] | tuple[str, None, str]:
    """Run one task on one thread; a failure is reported and does not end the others."""
    torch.set_num_threads(1)
    try:
        return task.key, worker(**task.arguments), None
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return task.key, None, f"{error} ({type(error).__name__}, {place.name})"


def _read_log(log: Path) -> dict[str, Result]:
    """Read finished tasks; a line cut off by a kill is dropped, and its task runs again."""
    if not log.exists():
        return {}
    finished: dict[str, Result] = {}
    whole = []
    lines = log.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
            finished[entry["key"]] = entry["result"]
            whole.append(line)
        except (ValueError, KeyError, TypeError):
            if number < len(lines):
                raise InputError(
                    f"Line {number} of {log} is not a finished run; delete the file to start anew."
                ) from None
    if len(whole) < len(lines):
        write_text(log, "".join(f"{line}\n" for line in whole))
    return finished


def _progress_bar(quiet: bool) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=quiet,
    )
