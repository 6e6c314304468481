"""The demo as a newcomer runs it, at its smallest."""

import json
import re
from unittest import mock

import numpy as np
import pytest
from tables_cli import halfseen

from halfseen_bench.budgets import BUDGETS
from halfseen_bench.cli.demo import MODELS
from halfseen_bench.report import figures
from halfseen_bench.suites import SUITES
from halfseen_bench.sweep import Selection, plan_runs, run_one

pytestmark = pytest.mark.usefixtures("small_demo")

KEYS = {"model", "divergence", "refined", "seed", "epoch_choice", "accuracy"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory, small_demo):
    output = tmp_path_factory.mktemp("demo")
    # t-SNE takes seconds for each model; tests/cli/test_cli_bench.py has it draw one.
    with mock.patch.object(figures, "in_the_plane", lambda rows, seed: rows[:, :2]):
        done = halfseen("demo", "--quick", "--seeds", 1, "--jobs", 1, "--output", output)
    assert done.code == 0, done.err
    return output, done


def test_results_hold_every_model_with_the_choice_of_epoch(finished):
    output, _ = finished
    records = json.loads((output / "results.json").read_text())
    assert all(set(record) >= KEYS for record in records)
    rows = {(r["model"], r["refined"], r["epoch_choice"]) for r in records}
    for model in MODELS:
        assert {(model, False, "last"), (model, False, "oracle")} <= rows
    assert ("Gradient-boosted trees, colours", False, "last") in rows
    assert {r["divergence"] for r in records if r["model"].startswith("Adapt")} == {"adversarial"}
    assert {r["divergence"] for r in records if not r["model"].startswith("Adapt")} == {None}
    assert all(0 <= r["accuracy"] <= 1 for r in records)


def test_report_is_one_page_that_needs_nothing_else(finished):
    output, _ = finished
    page = (output / "report.html").read_text()
    sources = re.findall(r'(?:src|href)="([^"]{0,40})', page)
    assert all(source.startswith(("data:image/png;base64,", "#")) for source in sources)
    assert not re.search(r"https?://", page)
    for model in MODELS:
        assert model in page
    # Digits as the domains show them, and latents.
    assert page.count("<img") == page.count('alt="') == 3
    assert "halfseen demo --quick" in page
    assert "Models on digits that are half seen" in page
    assert (output / "domains.png").stat().st_size > 5_000


def test_the_table_is_printed_with_the_choice_of_epoch(finished):
    output, done = finished
    assert "Adaptation-Imputation" in done.out
    assert "oracle: best epoch in hindsight" in " ".join(done.out.split())
    assert "report.html" in done.out
    assert not list(output.glob("*partial*"))


def test_transport_takes_the_place_of_the_critics(tmp_path):
    wanted = Selection(models=("Adaptation-Imputation",), divergences=("transport",))
    (run,) = plan_runs(SUITES["demo"], BUDGETS["quick"], wanted).runs
    result = run_one(run.model_dump(), None, str(tmp_path))
    assert {record["divergence"] for record in result["records"]} == {"transport"}
    assert all(np.isfinite(r["adaptation"]) for r in result["history"] if r["phase"] == "joint")


def test_an_unknown_divergence_is_one_sentence():
    done = halfseen("demo", "--divergence", "cosine")
    assert done.code == 2
    assert "Traceback" not in done.err
    assert "cosine" in done.err
