"""A kill, or a fault of the system, at each call by which something is written."""

from __future__ import annotations

import itertools
import random
import signal
from collections import Counter
from collections.abc import Iterator
from functools import partial

from torture.jobs import JOBS, Job
from torture.kit import Case, Kit
from torture.traced import inside, traced

FAULTS = ("ENOSPC", "EIO", "EDQUOT", "EACCES", "EROFS", "EMFILE", "EINTR")
"""What the system may answer; ENOSPC, the full disk, is tried at every call."""


def classes(kit: Kit) -> dict[str, Case]:
    """Return the classes of this file: two for each job."""
    found: dict[str, Case] = {}
    for kind in JOBS:
        job = kind(kit, kit.work / "faults" / kind.__name__)
        points = Points(job)
        found[f"kill at each system call while {job.what}"] = partial(kill_at, job, points)
        found[f"fault at each system call while {job.what}"] = partial(fault_at, job, points)
    return found


class Points:
    """The moments at which a job can be interrupted, again and again from the first to the last."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._kills: Iterator[tuple[str, int]] | None = None
        self._faults: Iterator[tuple[tuple[str, int], str]] | None = None

    def _all(self) -> list[tuple[str, int]]:
        """Run the job once to see its calls in its own folder; each has its number of its kind."""
        self._job.begin()
        code, calls = traced(self._job.write)
        if code != 0 or self._job.found() != 1:
            raise AssertionError(f"undisturbed, it ended with {code}")
        seen: Counter[str] = Counter()
        found = []
        for call in calls:
            seen[call.name] += 1
            if inside(call, self._job.folder):
                found.append((call.name, seen[call.name]))
        return found

    def kill(self) -> tuple[str, int]:
        """Return the next call to be killed at."""
        if self._kills is None:
            self._kills = itertools.cycle(self._all())
        return next(self._kills)

    def fault(self, draw: random.Random) -> tuple[tuple[str, int], str]:
        """Return the next call to fail, and how."""
        if self._faults is None:
            points = [p for p in self._all() if p[0] != "close"]
            rounds = itertools.chain([["ENOSPC"]], itertools.repeat(FAULTS))
            self._faults = ((point, draw.choice(names)) for names in rounds for point in points)
        return next(self._faults)


def kill_at(job: Job, points: Points, draw: random.Random) -> None:
    """Kill a process as it enters a call; what is there then is the former thing or the new.

    Threads share the calls out among them as it happens, so that some are never reached.
    """
    name, number = points.kill()
    job.kit.input = f"SIGKILL at {name} {number}".encode()
    job.begin()
    code, _ = traced(job.write, ["-e", f"inject={name}:signal=SIGKILL:when={number}"])
    if code not in (0, -signal.SIGKILL) or (code == 0 and job.found() != 1):
        raise AssertionError(f"it was to be killed, and ended with {code}")
    check_after(job)


def fault_at(job: Job, points: Points, draw: random.Random) -> None:
    """Let a call fail: a sentence, or all is well; never a traceback, and nothing half-written."""
    (name, number), fault = points.fault(draw)
    job.kit.input = f"{fault} at {name} {number}".encode()
    job.begin()
    code, _ = traced(job.write, ["-e", f"inject={name}:error={fault}:when={number}"])
    if code not in (0, 3):
        raise AssertionError(f"{fault} at {name} {number}: it ended with {code}")
    if job.found() == 0 and code == 0:
        raise AssertionError(f"{fault} at {name} {number}: it said that all is well")
    check_after(job)


def check_after(job: Job) -> None:
    """See that one whole thing is there, and nothing else once the job has been done again."""
    job.found()
    job.write(1)
    if job.found() != 1:
        raise AssertionError("it could not be done again")
    names = sorted(path.name for path in job.folder.iterdir())
    if len(names) != 1:
        raise AssertionError(f"something was left: {names}")
