"""How fast a step is, as a ratio to a straightforward implementation of the same step.

``make bench``, or ``python benchmarks/speed.py --output FILE.json``. Each case has a fresh process,
in which both implementations run alternately, so that whatever else the machine does falls on
both; every alternation gives one ratio, and the table shows their median with the quartiles.
Where training is bound by matrix products, the products of one of our steps (convolutions as the
products they amount to) are replayed alone in the same alternation: their time is the limit, and
its share of the step's time is shown. The results go to a JSON file, and as Markdown beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from speed_cases import CASES

from halfseen.outputs import atomic_write

Measured = dict[str, Any]
MEMORY_CASES = (
    "digits, adversarial imputation",
    "digits, transport imputation",
    "digits, prediction",
)


CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


@dataclass(frozen=True)
class Way:
    """How to measure."""

    alternations: int
    threads: int
    clock: str

    def seconds(self, work: Callable[[], Any]) -> float:
        """Return how long some work takes."""
        clock = CLOCKS[self.clock]
        started = clock()
        work()
        return clock() - started


def in_fresh_process(function: Callable[..., Any], way: Way, *arguments: Any) -> Any:
    """Call a function of this file where no other case has left its mark on the memory."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_with_threads, way, function, *arguments).result()


def _with_threads(way: Way, function: Callable[..., Any], *arguments: Any) -> Any:
    torch.set_num_threads(way.threads)
    torch.manual_seed(0)
    return function(way, *arguments)


def spread(values: Iterable[float]) -> list[float]:
    """Return lower quartile, median and upper quartile."""
    return [float(q) for q in np.percentile(list(values), [25, 50, 75])]


def measure(way: Way, name: str) -> Measured:
    case = CASES[name]()
    for work in (case.plainly, case.ours):
        work()
    times = np.array(
        [[way.seconds(case.plainly), way.seconds(case.ours)] for _ in range(way.alternations)]
    )
    plainly, ours = times.T
    return {
        "ratio": spread(plainly / ours),
        "rows_per_second": float(case.rows / np.median(ours)),
        "plain_rows_per_second": float(case.rows / np.median(plainly)),
    }


def peak(way: Way, name: str, side: str) -> float:
    """Return the MiB by which some steps raise the resident memory at most (on Linux)."""
    case = CASES[name]()
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of building the case
    before = resident("VmRSS")
    for _ in range(3):
        getattr(case, side)()
    return resident("VmHWM") - before


def resident(which: str) -> float:
    status = Path("/proc/self/status").read_text().splitlines()
    return float(next(line.split()[1] for line in status if line.startswith(which))) / 1024


def ratio_line(name: str, found: Measured) -> str:
    low, middle, high = found["ratio"]
    return (
        f"| {name} | {found['plain_rows_per_second']:,.0f} | {found['rows_per_second']:,.0f} "
        f"| **{middle:.2f}** ({low:.2f} to {high:.2f}) |"
    )


def memory_line(found: Measured) -> str:
    return f"| {found['case']} | {found['plainly']:.0f} | {found['ours']:.0f} |"


def markdown(results: Measured) -> str:
    lines = [
        f"Threads: {results['threads']}, clock: {results['clock']}, {results['machine']}, "
        f"PyTorch {results['torch']}, {results['alternations']} alternations, "
        f"{results['load']:.1f} processes waiting on average. Rows are rows of the source.",
        "",
        "| case | plain rows/s | our rows/s | ratio (quartiles) |",
        "|---|---|---|---|",
        *(ratio_line(name, found) for name, found in results["cases"].items()),
    ]
    if results["memory"]:
        lines += ["", "| case | plain peak MiB | our peak MiB |", "|---|---|---|"]
        lines += map(memory_line, results["memory"])
    return "\n".join(lines) + "\n"


def processor() -> str:
    """Return the processor's name, as Linux knows it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.split(":")[1].strip() for line in lines if line.startswith("model name")), "?"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help="parts of their names; all if absent")
    parser.add_argument("--alternations", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--clock", choices=CLOCKS, default="wall", help="cpu, with one thread, for a busy machine"
    )
    parser.add_argument("--output", type=Path, help="a .json file; the tables go beside it")
    given = parser.parse_args()
    way = Way(given.alternations, given.threads, given.clock)
    results: Measured = {
        **asdict(way),
        "machine": processor(),
        "torch": torch.__version__,
        "load": os.getloadavg()[0],
        "cases": {},
        "memory": [],
    }

    def asked(name: str) -> bool:
        return not given.cases or any(part in name for part in given.cases)

    for name in filter(asked, CASES):
        results["cases"][name] = in_fresh_process(measure, way, name)
        print(ratio_line(name, results["cases"][name]), flush=True)
    for name in MEMORY_CASES if asked("memory") else ():
        peaks = {side: in_fresh_process(peak, way, name, side) for side in ("plainly", "ours")}
        results["memory"].append({"case": name, **peaks})
        print(memory_line(results["memory"][-1]), flush=True)
    if given.output is not None:
        with atomic_write(given.output) as partial:
            partial.write_text(json.dumps(results, indent=1) + "\n")
        with atomic_write(given.output.with_suffix(".md")) as partial:
            partial.write_text(markdown(results))


if __name__ == "__main__":
    main()
