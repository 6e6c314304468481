"""``halfseen explain``: on the screen and as data."""

from __future__ import annotations

import json

from tables_cli import halfseen, target_table, write

import halfseen as library


def test_the_command_says_what_python_says(tables):
    arguments = ("explain", tables / "model", tables / "target.parquet", "--rows", 4, "--json")
    run = halfseen(*arguments)
    assert run.code == 0, run.err
    found = json.loads(run.out)
    model = library.load(tables / "model")
    python = model.explain(target_table().slice(0, 4))
    assert len(found["rows"]) == 4
    assert found["rows"][2]["probability"] == python.row(2)["probability"]
    assert set(found["importance"]) == {"visits", "basket", "shop", "member"}


def test_the_first_rows_are_told_on_the_screen(tables):
    run = halfseen("explain", tables / "model", tables / "target.parquet", "--rows", 2)
    assert run.code == 0, run.err
    assert "2 rows, compared with rows of the source's quantiles." in run.out
    assert "Row 2: Class 'yes' has" in run.out


def test_columns_that_are_not_there_are_named(tables, tmp_path):
    path = write(target_table().rename_columns(["user", "visits", "Basket", "shop", "member"]),
                 tmp_path / "t.csv")  # fmt: skip
    run = halfseen("explain", tables / "model", path)
    assert run.code == 2
    assert "(did you mean 'Basket'?); --rename 'Basket=basket'" in run.err
