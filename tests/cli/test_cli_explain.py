"""``halfseen explain``: on the screen, as data and as a page."""

from __future__ import annotations

import json

import pytest
from tables_cli import halfseen, target_table, write

import halfseen as library


def test_the_command_says_what_python_says(tables, tmp_path):
    page = tmp_path / "reasons.html"
    arguments = ("explain", tables / "model", tables / "target.parquet", "--rows", 4, "--json")
    run = halfseen(*arguments, "--source", tables / "source.parquet", "-o", page)
    assert run.code == 0, run.err
    found = json.loads(run.out)
    model = library.load(tables / "model")
    python = model.explain(target_table().slice(0, 4))
    assert len(found["rows"]) == 4
    assert found["rows"][2]["probability"] == python.row(2)["probability"]
    assert set(found["importance"]) == {"visits", "basket", "shop", "member"}
    assert set(found["rows"][0]["missing"]) == {"spend", "grade"}
    html = page.read_text()
    assert "What the model leans on" in html
    assert "Row by row" in html


def test_without_the_source_it_says_what_it_cannot_say(tables):
    run = halfseen("explain", tables / "model", tables / "target.parquet", "--rows", 2)
    assert run.code == 0, run.err
    assert "2 rows, compared with rows of the source's quantiles." in run.out
    assert "--source SOURCE also says what the missing columns would have held" in run.out
    assert "Row 2: Class 'yes' has" in run.out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("-o", "reasons.csv"), "reasons.csv must end in .html (--json gives everything as data)"),
        (("--source", "TARGET"), "has no column 'spend', which the model knows"),
    ],
)
def test_what_cannot_be_is_refused(options, says, tables):
    given = [tables / "target.parquet" if option == "TARGET" else option for option in options]
    run = halfseen("explain", tables / "model", tables / "target.parquet", *given)
    assert run.code == 2
    assert says in run.err


def test_columns_that_are_not_there_are_named(tables, tmp_path):
    path = write(target_table().rename_columns(["user", "visits", "Basket", "shop", "member"]),
                 tmp_path / "t.csv")  # fmt: skip
    run = halfseen("explain", tables / "model", path)
    assert run.code == 2
    assert "did you mean 'Basket'? --rename 'Basket=basket'" in run.err
