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

_PACKAGES = ("numpy", "scipy", "scikit-learn", "torch", "POT", "joblib", "skada")


@lru_cache(maxsize=1)
def circumstances() -> dict[str, Any]:
    """Return versions, git state and machine: what is the same for all runs of a process."""
    versions = {"halfseen": halfseen.__version__, "python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    processor = platform.processor()
    with suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(n for n in lines if n.startswith("model name")).partition(": ")[2]
    system = f"{platform.system()} {platform.machine()}"
    machine = {"system": system, "processor": processor, "cores": os.cpu_count()}
    return {"versions": versions, "git": _git_state(), "machine": machine}


@contextmanager
def watched() -> Iterator[dict[str, Any]]:
    """Give a dictionary that holds the block's times and peak memory when it has ended."""
    seen: dict[str, Any] = {"started": datetime.now(UTC).isoformat(timespec="seconds")}
    with suppress(OSError):  # Linux: forget the peak of what this process ran before
        Path("/proc/self/clear_refs").write_text("5")
    wall, processor = time.perf_counter(), time.process_time()
    yield seen
    seen["seconds"] = time.perf_counter() - wall
    seen["cpu_seconds"] = time.process_time() - processor
    unit = 2**20 if sys.platform == "darwin" else 2**10
    seen["peak_memory_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        peak = next(line for line in lines if line.startswith("VmHWM:"))
        seen["peak_memory_mib"] = int(peak.split()[1]) / 1024


def _git_state() -> dict[str, Any] | None:
    """Return the commit that the code stands at and whether it was changed since, if known."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(Path(halfseen.__file__).parent), *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=20, check=True
        ).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "__init__.py")
        changes = git("status", "--porcelain", "--untracked-files=no", "--", ".")
        return {"commit": git("rev-parse", "HEAD"), "changed": bool(changes)}
    except (OSError, subprocess.SubprocessError):
        return None  # installed, or in somebody else's repository
