"""The benchmarks as they are run: end to end, killed and resumed."""

import json
import multiprocessing
import os
import random
import shutil
import signal
import time

import pytest
from tables_cli import halfseen
from typer.testing import CliRunner

from halfseen.cli.app import app
from halfseen.errors import HalfseenError
from halfseen_bench.budgets import BUDGETS
from halfseen_bench.suites import SUITES
from halfseen_bench.sweep import Selection, plan_runs, run_suite

pytestmark = pytest.mark.usefixtures("small_demo")


def invoked(*words, code=0):
    done = CliRunner().invoke(app, ["bench", *map(str, words)], catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.stdout


@pytest.fixture(scope="module")
def finished(tmp_path_factory, small_demo):
    """Three models; those of the demo run in its own tests."""
    folder = tmp_path_factory.mktemp("bench")
    models = ("Source-Full", "Adaptation-Imputation", "Gradient-boosted trees, colours")
    chosen = [word for name in models for word in ("--models", name)]
    done = halfseen("bench", "run", "demo", "--budget", "quick", "--jobs", 1, *chosen, "-o", folder)
    assert done.code == 0, done.err
    return folder, done


def test_the_demo_suite_runs_end_to_end(finished):
    folder, done = finished
    assert "3 of 3 runs finished" in done.out
    assert "0 s left" in done.err
    lines = [json.loads(line) for line in (folder / "runs.jsonl").read_text().splitlines()]
    assert len(lines) == 3
    keys = {"suite", "pair", "model", "divergence", "refined", "seed", "epoch_choice", "accuracy"}
    for line in lines:
        assert all(keys <= set(record) for record in line["result"]["records"])


@pytest.mark.parametrize("form", ["markdown", "csv", "latex", "html"])
def test_tables_are_printed_in_every_format(finished, form):
    printed = invoked("table", "demo", "-o", finished[0], "--format", form)
    for name in ("Adaptation-Imputation", "Gradient-boosted trees, colours", "oracle"):
        assert name in printed


def test_a_curve_has_a_column_per_number_of_source_rows(tmp_path):
    words = ("--budget", "quick", "--jobs", 1, "--seeds", 1, "-o", tmp_path)
    models = ("--models", "Constant: source prior", "--models", "Logistic regression, ignore")
    invoked("run", "source-size", *words, "--pairs", "ads-sim", *models)
    printed = invoked("table", "source-size", "-o", tmp_path, "--curves")
    rows = {line.split("|")[1].strip(): line.split("|")[3:-1] for line in printed.splitlines()
            if line.startswith("|")}  # fmt: skip
    assert len(rows["model"]) > 3
    assert all(float(cell.strip(" *")) > 0 for cell in rows["Logistic regression, ignore"])
    paired = invoked("table", "source-size", "-o", tmp_path, "--curves", "--versus",
                     "Constant: source prior")  # fmt: skip
    assert "minus Constant: source prior" in paired


def test_the_papers_cells_are_asked_for_where_it_has_some(finished):
    with pytest.raises(HalfseenError, match="no cell on these pairs"):
        invoked("table", "demo", "-o", finished[0], "--paper")


def test_figures_are_drawn(finished, tmp_path):
    pytest.importorskip("matplotlib")
    (latents,) = finished[0].glob("latents-demo-Adaptation-Imputation-adversarial-*.npz")
    for path in (finished[0] / "runs.jsonl", latents):
        shutil.copy(path, tmp_path)  # one model: t-SNE takes seconds for each
    invoked("figures", "demo", "-o", tmp_path)
    assert (tmp_path / "latents-demo-adversarial.png").stat().st_size > 10_000


def test_a_sweep_killed_at_a_random_moment_and_resumed_gives_the_same_table(tmp_path):
    selection = Selection(models=("Source-Full", "Constant: source prior"), seeds=3)
    plan = plan_runs(SUITES["demo"], BUDGETS["quick"], selection)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    run_suite(plan, whole, jobs=1, quiet=True)

    words = ["run", "demo", "--budget", "quick", "--jobs", 1, "--seeds", 3, "-o", killed]
    words += [word for name in selection.models for word in ("--models", name)]
    # A process that has everything imported already.
    process = multiprocessing.get_context("fork").Process(target=invoked, args=words)
    process.start()
    log, limit = killed / "runs.jsonl", time.monotonic() + 120
    while not (log.exists() and log.read_bytes().count(b"\n") >= 2):
        assert process.is_alive(), "it ended before it could be killed"
        assert time.monotonic() < limit
        time.sleep(0.02)
    time.sleep(random.uniform(0.0, 0.2))
    os.kill(process.pid, signal.SIGKILL)
    process.join()

    before = [json.loads(line)["key"] for line in log.read_bytes().splitlines(keepends=True)
              if line.endswith(b"\n")]  # fmt: skip
    assert 2 <= len(before) < len(plan.runs)
    _, failures = run_suite(plan, killed, jobs=1, quiet=True)
    assert not failures
    after = [json.loads(line)["key"] for line in log.read_text().splitlines()]
    assert after[: len(before)] == before, "finished runs are not repeated"
    assert sorted(after) == sorted(run.key for run in plan.runs)
    for options in ((), ("--overview",), ("--versus", "Source-Full")):
        assert invoked("table", "demo", "-o", killed, *options) == invoked(
            "table", "demo", "-o", whole, *options
        )


def test_a_failed_run_is_reported_and_does_not_end_the_sweep(tmp_path):
    words = ("--budget", "quick", "--jobs", 1, "--seeds", 1, "--data-dir", tmp_path / "none")
    printed = invoked(
        "run", "source-size", *words, "-o", tmp_path / "out", "--pairs", "cleveland:va,ads-sim",
        "--models", "Constant: source prior", code=1,
    )  # fmt: skip
    assert "4 of 8 runs finished" in printed
    assert printed.count("failed:") == 4
    assert "processed.cleveland.data" in printed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "digit"), "There is no suite 'digit'"),
        (("run", "demo", "--budget", "huge"), "There is no budget 'huge'"),
        (("table", "demo", "-o", "nowhere"), "nowhere/runs.jsonl does not exist"),
        (("run", "demo", "--option", "dropout"), "write KEY=VALUE"),
    ],
)
def test_mistakes_are_one_sentence(words, message):
    with pytest.raises(HalfseenError, match=message):
        invoked(*words)


def test_a_mistake_is_shown_without_a_traceback():
    done = halfseen("bench", "run", "digit")
    assert done.code == 2
    assert "There is no suite 'digit'" in done.err
    assert "Traceback" not in done.err


def test_the_list_names_every_suite():
    printed = invoked("list")
    assert all(name in printed for name in (*SUITES, *BUDGETS))
