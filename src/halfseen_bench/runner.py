"""Run many independent tasks over the cores, keep each result at once, never repeat one."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import time
import traceback
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import torch
from joblib import Parallel, delayed
from rich.console import Console

from halfseen.errors import InputError

Result = dict[str, Any]
Outcome = tuple[str, Result | None, str]
"""A task's key with its result, or with None and the sentence that says why there is none."""


class SweepTask(NamedTuple):
    """One unit of work: a key that identifies it, and the arguments of the worker."""

    key: str
    arguments: Mapping[str, Any]


def run_tasks(
    tasks: Sequence[SweepTask],
    worker: Callable[..., Result],
    log: Path,
    *,
    jobs: int | None = None,
    title: str = "running",
    quiet: bool = False,
) -> tuple[list[Result], list[str]]:
    """Run what the log does not hold yet; return all results and the sentences of failed tasks.

    ``worker(**task.arguments)`` must return plain data, and be importable by name. The log is one
    line of JSON per finished task; a stopped run continues from it. `jobs` are processes, each on
    one thread; by default one per core.
    """
    failures: list[str] = []
    with _owned(log) as file:
        finished = read_log(log, repair=True)
        waiting = [task for task in tasks if task.key not in finished]
        told = _progress(title, len(waiting), len(tasks), quiet)
        calls = (delayed(_attempt)(worker, task) for task in waiting)
        outcomes = Parallel(jobs or os.cpu_count() or 1, return_as="generator_unordered")(calls)
        for key, result, failure in outcomes:
            if result is not None:
                finished[key] = result
                file.write(json.dumps({"key": key, "result": result}) + "\n")
                file.flush()
            else:
                failures.append(f"{key}: {failure}")
            told(key)
    return [finished[task.key] for task in tasks if task.key in finished], failures


def _progress(title: str, waiting: int, total: int, quiet: bool) -> Callable[[str], None]:
    """Return what prints a line per finished task: ``[3/40] what, 5 min left``."""
    console = Console(stderr=True, quiet=quiet)
    console.print(f"{title}: {waiting} of {total} to do", highlight=False)
    started, done = time.monotonic(), 0

    def told(what: str) -> None:
        nonlocal done
        done += 1
        seconds = (time.monotonic() - started) / done * (waiting - done)
        left = f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
        place = f"[{total - waiting + done}/{total}]"
        line = f"{place} {what}, {left} left"
        console.print(line, highlight=False, markup=False, soft_wrap=True)

    return told


@contextmanager
def _owned(log: Path) -> Iterator[IO[str]]:
    """Open a log for appending; nobody else may run into it meanwhile."""
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        file = log.open("a", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{log} cannot be written: {error.strerror}.") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(
                f"Another sweep is writing to {log}; wait for it, or give another folder."
            ) from None
        yield file


def _attempt(worker: Callable[..., Result], task: SweepTask) -> Outcome:
    """Run one task on one thread; a failure is reported and does not end the others."""
    torch.set_num_threads(1)
    try:
        return task.key, worker(**task.arguments), ""
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return task.key, None, f"{error} ({type(error).__name__}, {place.name})"


def packed(log: Path) -> Path:
    """Return where ``gzip`` leaves a log that is to be kept."""
    return log.with_name(f"{log.name}.gz")


def read_log(log: Path, *, repair: bool = False) -> dict[str, Result]:
    """Read finished tasks, also those of a log that was packed by ``gzip``.

    A last line that was cut off by a kill is not one of them. With `repair`, which is for the
    writer alone, such a line is taken out of the file.
    """
    finished: dict[str, Result] = {}
    if packed(log).exists():
        try:
            _read_lines(gzip.decompress(packed(log).read_bytes()), packed(log), finished)
        except (OSError, EOFError, zlib.error):
            raise InputError(f"{packed(log)} is no packed log; delete it to start anew.") from None
    if log.exists():
        content = log.read_bytes()
        whole = _read_lines(content, log, finished)
        if repair and whole < len(content):
            os.truncate(log, whole)
        elif repair and content and not content.endswith(b"\n"):
            with log.open("ab") as file:
                file.write(b"\n")
    return finished


def _read_lines(content: bytes, log: Path, finished: dict[str, Result]) -> int:
    """Add a log's results to those at hand; return the bytes of its whole lines."""
    whole = 0
    lines = content.splitlines(keepends=True)
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
            finished[entry["key"]] = entry["result"]
            whole += len(line)
        except (ValueError, KeyError, TypeError):
            if number < len(lines):
                raise InputError(
                    f"Line {number} of {log} is not a finished run; delete the file to start anew."
                ) from None
    return whole
