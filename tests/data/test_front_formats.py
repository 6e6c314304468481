"""Files and columns as people have them."""

from __future__ import annotations

import datetime
import gzip
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from halfseen.data import table_files
from halfseen.data.column_spec import ColumnSpec, written_notes
from halfseen.data.preprocessing import transform
from halfseen.data.schema_inference import InferredTables, infer_schema
from halfseen.data.table_files import column_names, open_table
from halfseen.data.table_summary import summarize_source
from halfseen.data.tables import ArrowTable
from halfseen.data.values import as_categories, as_numbers
from halfseen.errors import InputError


def opened(folder, content, name="a.csv"):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    table = open_table(path)
    return meant(table), " ".join(table.notes)


def meant(table):
    """Return the columns of a table as what a fit decides that they are."""
    seen = summarize_source(table, table.names, dates={})
    assert not seen.problems
    rows = pa.Table.from_batches(table.batches())
    return {
        name: as_categories(rows[name], name, where="x", stored=found.stored).to_pylist()
        if found.values == "text"
        else [
            None if value != value else value
            for value in as_numbers(rows[name], name, where="x", written=found.written)
        ]
        for name, found in seen.columns.items()
    }


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.csv.gz", gzip.compress(b"age,town\n1,x\n", mtime=0), ""),
        ("a.tsv.gz", gzip.compress(b"age\ttown\n1,5\tx\n", mtime=0), ""),
        ("a.csv", "age,town\n1,Zürich\n".encode("cp1252"), "were read as Windows-1252"),
        ("a.csv", "age,town\n1,Zürich\n".encode("utf-16"), "was read as UTF-16"),
        ("a.csv", "age;tówn\n1;x\n".encode("cp1252"), "were read as Windows-1252"),
    ],
)
def test_packed_and_otherwise_encoded_files(name, content, says, tmp_path):
    found, notes = opened(tmp_path, content, name)
    assert found[next(iter(found))] == [1.5 if name == "a.tsv.gz" else 1]
    assert notes == "" if not says else says in notes
    assert column_names(tmp_path / name) == list(found)


@pytest.mark.parametrize(
    ("content", "expected", "says"),
    [
        ("a;b\n1,5;x\n2;y\n", {"a": [1.5, 2.0]}, "decimal commas"),
        ("a;b\n1.234,5;3\n7;4\n", {"a": [1234.5, 7.0], "b": [3, 4]}, "thousands"),
        ("a;b\n1 200,5 €;x\n3 €;y\n", {"a": [1200.5, 3.0]}, "currency"),
        ('a,b\n"1,200.50",12%\n,5 %\n', {"a": [1200.5, None], "b": [12.0, 5.0]}, "percent"),
        ("a,b\n$3,-$4\n$10,£5\n", {"a": [3.0, 10.0], "b": [-4.0, 5.0]}, "currency"),
        ("zip,n\n01234,1\n98000,2\n", {"zip": ["01234", "98000"], "n": [1, 2]}, "begin with 0"),
        ("a;b\n1.5;1,234\n2.25;2,500\n", {"a": [1.5, 2.25]}, ""),  # points are decimal here
        ("a,b\n0.5,x\n0,y\n", {"a": [0.5, 0.0]}, ""),
        ("a,b\n12-05,3 4\n13-05,5 6\n", {"a": ["12-05", "13-05"], "b": ["3 4", "5 6"]}, ""),
    ],
)
def test_numbers_as_they_are_written(content, expected, says, tmp_path):
    found, _ = opened(tmp_path, content)
    assert found | expected == found
    seen = summarize_source(open_table(tmp_path / "a.csv"), list(found), dates={})
    notes = " ".join(written_notes(seen))
    assert says in notes
    assert says or not notes.startswith("Kept")


def test_a_late_text_makes_a_column_of_signed_numbers_text(tmp_path):
    found, _ = opened(tmp_path, "a,b\n" + "$5,1\n" * 9 + "five,2\n")
    assert found["a"][-1] == "five"


def test_a_truncated_archive_is_refused(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"a,b\n1,x\n" * 500)[:30])
    with pytest.raises(InputError, match=r"a\.csv\.gz cannot be read as CSV: Truncated"):
        open_table(tmp_path / "a.csv.gz")


def test_columns_get_other_names(tmp_path):
    (tmp_path / "a.csv").write_text("Age ,b\n1,x\n")
    table = open_table(tmp_path / "a.csv").renamed({"Age ": "age", "absent": "c"})
    assert table.names == ("age", "b")
    assert next(table.batches(["b", "age"])).to_pydict() == {"b": ["x"], "age": ["1"]}
    with pytest.raises(InputError, match="'b' more than once"):
        open_table(tmp_path / "a.csv").renamed({"Age ": "b"})


# --- columns --------------------------------------------------------------------------------


def tables(**target):
    random = np.random.default_rng(0)
    source = {
        "age": [*map(str, random.integers(20, 90, 58)), "unknown", "unknown"],
        "pulse": random.normal(70, 9, 60),
        "test": random.normal(size=60),
        "sick": ["yes", "no"] * 30,
    }
    target = {"age": ["33", "n/k", "44"] * 5, "pulse": [66.0, 71.0, 75.0] * 5} | target
    target = {name: values for name, values in target.items() if values is not None}
    return ArrowTable(pa.table(source), "the source"), ArrowTable(pa.table(target), "the target")


