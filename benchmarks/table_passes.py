"""How fast tables are read: the passes that ``halfseen fit`` makes over them beside training.

``python benchmarks/table_passes.py --rows 600000`` simulates that many rows, half of them source
and half target (29 columns, 12 of them missing on the target), writes Parquet, and prints rows per
second of processor time, on one thread, for the pass that finds types and spec and for the
preparation of the columns. It also prints the size of the model whose gradient processes exchange.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from halfseen.data.column_spec import ColumnSpec
from halfseen.data.preprocessing import RowStream
from halfseen.data.schema_inference import InferredTables, infer_schema
from halfseen.data.table_files import open_table
from halfseen.networks.objective import build_objective
from halfseen.networks.variants import variant_named
from halfseen.settings import FitSettings


def timed(name: str, rows: int, work: Callable[[], Any]) -> Any:
    started = time.process_time()
    result = work()
    print(f"{name:<16} {rows / (time.process_time() - started):>12,.0f} rows a second")
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=600_000, help="of both tables together")
    given = parser.parse_args()
    torch.set_num_threads(1)
    half = given.rows // 2
    with tempfile.TemporaryDirectory() as folder:
        words = ["data", "export", "ads-sim", "retargeting:prospecting", "-o", folder]
        words += ["--set", f"rows={half}", "--set", "test_rows=1"]
        subprocess.run(
            [sys.executable, "-m", "halfseen", *words], check=True, stdout=subprocess.DEVNULL
        )
        tables = [open_table(Path(folder) / f"{name}.parquet") for name in ("source", "target")]
        found = timed("schema_facts", 2 * half, lambda: infer_schema(*tables, ColumnSpec("label")))
        assert isinstance(found, InferredTables)
        for name, table in zip(("source", "target"), tables, strict=True):
            stream = RowStream(table, found.schema, is_source=name == "source")
            timed(f"{name}, prepared", half, lambda s=stream: [len(c[0]) for c in s.chunks()])
    method = variant_named("Adaptation-Imputation")
    options = FitSettings().options_for(method, resident=False)
    objective = build_objective(found.schema.blocks, method, 2, options)
    size = sum(parameter.numel() for parameter in objective.parameters())
    print(f"The model has {size:,} parameters: {4 * size / 2**20:.1f} MiB of gradient a step.")


if __name__ == "__main__":
    main()
