"""Two messy files, from fit to scores."""

from __future__ import annotations

import datetime
import gzip
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from tables_cli import halfseen, replaced, source_table, target_table, write


def as_csv(table):
    sink = io.BytesIO()
    pyarrow.csv.write_csv(table, sink)
    return sink.getvalue()


def test_messy_files_are_fitted_and_scored(tmp_path):
    source, target = source_table(), target_table()
    baskets = [f"${value:,.2f}" for value in source["basket"].to_numpy() * 100]
    visits = [*map(str, np.arange(78) % 13), "unknown", "unknown"]
    messy = replaced(replaced(source, "basket", baskets), "visits", visits)
    (tmp_path / "source.csv.gz").write_bytes(gzip.compress(as_csv(messy)))
    target = replaced(target, "basket", target["basket"].to_numpy() * 100)
    target = target.rename_columns(
        [{"shop": " Shop"}.get(name, name) for name in target.column_names]
    )
    (tmp_path / "target.csv").write_bytes(as_csv(target).decode().encode("utf-16"))
    files = tmp_path / "source.csv.gz", tmp_path / "target.csv"
    (tmp_path / "fit.toml").write_text('members = ["regression"]\nreport_data = "none"\n')

    def fit(*more):
        return halfseen("fit", *files, "--label", "click", "--id", "user", "--config",
                        tmp_path / "fit.toml", "-o", tmp_path / "model", *more)  # fmt: skip

    assert "--rename 'Shop=shop'" in fit().err
    renamed = ["--rename", " Shop=shop"]
    assert (
        "looks like numbers except for 'unknown' in 2 rows: --numeric visits" in fit(*renamed).err
    )
    run = fit(*renamed, "--numeric", "visits")
    assert run.code == 0, run.err
    assert "target.csv is not UTF-8; it was read as UTF-16" in run.out
    assert "without thousands separators, percent and currency signs: basket" in run.out
    scored = ["predict", tmp_path / "model", files[1], "-o", tmp_path / "scores.parquet"]
    assert "did you mean 'Shop'?); --rename 'Shop=shop'" in halfseen(*scored).err
    run = halfseen(*scored, *renamed)
    assert run.code == 0, run.err
    assert pyarrow.parquet.read_table(tmp_path / "scores.parquet").num_rows == 70


def test_a_column_with_no_category_in_common_names_the_way_out(tables, tmp_path):
    """Before, the sentence did not say what to do."""
    target = replaced(target_table(), "shop", ["east", "up"] * 35)
    run = halfseen("fit", tables / "source.parquet", write(target, tmp_path / "t.csv"), "--label",
                   "click", "--id", "user", "--dry-run")  # fmt: skip
    assert run.code == 2
    assert "Spell them alike, or leave the column out: --drop shop." in run.err


def test_many_columns_are_counted_and_not_listed(tables, tmp_path):
    """Before, 2,000 columns were 2,000 lines."""
    random = np.random.default_rng(0)
    wide = {f"c{k}": random.normal(size=40) for k in range(500)}
    source = pa.table(wide | {"y": ["a", "b"] * 20})
    files = [
        write(source, tmp_path / "s.parquet"),
        write(pa.table(wide).select([f"c{k}" for k in range(450)]), tmp_path / "t.parquet"),
    ]
    run = halfseen("fit", *files, "--label", "y", "--dry-run")
    assert run.code == 0, run.err
    assert len(run.out.splitlines()) < 40
    assert (
        "480 more columns (--json lists all); in all: 50 missing numeric, 450 observed numeric"
        in run.out
    )
    run = halfseen("fit", *files, "--label", "y", "--dry-run", "--json")
    assert len(json.loads(run.out)["columns"]) == 500


def test_dates_and_excel_go_from_fit_to_predict(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    random = np.random.default_rng(0)
    start = datetime.datetime(2024, 1, 1)
    for name, rows in (("source", 120), ("target", 60)):
        book = openpyxl.Workbook()
        head = ["visit", "age", "test", "sick"] if name == "source" else ["visit", "age"]
        book.active.append(head)
        for _ in range(rows):
            visit = start + datetime.timedelta(days=int(random.integers(0, 365)))
            row = [visit, float(random.normal(50, 9)), float(random.normal())]
            book.active.append(
                [*row, "yes" if visit.month > 6 else "no"][: 4 if len(head) > 2 else 2]
            )
        book.save(tmp_path / f"{name}.xlsx")
    (tmp_path / "fit.toml").write_text('members = ["regression"]\nreport_data = "none"\n')
    files = tmp_path / "source.xlsx", tmp_path / "target.xlsx"
    same = ("--label", "sick", "--dates", "visit=month,weekday", "--config", tmp_path / "fit.toml")
    run = halfseen("fit", *files, *same, "-o", tmp_path / "model")
    assert run.code == 0, run.err
    assert "visit month" in run.out
    run = halfseen("predict", tmp_path / "model", files[1], "-o", tmp_path / "scores.csv")
    assert run.code == 0, run.err
    run = halfseen("predict", tmp_path / "model", files[1], "-o", tmp_path / "scores.xlsx")
    assert "must end in .parquet, .csv or .arrow" in run.err
