"""Files and columns as people have them."""

from __future__ import annotations

import gzip

import numpy as np
import pyarrow as pa
import pytest

from halfseen.errors import InputError
from halfseen.front.files import column_names, open_table
from halfseen.front.inference import Understanding, understand
from halfseen.front.preprocessing import transform
from halfseen.front.roles import Roles
from halfseen.front.tables import ArrowTable


def opened(folder, content, name="a.csv"):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    table = open_table(path)
    return pa.Table.from_batches(table.batches()).to_pydict(), " ".join(table.notes)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.csv.gz", gzip.compress(b"age,town\n1,x\n", mtime=0), ""),
        ("a.tsv.gz", gzip.compress(b"age\ttown\n1,5\tx\n", mtime=0), "decimal commas"),
        ("a.csv", "age,town\n1,Zürich\n".encode("cp1252"), "was read as Windows-1252"),
        ("a.csv", "age,town\n1,Zürich\n".encode("utf-16"), "was read as UTF-16"),
        ("a.csv", "age;tówn\n1;x\n".encode("cp1252"), "was read as Windows-1252"),
    ],
)
def test_packed_and_otherwise_encoded_files(name, content, says, tmp_path):
    found, notes = opened(tmp_path, content, name)
    assert found[next(iter(found))] == [1.5 if "commas" in says else 1]
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
    found, notes = opened(tmp_path, content)
    assert found | expected == found
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
    assert next(table.batches(["b", "age"])).to_pydict() == {"b": ["x"], "age": [1]}
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
        understand(*tables(), Roles("sick"))
    found = understand(*tables(), Roles("sick", numeric=("age",)))
    assert isinstance(found, Understanding)
    age = found.schema.columns[0]
    assert (age.kind, age.indicator, age.strays) == ("count", True, True)
    assert found.target.columns["age"].gaps == 5
    inputs = transform(found.schema, tables()[1].table)
    assert inputs[:3, 1].tolist() == [0, 1, 0]  # the text is marked as a gap


def test_a_name_spelled_otherwise_is_not_a_missing_column():
    given = tables(pulse=None, Pulse=[66.0] * 15)
    roles = {"label": "sick", "numeric": ("age",)}
    says = r"has a column 'Pulse', and the source 'pulse': if they are the same, --rename 'Pulse="
    with pytest.raises(InputError, match=says):
        understand(*given, Roles(**roles))
    assert isinstance(understand(*given, Roles(**roles, missing=("pulse",))), Understanding)


@pytest.mark.parametrize("labels", [np.linspace(0, 1, 60), np.arange(60) // 2])
def test_an_amount_is_no_label(labels):
    source, target = tables()
    source = ArrowTable(source.table.drop_columns("sick").append_column("y", pa.array(labels)), "s")
    with pytest.raises(InputError, match=r"as an amount \(regression\) has; classes are needed"):
        understand(source, target, Roles("y", numeric=("age",)))
