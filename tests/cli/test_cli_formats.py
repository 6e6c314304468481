"""Two messy files, from fit to scores."""

from __future__ import annotations

import gzip
import io

import numpy as np
import pyarrow.csv
import pyarrow.parquet
from tables_cli import halfseen, replaced, source_table, target_table


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
    assert "did you mean ' Shop'? --rename ' Shop=shop'" in halfseen(*scored).err
    run = halfseen(*scored, *renamed)
    assert run.code == 0, run.err
    assert pyarrow.parquet.read_table(tmp_path / "scores.parquet").num_rows == 70
