"""`halfseen measure`: which columns and which rows, and what is wrong with a question."""

import json

import numpy as np
import pandas as pd
import pytest
from tables_cli import halfseen

from halfseen.report.measuring import measuring_parts


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of a label that `test` tells where a > 0."""
    path, random = tmp_path_factory.mktemp("measure"), np.random.default_rng(0)
    a, b, test, useless = random.normal(size=(4, 400))
    sick = np.where(b + 3.0 * test * (a > 0) > 0, "yes", "no")
    names = [f"p{number}" for number in range(400)]
    table = pd.DataFrame({"who": names, "a": a, "b": b, "test": test, "useless": useless})
    table.assign(sick=sick).to_csv(path / "source.csv", index=False)
    table[["who", "a", "b"]][:100].to_csv(path / "target.csv", index=False)
    run = halfseen(
        "fit", path / "source.csv", path / "target.csv", "--label", "sick", "--id", "who",
        "--effort", "quick", "--members", "boosted_trees", "--value-of-missing",
        "-o", path / "model",
    )  # fmt: skip
    assert run.code == 0, run.err
    return path


def test_columns_are_told_with_intervals_and_by_cost(folder):
    run = halfseen("measure", folder / "model", "--cost", "test=2", "--json")
    assert run.code == 0, run.err
    found = json.loads(run.out)
    assert found["sets"][0]["columns"] == ["test"]
    assert [each["cost"] for each in found["sets"][:2]] == [2.0, 3.0]
    value, low, high = found["sets"][0]["gains"]["auc"]
    assert 0.0 < low < value < high
    shown = halfseen("measure", folder / "model", "--columns", "test").out
    assert "AUC better by" in shown
    assert "useless" not in shown
    assert "From 400 labelled source rows" in shown


def test_the_most_useful_rows_come_first(folder, tmp_path):
    run = halfseen("measure", folder / "model", folder / "target.csv", "-o", tmp_path / "first.csv")
    assert run.code == 0, run.err
    first = pd.read_csv(tmp_path / "first.csv")
    assert list(first) == ["row", "who", "surer_by"]
    assert first.surer_by.is_monotonic_decreasing
    assert sorted(first.row) == list(range(1, 101))
    assert (first.who == "p" + (first.row - 1).astype(str)).all()
    target = pd.read_csv(folder / "target.csv").set_index("who")
    assert (target.a[first.who[:30]] > 0).mean() > (target.a > 0).mean() + 0.3


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--columns", "a"], "'a' is none of the columns that are missing on the target: test"),
        (["--cost", "test=-3"], "The cost test=-3 must be a number above zero."),
        (["--cost", "pulse=3"], "'pulse' is none of the columns"),
        (["--cost", "test"], "write COLUMN=COST"),
        (["target.csv"], "give both a table and -o, or neither"),
    ],
)
def test_a_question_that_cannot_be_answered_is_a_sentence(given, says, folder):
    run = halfseen("measure", folder / "model", *given)
    assert (run.code, run.err.count("error: ")) == (2, 1)
    assert says in run.err


def test_a_report_draws_it(folder, tmp_path):
    run = halfseen("report", folder / "model", "-o", tmp_path / "page.html")
    assert run.code == 0, run.err
    page = (tmp_path / "page.html").read_text()
    assert "What measuring would bring" in page
    assert page.count("AUC better by") >= 3
    assert measuring_parts({}) == []
