"""Processor seconds of a fit, and of gathering what a report shows of it.

``python benchmarks/report_cost.py 303x13 10000x50``: rows of each table and columns, of which one
in five is missing on the target.
"""

from __future__ import annotations

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
from halfseen.report.gathering import facts_of_fit


def table(rows: int, observed: int, missing: int, seed: int, shift: float) -> pa.Table:
    random = np.random.default_rng(seed)
    known = random.normal(shift, 1, (rows, observed)).astype(np.float32)
    hidden = known[:, :missing] + random.normal(0, 1, (rows, missing))
    label = known[:, 0] + hidden[:, 0] + random.normal(0, 1, rows) > 0
    columns = {f"x{i}": known[:, i] for i in range(observed)}
    columns |= {f"m{i}": hidden[:, i] for i in range(missing)}
    return pa.table(columns | {"y": label.astype(np.int8)})


def measure(rows: int, columns: int) -> str:
    missing = columns // 5
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = table(rows, columns - missing, missing, 0, 0.0)
        target = table(rows, columns - missing, missing, 1, 0.3)
        pa.parquet.write_table(source, folder / "source.parquet")
        lacking = target.drop_columns([*(f"m{i}" for i in range(missing)), "y"])
        pa.parquet.write_table(lacking, folder / "target.parquet")
        tables = [open_table(folder / f"{name}.parquet") for name in ("source", "target")]
        started = time.process_time()
        found = understand(*tables, Roles("y"))
        assert isinstance(found, Understanding)
        fit = fit_tables(found, FitSettings())
        fitted = time.process_time()
        facts = facts_of_fit(found, fit)
        gathered = time.process_time()
    size = len(facts.model_dump_json()) / 1024
    return (
        f"| {rows:,} x {columns} | {fitted - started:.1f} | {gathered - fitted:.2f} | {size:.0f} |"
    )


if __name__ == "__main__":
    print("| tables | fit, processor seconds | facts for the report | report.json, kB |")
    print("|---|---|---|---|")
    for size in sys.argv[1:]:
        rows, columns = size.split("x")
        print(measure(int(rows), int(columns)), flush=True)
