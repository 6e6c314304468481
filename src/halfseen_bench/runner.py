"""Run many independent tasks over the cores, keep each result at once, never repeat one."""

from __future__ import annotations

import gzip
import json
import os
import traceback
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import torch
from joblib import Parallel, delayed, parallel_config

from halfseen.errors import InputError, OptionError
from halfseen_bench.progress import sweep_progress

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows has no such lock
    fcntl = None

__all__ = ["Result", "SweepTask", "packed", "read_log", "run_tasks"]

Result = dict[str, Any]
Outcome = tuple[str, Result | None, str]
"""A task's key with its result, or with None and the sentence that says why there is none."""


@dataclass(frozen=True)
class SweepTask:
    """One unit of work: a key that identifies it, and the arguments of the worker."""

    key: str
    arguments: Mapping[str, Any]


def run_tasks(
    tasks: Sequence[SweepTask],
    worker: Callable[..., Result],
    log: Path,
    *,
    jobs: int | None = None,
    backend: str | None = None,
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
    backend
        joblib's, by name: ``loky`` (processes of this machine, the default), or ``dask`` or
        ``ray`` for a cluster, whose nodes must see the same files.
    title, quiet
        What the progress says, and whether to show none.
    """
    failures: list[str] = []
    jobs = jobs or os.cpu_count() or 1
    with _owned(log) as file:
        finished = read_log(log, repair=True)
        waiting = [task for task in tasks if task.key not in finished]
        done = len(tasks) - len(waiting)
        with sweep_progress(title, len(tasks), done, quiet) as progress:
            for key, result, failure in _results(waiting, worker, jobs, backend):
                if result is not None:
                    finished[key] = result
                    file.write(json.dumps({"key": key, "result": result}) + "\n")
                    file.flush()
                else:
                    failures.append(f"{key}: {failure}")
                progress.advance(key)
    return [finished[task.key] for task in tasks if task.key in finished], failures


def _results(
    tasks: Sequence[SweepTask], worker: Callable[..., Result], jobs: int, backend: str | None
) -> Iterator[Outcome]:
    """Yield outcomes as they come, or round by round from a backend that cannot stream."""
    if not tasks:
        return
    calls = [delayed(_attempt)(worker, task) for task in tasks]
    with _cluster(backend):
        try:
            with parallel_config(backend or "loky", n_jobs=jobs):
                stream = Parallel(return_as="generator_unordered")(calls)
        except (ValueError, ImportError, RuntimeError) as error:
            if "return_as" not in str(error):
                raise OptionError(f"--backend {backend}: {error}") from None
            stream = (
                outcome
                for start in range(0, len(calls), jobs)
                for outcome in Parallel(jobs, backend=backend)(calls[start : start + jobs])
            )
        yield from stream


@contextmanager
def _cluster(backend: str | None) -> Iterator[None]:
    """Join the cluster that DASK_SCHEDULER_ADDRESS or RAY_ADDRESS names, else a local one."""
    if backend == "dask":
        try:
            from distributed import Client
        except ImportError:
            raise OptionError(
                "--backend dask needs Dask: pip install 'dask[distributed]'."
            ) from None
        with Client():
            yield
    elif backend == "ray":
        try:
            from ray.util.joblib import register_ray
        except ImportError:
            raise OptionError("--backend ray needs Ray: pip install ray.") from None
        register_ray()
        yield
    else:
        yield


@contextmanager
def _owned(log: Path) -> Iterator[IO[str]]:
    """Open a log for appending; nobody else may run into it meanwhile."""
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        file = log.open("a", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{log} cannot be written: {error.strerror}.") from None
    with file:
        if fcntl is not None:
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
            kept = gzip.decompress(packed(log).read_bytes())
        except (OSError, EOFError, zlib.error):
            raise InputError(f"{packed(log)} is no packed log; delete it to start anew.") from None
        _read_lines(kept, packed(log), finished)
    if not log.exists():
        return finished
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
        except (ValueError, KeyError, TypeError):
            if number < len(lines):
                raise InputError(
                    f"Line {number} of {log} is not a finished run; delete the file to start anew."
                ) from None
        else:
            whole += len(line)
    return whole
