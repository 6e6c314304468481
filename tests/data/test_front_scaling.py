"""Columns that come on one scale keep it; columns with units of their own do not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from halfseen.data.column_spec import ColumnSpec
from halfseen.data.preprocessing import shared_scale
from halfseen.data.schema_inference import infer_schema
from halfseen.data.table_files import open_table
from halfseen.targets import ClassTarget


def write(folder, rows, y):
    names = [f"c{number}" for number in range(rows.shape[1])]
    source = pa.table(dict(zip(names, rows.T, strict=True)) | {"y": y})
    pa.parquet.write_table(source, folder / "source.parquet")
    pa.parquet.write_table(source.select(names[:-2]), folder / "target.parquet")
    tables = [open_table(folder / f"{name}.parquet") for name in ("source", "target")]
    return infer_schema(*tables, ColumnSpec("y"))


def test_principal_components_share_a_scale(tmp_path):
    random = np.random.default_rng(0)
    spreads = 1 / np.arange(1, 61)
    rows = random.normal(size=(150, 60)) * spreads
    found = write(tmp_path, rows, rows[:, 0] + rows[:, 1] > 0)
    (scale,) = {column.scale for column in found.schema.columns}
    assert scale == pytest.approx(np.sqrt((rows.std(0) ** 2).mean()), rel=1e-6)
    assert any("share one scale" in note for note in found.notes)


@pytest.mark.parametrize("columns", [60, 10], ids=["small ones matter", "too few to ask"])
def test_other_columns_have_a_scale_each(columns, tmp_path):
    random = np.random.default_rng(0)
    spreads = 1 / np.arange(1, columns + 1)
    rows = random.normal(size=(150, columns)) * spreads
    found = write(tmp_path, rows, rows[:, -1] > 0)
    assert len({column.scale for column in found.schema.columns}) == columns
    assert not any("share one scale" in note for note in found.notes)


def test_classes_too_rare_for_folds_leave_the_scales():
    rows = np.random.default_rng(0).normal(size=(30, 5))
    assert shared_scale(rows, np.repeat([0, 1], [27, 3]), np.ones(5), ClassTarget.of(2)) is None
