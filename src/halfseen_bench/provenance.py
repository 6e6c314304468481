"""Where a result comes from: versions, the state of the code, the machine, time and memory."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import halfseen

__all__ = ["circumstances", "git_state", "watched"]

_PACKAGES = ("numpy", "scipy", "scikit-learn", "torch", "POT", "joblib", "skada")
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@lru_cache(maxsize=1)
def circumstances() -> dict[str, Any]:
    """Return versions, git state and machine: what is the same for all runs of a process.

    Examples
    --------
    >>> sorted(circumstances())
    ['git', 'machine', 'versions']
    """
    versions = {"halfseen": halfseen.__version__, "python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    machine = {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
    }
    return {"versions": versions, "git": git_state(), "machine": machine}


def git_state() -> dict[str, Any] | None:
    """Return the commit that the code stands at and whether it was changed since, if known."""
    folder = Path(halfseen.__file__).parent
    tracked = _git(folder, "ls-files", "--error-unmatch", "__init__.py")
    if tracked is None:  # installed, or in somebody else's repository
        return None
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", ".")
    return {"commit": (_git(folder, "rev-parse", "HEAD") or "").strip(), "changed": bool(changes)}


@contextmanager
def watched() -> Iterator[dict[str, Any]]:
    """Give a dictionary that holds the block's times and peak memory when it has ended.

    Examples
    --------
    >>> with watched() as seen:
    ...     _ = sum(range(1000))
    >>> sorted(seen)
    ['cpu_seconds', 'peak_memory_mib', 'seconds', 'started']
    """
    seen: dict[str, Any] = {"started": datetime.now(UTC).isoformat(timespec="seconds")}
    with suppress(OSError):
        _CLEAR.write_text("5")  # Linux: forget the peak of what this process ran before
    wall, processor = time.perf_counter(), time.process_time()
    yield seen
    seen["seconds"] = time.perf_counter() - wall
    seen["cpu_seconds"] = time.process_time() - processor
    seen["peak_memory_mib"] = _peak_memory()


def _peak_memory() -> float:
    with suppress(OSError):
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
