"""Work on several cores: calls at once, and processes that train one model together.

Of several processes each sees its part of every batch.

``torchrun`` starts the processes, and :func:`joined` lets them find each other. From then on
every rank draws the same batches, takes its own rows of each, and adds its gradient to those of
the others (DistributedDataParallel), so that all hold the same weights after every step.

A step of several ranks is the step of one with the whole batch, up to rounding, wherever a loss
is a mean over rows: classification, critics, reconstruction ("squared"). Otherwise it is the
mean, by rows, of what each rank's part of the batch says by itself: of batch normalisation, the
transport plan, refinement, reconstruction="norm", dropout and augmentation (docs/scale.md).
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from halfseen.errors import HalfseenError, OptionError

if TYPE_CHECKING:
    from torch import Tensor, nn

Value = TypeVar("Value")

FEWEST_ROWS = 2
"""Rows of a batch that each rank must get: one alone has no spread and nothing to match."""
SMALL = 200_000
"""Cells of a table up to which threads would wait for each other longer than they work."""
LONGEST_WAIT = timedelta(days=1)
"""The first rank reads large tables while the others wait; torchrun sees to those that died."""


_IDLE_REMARKS = (
    "find_unused_parameters=True was specified",  # some phases have none
    "`broadcast_buffers` is deprecated",  # its successor is not in older versions
)


@dataclass(frozen=True)
class Ranks:
    """A process and how many there are; what they say to each other."""

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def check(self, batch_size: int) -> None:
        """Refuse a batch that is too small to be shared."""
        if batch_size < FEWEST_ROWS * self.size and self.size > 1:
            raise OptionError(
                f"batch_size={batch_size} is too small for {self.size} processes, which need "
                f"{FEWEST_ROWS} rows each; start at most {batch_size // FEWEST_ROWS} of them, or "
                "set batch_size and warmup_batch_size higher."
            )

    def rows(self, batch_size: int) -> slice:
        """Return this rank's part of a batch; parts differ by one row at most.

        Examples
        --------
        >>> [Ranks(rank, 3).rows(16) for rank in range(3)]
        [slice(0, 5, None), slice(5, 10, None), slice(10, 16, None)]
        """
        return slice(batch_size * self.rank // self.size, batch_size * (self.rank + 1) // self.size)

    def weight(self, batch_size: int) -> float:
        """Return what this rank's mean over rows counts in the plain mean over ranks."""
        own = self.rows(batch_size)
        return float((own.stop - own.start) * self.size / batch_size)

    def wrapped(self, module: nn.Module) -> nn.Module:
        """Return the module as all ranks train it, starting from the first one's tensors."""
        if self.size == 1:
            return module
        from torch.nn.parallel import DistributedDataParallel  # takes its time, and few need it

        for remark in _IDLE_REMARKS:
            warnings.filterwarnings("ignore", message=remark)
        # A warm-up has no gradient for r and the critics.
        return DistributedDataParallel(module, broadcast_buffers=False, find_unused_parameters=True)

    def mean(self, values: Tensor) -> Tensor:
        if self.size == 1:
            return values
        from torch import distributed

        total = values.detach().clone()
        distributed.all_reduce(total)
        return total / self.size

    def average_statistics(self, module: nn.Module) -> None:
        """Let all ranks hold the mean of their running statistics."""
        for buffer in module.buffers():
            if buffer.is_floating_point():
                buffer.copy_(self.mean(buffer))

    def from_first(self, make: Callable[[], Value]) -> Value:
        """Return what the first rank makes; the others wait for it."""
        if self.size == 1:
            return make()
        from torch import distributed

        held: list[Any] = [None]
        before = _IS_APART.set(True)  # inside, nobody else can be spoken to
        try:
            held = [make() if self.is_first else None]
        finally:
            _IS_APART.reset(before)
        distributed.broadcast_object_list(held, src=0)
        value: Value = held[0]
        return value


ALONE = Ranks()
_IS_APART = ContextVar("_IS_APART", default=False)


def present_ranks() -> Ranks:
    """Return the processes that have joined; one alone where none have, or while they wait."""
    if _IS_APART.get() or "torch" not in sys.modules:
        return ALONE
    from torch import distributed

    if distributed.is_available() and distributed.is_initialized():
        return Ranks(distributed.get_rank(), distributed.get_world_size())
    return ALONE


@contextmanager
def joined() -> Iterator[Ranks]:
    """Join the processes that ``torchrun`` started, for a while; alone if there are none.

    Inside, every ``fit`` of the library is one fit by all processes: each must make the same
    calls with the same data. Gloo speaks for tensors in main memory, NCCL for those on GPUs.

    Examples
    --------
    >>> with joined() as ranks:  # torchrun --nproc-per-node 2 script.py
    ...     ranks.is_first
    True
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ:  # which torchrun sets
        yield ALONE
        return
    import torch
    from torch import distributed

    backend = "gloo"
    if torch.cuda.is_available():
        backend = "cpu:gloo,cuda:nccl"
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    distributed.init_process_group(backend, timeout=LONGEST_WAIT)
    try:
        yield present_ranks()
    except RuntimeError as error:
        # Gloo raises a plain RuntimeError where a process cannot be reached.
        if not (isinstance(error, distributed.DistError) or "gloo" in str(error)):
            raise
        raise HalfseenError(
            "Another process of this job has ended, so this one stops. A fit that keeps "
            "checkpoints goes on from its last finished epoch when it is started again."
        ) from error
    finally:
        distributed.destroy_process_group()


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

    Examples
    --------
    >>> run_parallel([lambda: 1 + 1, lambda: 2 + 2])
    [2, 4]
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
