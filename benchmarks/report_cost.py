"""Processor seconds and memory of gathering what a report shows, on streamed tables.

``python benchmarks/report_cost.py 50000 600000``: rows of each table. Training is cut to one epoch.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from halfseen.front.files import open_table
from halfseen.front.inference import Understanding, understand
from halfseen.front.roles import Roles
from halfseen.model.fitting import fit_tables
from halfseen.model.settings import FitSettings
from halfseen.report.facts.sources import facts_of_fit

OBSERVED, MISSING = 20, 5
SHORT = {"training.warmup_epochs": 0, "training.joint_epochs": 1}


def table(rows: int, seed: int, shift: float) -> pa.Table:
    random = np.random.default_rng(seed)
    observed = random.normal(shift, 1, (rows, OBSERVED)).astype(np.float32)
    missing = observed[:, :MISSING] + random.normal(0, 1, (rows, MISSING))
    label = observed[:, 0] + missing[:, 0] + random.normal(0, 1, rows) > 0
    columns = {f"x{i}": observed[:, i] for i in range(OBSERVED)}
    columns |= {f"m{i}": missing[:, i] for i in range(MISSING)}
    return pa.table(columns | {"y": label.astype(np.int8)})


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def measure(rows: int) -> str:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pa.parquet.write_table(table(rows, 0, 0.0), folder / "source.parquet")
        target = table(rows, 1, 0.3).drop_columns([*(f"m{i}" for i in range(MISSING)), "y"])
        pa.parquet.write_table(target, folder / "target.parquet")
        tables = [open_table(folder / f"{name}.parquet") for name in ("source", "target")]
        found = understand(*tables, Roles("y"))
        assert isinstance(found, Understanding)
        fit = fit_tables(found, FitSettings(memory=0, options=SHORT))
        started, before = time.process_time(), peak()
        facts = facts_of_fit(found, fit, rows=True)
        seconds, more = time.process_time() - started, peak() - before
        model = fit.model
        model.report = facts.model_dump(mode="json")
        model.save(folder / "model")
        kept = (folder / "model" / "report.json").stat().st_size // 1024
    return f"| {rows:,} | {seconds:.1f} | {more:.0f} | {kept} |"


if __name__ == "__main__":
    print("| rows of each table | processor seconds | peak memory, MiB more | report.json, kB |")
    print("|---|---|---|---|")
    for count in sys.argv[1:]:
        print(measure(int(count)), flush=True)
