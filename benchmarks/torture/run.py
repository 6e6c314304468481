"""The run: every class for its share of the time, and one table of how its cases ended."""

from __future__ import annotations

import contextlib
import random
import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torture import clients, damage, faults, kills, power, tables
from torture.kit import Case, Kit
from torture.traced import missing_strace

LARGEST_GROWTH = 2**20
"""KiB that a process may take beyond the beginning of its case: 1 GiB."""


@dataclass
class Tally:
    """How the cases of one class ended."""

    cases: int = 0
    failed: int = 0
    first_failure: str = ""
    skipped: str = ""


def torture(
    seed: int,
    seconds: float,
    failures: Path,
    most: int | None = None,
    only: str = "",
    show: Callable[[str], Any] = lambda text: None,
) -> dict[str, Tally]:
    """Run every class for its share of the time, or for at most so many cases."""
    # In memory, where there is a place: kills come at more moments if nothing waits for a disk.
    place = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=place) as root, contextlib.ExitStack() as stack:
        kit = Kit(Path(root))
        untraced = missing_strace()
        # Processes first: the server's threads should not be forked.
        groups = [kills.classes(kit), faults.classes(kit), power.classes(kit)]
        groups += [damage.classes(kit), tables.classes(kit)]
        names = [name for group in [*groups, clients.NAMES] for name in group if only in name]
        found: dict[str, Tally] = {}
        for place_of, group in enumerate([*groups, None]):
            if group is None:
                group = stack.enter_context(clients.classes(kit))
            for name, case in group.items():
                if name not in names:
                    continue
                if untraced and place_of in (1, 2):
                    found[name] = Tally(skipped=untraced)
                else:
                    share = seconds / len(names)
                    found[name] = run_class(kit, name, case, seed, share, most, failures)
                show(f"{name}: {found[name]}")
    return found


def run_class(
    kit: Any, name: str, case: Case, seed: int, seconds: float, most: int | None, failures: Path
) -> Tally:
    """Run one class; keep the inputs of what fails."""
    tally, end = Tally(), time.monotonic() + seconds
    while time.monotonic() < end and (most is None or tally.cases < most):
        memory = _Memory()
        kit.input = b""
        try:
            case(random.Random(f"{seed} {name} {tally.cases}"))
            if memory.growth() > LARGEST_GROWTH:
                raise AssertionError("more than 1 GiB was taken")
        except Exception as error:
            tally.failed += 1
            tally.first_failure = tally.first_failure or f"case {tally.cases}: {error!r}"[:300]
            failures.mkdir(parents=True, exist_ok=True)
            (failures / f"{seed} {name} {tally.cases}").write_bytes(kit.input)
        tally.cases += 1
    return tally


class _Memory:
    """The memory that one case takes beyond its beginning, here or in a child, in KiB.

    The greatest use of this process is forgotten first: a case that once took much would hide
    all that come after it. Where the system cannot forget it, that weaker measure remains.
    """

    def __init__(self) -> None:
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
        self._own, self._children = _largest(), _largest_child()

    def growth(self) -> int:
        return max(_largest() - self._own, _largest_child() - max(self._children, self._own))


def _largest() -> int:
    status = Path("/proc/self/status")
    for line in status.read_text().splitlines() if status.is_file() else ():
        if line.startswith("VmHWM"):
            return int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _largest_child() -> int:
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss


def table_of(found: dict[str, Tally]) -> str:
    """Return the outcome as a Markdown table."""
    lines = ["| class | cases | survived | failed |", "| --- | ---: | ---: | ---: |"]
    total = Tally(sum(t.cases for t in found.values()), sum(t.failed for t in found.values()))
    for name, tally in {**found, "all": total}.items():
        if tally.skipped:
            lines.append(f"| {name} | skipped: {tally.skipped} | | |")
            continue
        lines.append(
            f"| {name} | {tally.cases:,} | {tally.cases - tally.failed:,} | {tally.failed:,} |"
        )
    return "\n".join(lines)
