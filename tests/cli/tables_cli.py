"""Runs of the command in this process, and the small tables they are given."""

from __future__ import annotations

import contextlib
import io
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from halfseen.cli import main

TINY = """
report_data = "none"
members = ["networks", "regression"]
[options]
tables.widths = [4]
tables.latent_size = 3
generator.widths = [4]
networks.classifier_widths = [4]
networks.critic_widths = [4]
[options.training]
warmup_epochs = 1
joint_epochs = 1
"""


@dataclass(frozen=True)
class Result:
    """How a run ended, and what it printed."""

    code: int
    out: str
    err: str


def halfseen(*arguments: object) -> Result:
    """Run the command as a person would; the screen is wide and no terminal."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    patched = mock.patch.object(sys, "argv", ["halfseen", *map(str, arguments)])
    wide = mock.patch.dict("os.environ", {"COLUMNS": "200", "TERM": "dumb"})
    no_terminal = mock.patch.object(sys, "stdin", io.StringIO())
    captured = contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)
    with patched, wide, no_terminal, captured[0], captured[1]:
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
    return Result(code, out.getvalue(), err.getvalue())


def source_table(rows: int = 80) -> pa.Table:
    random = np.random.default_rng(0)
    visits = random.poisson(3, rows)
    shop = random.choice(["north", "south", "west"], rows)
    basket = random.normal(50, 10, rows)
    spend = basket + 5 * visits + random.normal(0, 5, rows)
    member = random.random(rows) < 0.4
    return pa.table(
        {
            "user": np.arange(rows),
            "visits": visits,
            "basket": basket,
            "shop": shop,
            "member": member,
            "spend": spend,
            "grade": random.choice(["a", "b"], rows),
            "click": np.where(spend > np.median(spend), "yes", "no"),
        }
    )


def target_table(rows: int = 70) -> pa.Table:
    return source_table(rows).drop_columns(["spend", "grade", "click"])


def replaced(table: pa.Table, name: str, values: object) -> pa.Table:
    """Return the table with a column exchanged or added."""
    column = values if isinstance(values, pa.Array) else pa.array(values)
    if name in table.column_names:
        return table.set_column(table.column_names.index(name), name, column)
    return table.append_column(name, column)


def write(table: pa.Table, path: Path, **options: object) -> Path:
    """Write a table in the format that the ending names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".csv":
        pa.csv.write_csv(table, path)
    elif path.suffix == ".parquet":
        pa.parquet.write_table(table, path, **options)
    else:
        make = options.pop("stream", False)
        new = pa.ipc.new_stream if make else pa.ipc.new_file
        with new(path, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
            writer.write_table(table)
    return path


def check_refused(run: Result, out: Path, says: str = "") -> None:
    """Assert one sentence, exit code 2 and nothing left in the folder."""
    assert run.code == 2, f"exit code {run.code}\n{run.out}\n{run.err}"
    lines = run.err.strip().splitlines()
    assert len(lines) == 1, run.err
    assert lines[0].startswith("error: ")
    assert lines[0].endswith((".", "?")), lines[0]
    assert "Traceback" not in run.out + run.err
    assert says in lines[0], lines[0]
    assert not list(out.iterdir()), "something was left behind"