def test_stray_texts_among_numbers_are_asked_about():
    says = (
        "Column 'age' looks like numbers except for 'unknown' in 2 rows: --numeric age takes such"
    )
    with pytest.raises(InputError, match=says):
        infer_schema(*tables(), ColumnSpec("sick"))
    found = infer_schema(*tables(), ColumnSpec("sick", numeric=("age",)))
    assert isinstance(found, InferredTables)
    age = found.schema.columns[0]
    assert (age.kind, age.indicator, age.strays) == ("count", True, True)
    assert found.target.columns["age"].gaps == 5
    inputs = transform(found.schema, tables()[1].table)
    assert inputs[:3, 1].tolist() == [0, 1, 0]  # the text is marked as a gap


def test_a_name_spelled_otherwise_is_not_a_missing_column():
    given = tables(pulse=None, Pulse=[66.0] * 15)
    spec = {"label": "sick", "numeric": ("age",)}
    says = r"has 'Pulse', and the source 'pulse': if they are the same, --rename 'Pulse="
    with pytest.raises(InputError, match=says):
        infer_schema(*given, ColumnSpec(**spec))
    assert isinstance(infer_schema(*given, ColumnSpec(**spec, missing=("pulse",))), InferredTables)


@pytest.mark.parametrize("labels", [np.arange(60) / 10 // 1 + 0.5, np.arange(60) // 2])
def test_what_may_be_an_amount_is_asked_about(labels):
    source, target = tables()
    source = ArrowTable(source.table.drop_columns("sick").append_column("y", pa.array(labels)), "s")
    with pytest.raises(InputError, match="as an amount has: predict it as one with"):
        infer_schema(source, target, ColumnSpec("y", numeric=("age",)))


# --- what people's programs add to a table ----------------------------------------------------


def test_an_index_that_pandas_wrote_is_left_out(tmp_path):
    """Before, a first column without a name was refused, which a receiver cannot change."""
    for number, name in enumerate(("", "Unnamed: 0")):
        path = tmp_path / f"{number}.csv"
        path.write_text(f"{name},age,shop\n0,63,x\n1,,y\n")
        table = open_table(path)
        assert table.names == ("age", "shop")
        assert "The first column of" in table.notes[-1]
        assert next(table.batches()).to_pydict() == {"age": ["63", None], "shop": ["x", "y"]}
    frame = pd.DataFrame({"age": [63, 64]}, index=[7, 9])
    frame.to_parquet(tmp_path / "a.parquet")
    assert open_table(tmp_path / "a.parquet").names == ("age",)


def test_a_column_without_a_name_elsewhere_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("age,\n63,1\n")
    with pytest.raises(InputError, match=r"Column 2 of .* has no name"):
        open_table(tmp_path / "a.csv")


def test_spaces_around_names_are_left_out_unless_names_would_clash(tmp_path):
    """Before, ' age ' of one table was told to be renamed, and could not be."""
    (tmp_path / "a.csv").write_text(" age ,shop\n63,x\n")
    table = open_table(tmp_path / "a.csv")
    assert table.names == ("age", "shop")
    assert "Read without the spaces around their names: age." in table.notes
    again = table.renamed({"age": "years"})
    assert again.names == ("years", "shop")
    assert next(again.batches(["years"])).to_pydict() == {"years": ["63"]}
    (tmp_path / "b.csv").write_text(" age,age\n63,1\n")
    assert open_table(tmp_path / "b.csv").names == (" age", "age")


# --- Excel --------------------------------------------------------------------------------------


def workbook(path, *sheets):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for number, rows in enumerate(sheets):
        sheet = book.create_sheet(f"sheet {number + 1}")
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_the_first_sheet_of_a_workbook_is_a_table(tmp_path):
    day = datetime.datetime(2024, 5, 17)
    rows = [["age", "shop", "new", "day", "code", None], [63, "x", True, day, 7, None],
            [2.5, "#N/A", False, day, "old", None], [None] * 6]  # fmt: skip
    table = open_table(workbook(tmp_path / "a.xlsx", rows, [["b"], [1]]))
    (batch,) = table.batches()
    found = batch.to_pydict()
    assert found["age"] == [63.0, 2.5]
    assert found["shop"] == ["x", None]
    assert found["new"] == [True, False]
    assert found["day"] == [day, day]
    assert found["code"] == ["7", "old"], "cells of several kinds are texts, as in CSV"
    assert "has 2 sheets; the first, 'sheet 1', was read." in table.notes[0]


def test_a_workbook_that_is_none_or_too_large_is_refused(tmp_path, monkeypatch):
    path = workbook(tmp_path / "a.xlsx", [["a"], [1]])
    monkeypatch.setattr(table_files, "LARGEST_WORKBOOK", 100)
    with pytest.raises(InputError, match=r"unpacks to .* MiB, more than .*: save it as CSV"):
        open_table(path)
    (tmp_path / "b.xlsx").write_text("age\n63\n")
    with pytest.raises(InputError, match="cannot be read as Excel: File is not a zip file"):
        open_table(tmp_path / "b.xlsx")
    monkeypatch.setattr(table_files, "LARGEST_WORKBOOK", 2**29)
    with pytest.raises(InputError, match=r"The first sheet of .* is empty"):
        open_table(workbook(tmp_path / "c.xlsx", []))
    monkeypatch.setattr(table_files, "MOST_CELLS", 1)
    with pytest.raises(InputError, match="has over 1 cells"):
        open_table(workbook(tmp_path / "d.xlsx", [["a"], [1]]))


def test_without_openpyxl_the_extra_is_named(tmp_path, monkeypatch):
    path = workbook(tmp_path / "e.xlsx", [["a"], [1]])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(InputError, match=r"openpyxl.*pip install 'halfseen\[excel\]'"):
        open_table(path)
