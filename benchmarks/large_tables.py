"""Speed and memory of fit and predict on tables larger than memory.

``python benchmarks/large_tables.py --rows 1000000`` simulates that many rows, half of them source
and half target (29 columns, 12 of them missing on the target), writes Parquet to a temporary
folder, runs ``halfseen fit`` and ``halfseen predict`` on the target as a user would, and prints for
each command its wall-clock and processor time, rows a second of both and peak resident memory.
``--networks`` adds networks, for one epoch. Every command is a process of its own, so that the
peaks do not mix. On a shared machine it is the processor's seconds that can be compared from one
size to another.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from halfseen.fitting.prepared_rows import HELD_OUT, MOST_HELD_OUT

NETWORKS = """
[options.training]
warmup_epochs = 0
joint_epochs = 1
batch_size = {batch_size}
"""


def run(*arguments: object) -> tuple[float, float, float]:
    """Run the command; return its seconds, those of the processor, and its peak MiB."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "halfseen", *map(str, arguments)], stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"halfseen {arguments[0]} ended with {process.returncode}.")
    busy = usage.ru_utime + usage.ru_stime
    return time.perf_counter() - started, busy, usage.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of both tables together")
    parser.add_argument("--networks", action="store_true", help="train networks too, one epoch")
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--memory-mib", type=int, help="stream beyond this; the default if absent")
    parser.add_argument("--folder", type=Path, help="keep the tables here and use them again")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        half = given.rows // 2
        tables = folder / f"rows-{half}"
        print("command   rows        seconds   rows/s     busy s    rows/busy s  peak MiB")

        def report(name: str, rows: int, seconds: float, busy: float, peak: float) -> None:
            print(
                f"{name:<9} {rows:<11,} {seconds:<9.1f} {rows / seconds:<10,.0f} "
                f"{busy:<9.1f} {rows / busy:<12,.0f} {peak:.0f}",
                flush=True,
            )

        if not (tables / "card.json").is_file():
            settings = ["--set", f"rows={half - 1}", "--set", "test_rows=1"]
            pair = "retargeting:prospecting"
            report(
                "simulate",
                2 * half,
                *run("data", "export", "ads-sim", pair, "-o", tables, *settings),
            )
        size = sum((tables / f"{name}.parquet").stat().st_size for name in ("source", "target"))
        config, model = folder / "fit.toml", folder / "model"
        memory = "" if given.memory_mib is None else f"memory_mib = {given.memory_mib}\n"
        networks = NETWORKS.format(batch_size=given.batch_size) if given.networks else ""
        config.write_text(f'label = "label"\n{memory}{networks}')
        source, target = tables / "source.parquet", tables / "target.parquet"
        fitted = run("fit", source, target, "--config", config, "-o", model, "--force")
        report("fit", 2 * half, *fitted)
        scored = run("predict", model, target, "-o", folder / "scores.parquet", "--force")
        report("predict", half, *scored)
        if given.networks:
            trained = half - min(round(HELD_OUT * half), MOST_HELD_OUT)
            members = json.loads((model / "model.json").read_text())["members"]
            epoch = next(m for m in members if m["kind"] == "networks")["history"][0]["seconds"]
            print(
                f"The training epoch itself: {trained:,} source rows and as many of the target, "
                f"{trained / epoch:,.0f} source rows a second."
            )
        print(
            f"Files: {size / 2**20:.0f} MiB; prepared in memory: {2 * half * 29 * 4 / 2**20:.0f}."
        )


if __name__ == "__main__":
    main()
