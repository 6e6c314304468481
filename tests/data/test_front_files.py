"""Tables on disk: what is written is read, whatever the format, batch by batch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest

from halfseen.data.table_files import open_table
from halfseen.data.tables import BATCH_ROWS

TABLE = pa.table(
    {
        "x": [1.5, None, -2.0],
        "n": [1, 2, None],
        "s": ["a", None, "ü, \n b"],
        "b": [True, False, None],
    }
)


def written(table: pa.Table, path: Path) -> Path:
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path, row_group_size=100_000)
    elif path.suffix == ".csv":
        table.to_pandas().to_csv(path, index=False)
    elif path.name == "stream.arrow":
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table)
    else:
        options = pa.ipc.IpcWriteOptions(compression="zstd" if path.suffix == ".ipc" else None)
        with pa.ipc.new_file(path, table.schema, options=options) as writer:
            writer.write_table(table)
    return path


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.ipc", "stream.arrow"])
def test_every_typed_format_gives_the_same_rows(name, tmp_path):
    opened = open_table(written(TABLE, tmp_path / name))
    assert opened.names == ("x", "n", "s", "b")
    (batch,) = opened.batches()
    assert batch.to_pylist() == TABLE.to_pylist()
    assert not opened.texts


def test_cells_of_csv_are_the_texts_that_they_are(tmp_path):
    (tmp_path / "a.csv").write_bytes(b'x,s\n1.50,NA\n,""\n1E2, a\n\xe9,\xc3\xa9\n')
    opened = open_table(tmp_path / "a.csv")
    (batch,) = opened.batches()
    assert batch.to_pydict() == {"x": ["1.50", None, "1E2", "é"], "s": ["NA", None, " a", "é"]}
    assert opened.texts == {"x", "s"}


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "stream.arrow", "a.csv"])
def test_long_tables_come_in_batches_and_in_order(name, tmp_path):
    rows = 2 * BATCH_ROWS + 5
    table = pa.table({"row": np.arange(rows), "half": np.arange(rows) / 2})
    opened = open_table(written(table, tmp_path / name))
    batches = list(opened.batches(["row"]))
    assert max(batch.num_rows for batch in batches) <= BATCH_ROWS
    assert all(batch.schema.names == ["row"] for batch in batches)
    seen = np.concatenate(
        [batch.column(0).cast(pa.int64()).to_numpy(zero_copy_only=False) for batch in batches]
    )
    np.testing.assert_array_equal(seen, np.arange(rows))


def test_a_folder_is_one_table_in_the_order_of_its_names(tmp_path):
    for number in (2, 1):
        written(pa.table({"a": [number], "b": [0.5]}), tmp_path / f"part-{number}.parquet")
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / ".hidden.parquet").write_text("no table")
    opened = open_table(tmp_path)
    assert [b.column("a").to_pylist() for b in opened.batches()] == [[1], [2]]


def test_files_of_a_folder_may_have_their_columns_in_another_order(tmp_path):
    written(pa.table({"a": [1], "b": [2]}), tmp_path / "1.parquet")
    written(pa.table({"b": [4], "a": [3]}), tmp_path / "2.parquet")
    rows = [row for batch in open_table(tmp_path).batches() for row in batch.to_pylist()]
    assert rows == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]


@pytest.mark.parametrize("late", ["2.5", "many", "1e30", "true", "2020-01-01"])
def test_a_csv_column_has_one_type_however_late_it_shows(late, tmp_path, monkeypatch):
    monkeypatch.setattr("halfseen.data.csv_files.BLOCK", 4096)
    path = tmp_path / "a.csv"
    path.write_text("a,b\n" + "1,x\n" * 5_000 + f"{late},x\n")
    values = [v for b in open_table(path).batches(["a"]) for v in b.column(0).to_pylist()]
    assert values == ["1"] * 5_000 + [late]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_delimiter_is_found(delimiter, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(delimiter.join(["a", "b"]) + "\n" + delimiter.join(["1", "x"]) + "\n")
    assert open_table(path).names == ("a", "b")


def test_a_mark_of_byte_order_is_no_part_of_a_name(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("age,sex\n1,2\n".encode("utf-8-sig"))
    assert open_table(path).names == ("age", "sex")


def test_polars_writes_what_can_be_read(tmp_path):
    pl.DataFrame({"a": ["x", None]}).write_ipc(tmp_path / "a.arrow", compression="zstd")
    (batch,) = open_table(tmp_path / "a.arrow").batches()
    assert batch.to_pydict() == {"a": ["x", None]}


def test_fingerprints_change_with_the_content(tmp_path):
    first = open_table(written(TABLE, tmp_path / "a.parquet")).fingerprint()
    second = open_table(written(TABLE.slice(1), tmp_path / "a.parquet")).fingerprint()
    assert first["files"][0]["name"] == "a.parquet"
    assert first["files"][0]["sha256"] != second["files"][0]["sha256"]
