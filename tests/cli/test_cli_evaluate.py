"""``halfseen evaluate``, and a label column that the target has."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from tables_cli import halfseen, replaced, source_table, write

import halfseen as library


def test_the_command_and_python_measure_the_same(tables, tmp_path):
    table = source_table(60)
    labels = table["click"].to_pylist()
    run = halfseen("evaluate", tables / "model", write(table, tmp_path / "a.csv"), "--json")
    assert run.code == 0, run.err
    found = json.loads(run.out)
    assert found["rows"] == 60
    assert "95% interval" in run.err
    assert "these rows' own class shares" in run.err
    assert "Class shares as predicted (and as they are): no " in run.err
    measured = library.load(tables / "model").evaluate(table, labels)
    assert found["metrics"]["accuracy"]["value"] == measured["metrics"]["accuracy"]["value"]
    low, high = measured["metrics"]["cross_entropy"]["interval"]
    assert low < measured["metrics"]["cross_entropy"]["value"] < high
    assert measured["metrics"]["accuracy"]["expected"] is not None


def test_rows_without_a_label_are_left_out(tables, tmp_path):
    table = source_table(60)
    some = pa.array([c if k % 2 else None for k, c in enumerate(table["click"].to_pylist())])
    data = write(replaced(table.drop_columns("click"), "seen", some), tmp_path / "a.parquet")
    run = halfseen("evaluate", tables / "model", data, "--label", "seen")
    assert run.code == 0, run.err
    assert "30 rows without a label are left out." in run.out
    assert "30 labelled rows" in run.out


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: t.drop_columns("click"), "has no column 'click' to take labels from"),
        (lambda t: replaced(t, "click", np.full(60, "maybe")), "'maybe' is none of the model's"),
        (lambda t: t.select(["click"]), "lacks column 'visits', which the model observes"),
    ],
)
def test_what_cannot_be_measured_is_refused(change, says, tables, tmp_path):
    data = write(change(source_table(60)), tmp_path / "a.parquet")
    run = halfseen("evaluate", tables / "model", data)
    assert run.code == 2
    assert says in run.err


def test_a_label_column_of_the_target_is_never_silently_ignored(tables, tmp_path):
    target = source_table(60).drop_columns(["spend", "grade"])
    run = halfseen("fit", tables / "source.parquet", write(target, tmp_path / "t.parquet"),
                   "--label", "click", "--id", "user", "--dry-run")  # fmt: skip
    assert "All 60 target rows have a label: they are not used for training" in run.out
    assert "`halfseen evaluate` can measure with them; --target-labels lets the fit" in run.out
