"""Rows a second of training with one process and with two, each on one thread.

``python benchmarks/two_processes.py`` simulates ads (29 columns, 12 of them missing on the target)
and runs ``halfseen fit`` for some joint epochs, once by itself and once under torchrun with two
processes, alternately. An epoch's time is what the model folder says of it, so starting, reading
and measuring do not count; the first epoch is left out. Efficiency is the speed of two over twice
the speed of one. With ``--memory-mib 0`` the tables are streamed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

CONFIG = """
label = "label"
memory_mib = {memory_mib}
[options]
warmup_epochs = 0
joint_epochs = {epochs}
batch_size = {batch_size}
balanced = false
"""
ALONE = [sys.executable]
TOGETHER = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]


def run(launcher: list[str], *words: object) -> None:
    command = [*launcher, "-m", "halfseen", *map(str, words)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="of each table")
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--alternations", type=int, default=3)
    parser.add_argument("--memory-mib", type=int, default=256)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        tables = folder / "tables"
        settings = ["--set", f"rows={given.rows}", "--set", "test_rows=1"]
        pair = "retargeting:prospecting"
        run(ALONE, "data", "export", "ads-sim", pair, "-o", tables, *settings)
        config = folder / "fit.toml"
        config.write_text(CONFIG.format(**vars(given)))
        files = [tables / f"{name}.parquet" for name in ("source", "target")]
        speeds: dict[str, list[float]] = {"one": [], "two": []}
        for _ in range(given.alternations):
            for name, launcher in (("one", ALONE), ("two", TOGETHER)):
                model = folder / name
                run(launcher, "fit", *files, "--config", config, "-o", model)
                described = json.loads((model / "model.json").read_text())
                trained = described["training_data"]["source"]["rows"]
                held_out = described["metrics"]["held_out_source"]["without_missing_block"]["rows"]
                seconds = [record["seconds"] for record in described["history"][1:]]
                speeds[name].append((trained - held_out) * len(seconds) / sum(seconds))
        load = os.getloadavg()[0]
        one, two = (statistics.median(speeds[name]) for name in ("one", "two"))
        ratios = [b / a for a, b in zip(speeds["one"], speeds["two"], strict=True)]
        print(f"one process:   {one:,.0f} source rows a second")
        print(f"two processes: {two:,.0f} source rows a second")
        print(
            f"ratio {statistics.median(ratios):.2f} (from {min(ratios):.2f} to {max(ratios):.2f}), "
            f"efficiency {statistics.median(ratios) / 2:.0%}, load average {load:.1f}"
        )


if __name__ == "__main__":
    main()
