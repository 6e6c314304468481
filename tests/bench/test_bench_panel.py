"""The table panel: what is run, what is not run again, and how methods stand."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from halfseen.cli.app import app
from halfseen.errors import HalfseenError
from halfseen_bench.panel import few_labels, methods, panel_table, problems, running


def small_problem(seed):
    random = np.random.default_rng(seed)
    source = pd.DataFrame(random.normal(size=(60, 3)), columns=["a", "b", "c"])
    target = pd.DataFrame(random.normal(size=(40, 2)), columns=["a", "b"])
    labels = (source.a > 0).to_numpy().astype(int)
    return problems.PanelProblem(source, labels, target, (target.a > 0).to_numpy().astype(int))


@pytest.fixture
def small_panel(monkeypatch):
    monkeypatch.setattr(running, "DEVELOPMENT", {"small": small_problem, "other": small_problem})
    chosen = {name: methods.BASELINES[name] for name in ("logistic regression", "LightGBM")}
    monkeypatch.setattr(running, "BASELINES", chosen)
    monkeypatch.setattr(running, "OURS", {"default": methods.plain(methods.logistic)})


def panel(*words):
    return CliRunner().invoke(app, ["bench", "panel", *map(str, words)], catch_exceptions=False)


@pytest.mark.usefixtures("small_panel")
def test_what_is_there_is_not_run_again(tmp_path):
    log = tmp_path / "new" / "panel.jsonl"
    first = panel("run", "-o", log, "--problems", "small", "--seeds", 2)
    records = [json.loads(line) for line in log.read_text().splitlines()]
    assert [json.loads(line) for line in first.stdout.splitlines()] == records
    assert [(r["method"], r["seed"]) for r in records[:3]] == [
        ("logistic regression", 0),
        ("LightGBM", 0),
        ("halfseen, default", 0),
    ]
    assert records[0]["auc"] > 0.9
    again = panel("run", "-o", log, "--problems", "small", "--problems", "other")
    assert {json.loads(line)["problem"] for line in again.stdout.splitlines()} == {"other"}
    printed = panel("table", "-o", log).stdout.splitlines()
    assert printed[0].split(" | ")[1] == "logistic regression"
    assert any(line.startswith("| mean rank |") for line in printed)


@pytest.mark.usefixtures("small_panel")
def test_unknown_names_and_other_files_are_refused(tmp_path):
    with pytest.raises(HalfseenError, match=r"--problems heart: there are small; other\."):
        panel("run", "-o", tmp_path / "log.jsonl", "--problems", "heart")
    with pytest.raises(HalfseenError, match=r"--ours best: there are default\."):
        panel("run", "-o", tmp_path / "log.jsonl", "--ours", "best")
    with pytest.raises(HalfseenError, match="holds no results; run `halfseen bench panel run`"):
        panel("table", "-o", tmp_path / "log.jsonl")
    other = tmp_path / "other.txt"
    other.write_text('{"problem"')
    with pytest.raises(HalfseenError, match="is no log of the panel; give another with -o"):
        panel("table", "-o", other)


def test_ranks_leave_out_methods_that_were_not_run_everywhere():
    names = ("LightGBM", "halfseen, default", "halfseen, quick")
    records = [
        {"problem": p, "method": m, "auc": score, "cross_entropy": 0.5}
        for p in ("first", "second")
        for m, score in zip(names, (0.6, 0.7, 0.9), strict=True)
        if (p, m) != ("second", "halfseen, quick")
    ]
    lines = panel_table(records).splitlines()
    rows = {line.split(" | ")[0].strip("| "): line for line in lines}
    assert rows["second"] == "| second | 60.0 (0.500) | 70.0 (0.500) | – |"
    assert rows["mean rank"] == "| mean rank | 2.0 | 1.0 | – |"
    assert rows["the same, worst"] == "| the same, worst | 0.0 | 10.0 | – |"


@pytest.mark.data("heart")
def test_a_problem_of_a_hospital_lacks_columns_and_keeps_its_labels():
    found = problems.heart_back(0)
    assert set(found.source) - set(found.target) == {"exang", "oldpeak"}
    assert len(found.target) == len(found.truth)


def test_few_labels_are_drawn_run_once_and_drawn_as_curves(tmp_path, monkeypatch):
    monkeypatch.setattr(few_labels, "OPEN", {"small": small_problem})
    log, picture = tmp_path / "few.jsonl", tmp_path / "curves.png"
    words = ["bench", "few-labels", "-o", log, "--labels", "20", "--labels", "0"]
    words += ["--draws", "1", "--methods", "LabelSpreading", "--methods", "logistic regression"]
    invoke = CliRunner().invoke
    first = invoke(app, [*map(str, words), "--figure", str(picture)], catch_exceptions=False)
    records = running.read_records(log)
    assert [(r["labels"], r["method"]) for r in records] == [
        (count, method) for count in (20, 0) for method in ("LabelSpreading", "logistic regression")
    ]
    assert "| small" in first.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
    invoke(app, list(map(str, words)), catch_exceptions=False)
    assert running.read_records(log) == records
    with pytest.raises(HalfseenError, match="--methods boosting: there are logistic regression;"):
        invoke(app, ["bench", "few-labels", "-o", str(log), "--methods", "boosting"],
               catch_exceptions=False)  # fmt: skip


def test_a_draw_knows_so_many_labels_and_two_of_each_class():
    labels = np.repeat([0, 1], [50, 10])
    for draw in range(5):
        known = few_labels.drawn(labels, 10, draw)
        assert (known >= 0).sum() == 10
        assert np.bincount(known[known >= 0]).min() >= 2
        assert (known[known >= 0] == labels[known >= 0]).all()
    assert few_labels.drawn(np.repeat([0, 1], [50, 1]), 10, 0) is None
    assert few_labels.drawn(labels, 0, 0) is labels


def test_every_way_to_fit_ours_can_be_switched():
    for part in (methods.NO_TEACHERS, methods.NO_SELF_TRAINING, methods.EQUAL_WEIGHTS):
        with part():
            pass
