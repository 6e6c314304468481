"""Work on several cores: calls at once, each on one thread."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from typing import TypeVar

Value = TypeVar("Value")

SMALL = 200_000
"""Cells of a table up to which threads would wait for each other longer than they work."""
_CORES: ContextVar[int | None] = ContextVar("_CORES", default=None)
_THREADS: ContextVar[int | None] = ContextVar("_THREADS", default=None)


def threads() -> int:
    return _THREADS.get() or at_once_workers()


def at_once_workers() -> int:
    """Return how many calls may run at once: as many as OMP_NUM_THREADS, the machine and Torch."""
    within = _CORES.get()
    if within is not None:
        return within
    told = os.environ.get("OMP_NUM_THREADS", "")
    if told.isdecimal() and int(told) > 0:
        return int(told)
    torch = sys.modules.get("torch")
    if torch is not None and _THREADS.get() is None:
        return int(torch.get_num_threads())
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_parallel(calls: Sequence[Callable[[], Value]]) -> list[Value]:
    """Return what each call returns; as many run at a time as there are cores.

    Each keeps to one thread, so that nothing depends on how many ran at a time. Calls into
    LightGBM, BLAS and Arrow leave Python to the others meanwhile.
    """
    workers = min(at_once_workers(), len(calls))
    with one_thread():
        if workers < 2:
            return [call() for call in calls]
        before = _CORES.set(1)
        pool = ThreadPoolExecutor(workers)
        try:
            begun = [pool.submit(copy_context().run, call) for call in calls]
            return [one.result() for one in begun]
        finally:
            pool.shutdown(cancel_futures=True)
            _CORES.reset(before)


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep Torch, LightGBM and BLAS to one thread for a while."""
    torch = sys.modules.get("torch")
    before = 1 if torch is None else torch.get_num_threads()
    if threads() == before == 1:
        yield
        return
    from threadpoolctl import threadpool_limits

    held = _THREADS.set(1)
    try:
        with threadpool_limits(1):
            if before > 1:
                torch.set_num_threads(1)  # type: ignore[union-attr]
            yield
    finally:
        if before > 1:
            torch.set_num_threads(before)  # type: ignore[union-attr]
        _THREADS.reset(held)


@contextmanager
def one_thread_if_small(cells: int) -> Iterator[None]:
    """Keep to one thread for a while, where there is little to share.

    Threads that wait for each other spin, and where others use the machine too they wait long.
    """
    with one_thread() if cells <= SMALL else nullcontext():
        yield
