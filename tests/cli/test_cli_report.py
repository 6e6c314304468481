"""`halfseen report` as a person runs it."""

from __future__ import annotations

import json

import pytest
from tables_cli import halfseen


def test_fit_keeps_what_it_is_told_to_and_the_report_shows_it(tables, tmp_path):
    run = halfseen(
        "fit", tables / "source.parquet", tables / "target.parquet", "--label", "click",
        "--id", "user", "--config", tables / "tiny.toml", "-o", tmp_path / "model",
        "--report-data", "aggregates",
    )  # fmt: skip
    assert run.code == 0, run.err
    kept = json.loads((tmp_path / "model" / "report.json").read_text())
    assert kept["command"].startswith("halfseen fit")
    assert kept["expectation"]["rows"] == 80
    page = tmp_path / "page.html"
    run = halfseen("report", tmp_path / "model", "-o", page)
    assert (run.code, run.out.strip()) == (0, f"Report: {page}")
    text = page.read_text()
    assert "Left out" not in text
    assert "--report-data aggregates" in text
    assert halfseen("predict", tmp_path / "model", tables / "target.parquet",
                    "-o", tmp_path / "scores.csv").code == 0  # fmt: skip


def test_a_model_that_keeps_nothing_has_a_report_with_gaps(tables, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert halfseen("report", tables / "model").code == 0
    assert (tmp_path / "model-report.html").read_text().count("Left out") == 2


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["{}/nowhere"], "does not exist"),
        (["{}"], "has no model.json, nor the log of a benchmark"),
        (["{}/model", "-o", "{}"], "is a folder"),
    ],
)
def test_a_mistake_is_one_sentence(words, complaint, tables):
    run = halfseen("report", *(word.format(tables) for word in words))
    assert run.code == 2
    assert complaint in run.err
    assert "Traceback" not in run.err
