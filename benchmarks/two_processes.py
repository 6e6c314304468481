"""Speed of training with one process and with two, each on one thread.

``python benchmarks/two_processes.py`` trains Adaptation-Imputation on simulated ads (29 columns, 12
of them missing on the target), by one process and by two under torchrun, alternately, and prints
source rows a second. Two ratios come out of an alternation: by the clock, which wants two idle
cores; and by processor time (of all processes together, for a row), which other work on the
machine disturbs less, but which does not see a process that waits for the other. Efficiency is
the speed of two over twice the speed of one. A first epoch is not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch

from halfseen.networks.objective import build_objective
from halfseen.networks.training.batches import LabelledRows, ResidentBatches
from halfseen.networks.training.loop import Trainer
from halfseen.networks.training.phases import Phase
from halfseen.networks.variants import variant_named
from halfseen.options import preset
from halfseen.parallel import joined
from halfseen_bench.data.catalog import family

TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
RATE = 1e-3


def train(given: argparse.Namespace) -> None:
    """Train as one of the processes; the first prints the speed by both clocks."""
    torch.set_num_threads(1)
    reader = family("ads-sim").reader
    size = {"rows": given.rows, "test_rows": 1}
    pair = reader.load_pair(Path(), "retargeting", "prospecting", **size)
    source = torch.from_numpy(pair.source_train.inputs)
    rows = LabelledRows(source, torch.from_numpy(pair.source_train.labels))
    batches = ResidentBatches(rows, torch.from_numpy(pair.target_train), balanced=False)
    options = preset("default", inputs="table")
    torch.manual_seed(0)
    objective = build_objective(pair.blocks, variant_named("Adaptation-Imputation"), 2, options)
    with joined() as ranks:
        trainer = Trainer(objective, batches, seed=0)
        trainer.train([Phase("joint", 1, given.batch_size, RATE)])
        clock, used = time.perf_counter(), time.process_time()
        trainer.train([Phase("joint", given.epochs, given.batch_size, RATE)])
        clock, used = time.perf_counter() - clock, time.process_time() - used
        seen = given.epochs * batches.steps(given.batch_size) * given.batch_size
        used_by_each = float(ranks.mean(torch.tensor([used])))
        if ranks.is_first:
            print(json.dumps({"clock": seen / clock, "processor": seen / used_by_each}))


def speeds(launcher: list[str]) -> dict[str, float]:
    """Run this script as a worker, alone or under torchrun."""
    command = [sys.executable, *launcher, __file__, "--worker", *sys.argv[1:]]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="of each table")
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--alternations", type=int, default=5)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        train(given)
        return
    pairs = [(speeds([]), speeds(TORCHRUN)) for _ in range(given.alternations)]
    print("by          one rows/s   two rows/s   ratio (lowest to highest)   efficiency")
    for kind in ("clock", "processor"):
        one, two = (statistics.median(pair[i][kind] for pair in pairs) for i in range(2))
        ratios = sorted(pair[1][kind] / pair[0][kind] for pair in pairs)
        ratio = statistics.median(ratios)
        print(
            f"{kind:<11} {one:<12,.0f} {two:<12,.0f} {ratio:.2f} ({ratios[0]:.2f} to "
            f"{ratios[-1]:.2f}){'':<9} {ratio / 2:.0%}"
        )
    print(f"Load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.")


if __name__ == "__main__":
    main()
