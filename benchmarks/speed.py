"""How fast a step is, as a ratio to a straightforward implementation of the same step.

``make bench``, or ``python benchmarks/speed.py --output FILE.json``. Both implementations run in
one process, alternately, so that whatever else the machine does falls on both; every alternation
gives one ratio, and the table shows their median with the quartiles. Where training is bound by
matrix products, the products of one of our steps (convolutions as the products they amount to) are
replayed alone in the same alternation: their time is the limit, and its share of the step's time
is shown. The results go to a JSON file, and as Markdown tables beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matrix_products import products_of, replay
from speed_cases import CASES, GROWTH, Case

from halfseen.files import written_whole

Measured = dict[str, Any]
MEMORY_CASES = (
    "digits, adversarial imputation",
    "digits, transport imputation",
    "digits, prediction",
)


CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def seconds(work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    started = clock()
    work()
    return clock() - started


def spread(values: Iterable[float]) -> list[float]:
    """Return lower quartile, median and upper quartile."""
    return [float(q) for q in np.percentile(list(values), [25, 50, 75])]


def measure(case: Case, alternations: int, clock: Callable[[], float]) -> Measured:
    for work in (case.plainly, case.ours):
        work()
    products = products_of(case.ours) if case.bound_by_products else []
    limit = replay(products)
    limit()
    times = np.array(
        [
            [seconds(work, clock) for work in (case.plainly, case.ours, limit)]
            for _ in range(alternations)
        ]
    )
    plainly, ours, alone = times.T
    result: Measured = {
        "ratio": spread(plainly / ours),
        "rows_per_second": float(case.rows / np.median(ours)),
        "plain_rows_per_second": float(case.rows / np.median(plainly)),
    }
    if products:
        result["share_of_products"] = spread(alone / ours)
    return result


def measure_growth(alternations: int, clock: Callable[[], float]) -> list[Measured]:
    found = []
    for what, (sizes, build) in GROWTH.items():
        for size in sizes:
            found.append({"grows": what, "size": size, **measure(build(size), alternations, clock)})
            print(growth_line(found[-1]), flush=True)
    return found


def measure_memory(threads: int) -> list[Measured]:
    """Run each side of some cases in a process of its own, and compare the peaks."""
    found = []
    for name in MEMORY_CASES:
        peaks = {}
        for side in ("plainly", "ours"):
            child = [sys.executable, __file__, "--peak", name, side, "--threads", str(threads)]
            peaks[side] = float(subprocess.run(child, check=True, capture_output=True).stdout)
        found.append({"case": name, **peaks})
        print(memory_line(found[-1]), flush=True)
    return found


def print_peak(name: str, side: str) -> None:
    """Print the MiB by which some steps raise the peak over the built case."""
    case = CASES[name]()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(3):
        getattr(case, side)()
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)


def ratio_line(name: str, found: Measured) -> str:
    low, middle, high = found["ratio"]
    share = found.get("share_of_products")
    shown = "" if share is None else f"{share[1]:.0%} ({share[0]:.0%} to {share[2]:.0%})"
    return (
        f"| {name} | {found['plain_rows_per_second']:,.0f} | {found['rows_per_second']:,.0f} "
        f"| **{middle:.2f}** ({low:.2f} to {high:.2f}) | {shown} |"
    )


def growth_line(found: Measured) -> str:
    low, middle, high = found["ratio"]
    return (
        f"| {found['grows']} | {found['size']:,} | {found['rows_per_second']:,.0f} "
        f"| {middle:.2f} ({low:.2f} to {high:.2f}) | {found['share_of_products'][1]:.0%} |"
    )


def memory_line(found: Measured) -> str:
    return f"| {found['case']} | {found['plainly']:.0f} | {found['ours']:.0f} |"


def markdown(results: Measured) -> str:
    lines = [
        f"Threads: {results['threads']}, clock: {results['clock']}, {results['machine']}, "
        f"PyTorch {results['torch']}, {results['alternations']} alternations. A square product of "
        f"1024 ran at {results['square_product_gflops']:.0f} GFLOP/s, with "
        f"{results['load']:.1f} processes waiting on average. Rows are rows of the source.",
        "",
        "| case | plain rows/s | our rows/s | ratio (quartiles) | share of the product limit |",
        "|---|---|---|---|---|",
        *(ratio_line(name, found) for name, found in results["cases"].items()),
    ]
    if results["growth"]:
        lines += ["", "| grows | size | our rows/s | ratio (quartiles) | share of the limit |"]
        lines += ["|---|---|---|---|---|", *map(growth_line, results["growth"])]
    if results["memory"]:
        lines += ["", "| case | plain peak MiB | our peak MiB |", "|---|---|---|"]
        lines += map(memory_line, results["memory"])
    return "\n".join(lines) + "\n"


def square_product_gflops(clock: Callable[[], float], size: int = 1024) -> float:
    a = torch.randn(size, size)
    times = [seconds(lambda: torch.mm(a, a), clock) for _ in range(9)]
    return float(2e-9 * size**3 / np.median(times))


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
    parser.add_argument("cases", nargs="*", help="parts of the names of cases; all if absent")
    parser.add_argument("--alternations", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--clock", choices=CLOCKS, default="wall", help="cpu, with one thread, for a busy machine"
    )
    parser.add_argument("--output", type=Path, help="a .json file; the tables go beside it")
    parser.add_argument("--peak", nargs=2, metavar=("CASE", "SIDE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    clock = CLOCKS[given.clock]
    torch.set_num_threads(given.threads)
    torch.manual_seed(0)
    if given.peak:
        print_peak(*given.peak)
        return
    results: Measured = {
        "threads": given.threads,
        "clock": given.clock,
        "machine": processor(),
        "torch": torch.__version__,
        "square_product_gflops": square_product_gflops(clock),
        "load": os.getloadavg()[0],
        "alternations": given.alternations,
        "cases": {},
        "growth": [],
        "memory": [],
    }
    for name, build in CASES.items():
        if not given.cases or any(part in name for part in given.cases):
            results["cases"][name] = measure(build(), given.alternations, clock)
            print(ratio_line(name, results["cases"][name]), flush=True)
    if not given.cases or "growth" in given.cases:
        results["growth"] = measure_growth(max(given.alternations // 3, 3), clock)
    if not given.cases or "memory" in given.cases:
        results["memory"] = measure_memory(given.threads)
    if given.output is not None:
        with written_whole(given.output) as partial:
            partial.write_text(json.dumps(results, indent=1) + "\n")
        with written_whole(given.output.with_suffix(".md")) as partial:
            partial.write_text(markdown(results))


if __name__ == "__main__":
    main()
