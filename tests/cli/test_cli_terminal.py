"""What all commands share: where text goes, JSON, verbosity, colours, exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from tables_cli import TINY, halfseen, write

from halfseen.cli import terminal
from halfseen.cli.app import COMMANDS, imported
from halfseen.cli.terminal import EXIT_CODES, SafeConsole

DOCS = Path(__file__).parents[2] / "docs"
ESCAPE = "\x1b["


@pytest.fixture
def fit(tables, tmp_path):
    both = tables / "source.parquet", tables / "target.parquet"
    return ("fit", *both, "--label", "click", "--id", "user", "--config", tables / "tiny.toml",
            "-o", tmp_path / "model")  # fmt: skip


def document(run) -> dict:
    assert run.code == 0, run.err
    assert run.out.startswith("{\n")
    return json.loads(run.out)


def test_fit_prints_one_document_and_the_rest_elsewhere(fit, tmp_path):
    run = halfseen(*fit, "--json")
    found = document(run)
    assert found["model"] == str(tmp_path / "model")
    assert found["classes"] == {"no": 40, "yes": 40}
    spec = {column["name"]: column["role"] for column in found["columns"]}
    assert spec["spend"] == "missing"
    assert found["metrics"]["held_out_source"]["without_missing_block"]["rows"] == 80
    assert "Held-out source rows" in run.err
    plan = document(halfseen(*fit, "--json", "--dry-run", "--quiet"))
    assert plan["model"] is None
    assert plan["columns"] == found["columns"]


def test_predict_export_and_inspect_print_documents(tables, tmp_path):
    model, out = tables / "model", tmp_path / "scores.csv"
    found = document(halfseen("predict", model, tables / "source.parquet", "-o", out, "--json"))
    assert found["rows"] == 80
    assert "spend, grade" in found["notes"][0]
    assert found["class_shares"] is None
    graph = tmp_path / "m.onnx"
    assert document(halfseen("export", model, "--onnx", graph, "--json"))["bytes"] > 1_000
    described = document(halfseen("inspect", model, "--json"))
    assert described["members"][0]["method"] == "Adaptation-Imputation"
    kinds = dict.fromkeys(member["kind"] for member in described["members"])
    assert list(kinds) == ["networks", "regression"]


def test_lists_print_documents(tmp_path):
    found = document(halfseen("data", "list", "--json", "--data-dir", tmp_path))
    assert found["data_folder"] == str(tmp_path)
    assert {"mnist", "ads-sim"} <= {entry["name"] for entry in found["data_sets"]}
    found = document(halfseen("bench", "list", "--json"))
    assert found["suites"][0]["runs"]["quick"] > 0


def test_quiet_leaves_results_and_verbose_adds_settings(fit, tmp_path, one_part):
    run = halfseen(*fit, "-q")
    assert run.out == f"Model: {tmp_path / 'model'}\n"
    assert run.err == ""
    run = halfseen(*fit, "--dry-run", "-v")
    assert re.search(r"^  tables\.latent_size = 3$", run.err, re.MULTILINE)
    assert "latent_size" not in halfseen(*fit, "--dry-run").err


def test_where_an_error_came_from_is_told_on_request(tables):
    wrong = ("inspect", tables / "nowhere")
    assert halfseen(*wrong, "-v").err.count("\n") == 1
    run = halfseen(*wrong, "-vv")
    assert run.code == 2
    assert "Traceback" in run.err
    assert run.err.splitlines()[-1].startswith("error: There is no model folder")
    assert "Traceback" not in halfseen(*wrong).err, "it holds for one run"


def test_colours_are_for_terminals(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)

    def shown(**settings: bool) -> str:
        monkeypatch.setattr(
            terminal, "SafeConsole", lambda **given: SafeConsole(**given, **settings)
        )
        console = terminal.make_console()
        with console.capture() as text:
            terminal.print_failures(["[one] of two"], console)
        return text.get()

    assert ESCAPE in shown(force_terminal=True)
    assert shown(force_terminal=False) == "failed: [one] of two\n"
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[31m" not in shown(force_terminal=True)
    assert terminal.make_console().width >= 80


@pytest.mark.parametrize(
    ("does", "waits_not_for"),
    [
        (
            "import halfseen.cli.app as app; sys.argv = ['halfseen', '--help']; app.main()",
            ["numpy", "pydantic", "halfseen.cli.fit", "halfseen_bench.cli.bench"],
        ),
        (
            "from halfseen import HalfSeenClassifier as Ours; Ours().get_params()",
            ["torch", "lightgbm"],
        ),
    ],
)
def test_help_and_an_import_do_not_wait_for_the_library(does, waits_not_for):
    code = f"""
import atexit, sys
atexit.register(lambda: print([m for m in {waits_not_for} if m in sys.modules], file=sys.stderr))
{does}
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_each_says_of_itself(name):
    summary, *_ = imported(name).help.split("\n\n")
    assert " ".join(summary.split()) == COMMANDS[name][1]


def test_a_small_fit_keeps_to_one_thread_and_gives_the_others_back():
    code = """
import torch, threadpoolctl
from halfseen.parallel import one_thread_if_small
torch.set_num_threads(2)
def most():
    return max(pool["num_threads"] for pool in threadpoolctl.threadpool_info())
with one_thread_if_small(1000):
    print(torch.get_num_threads(), most())
print(torch.get_num_threads())
with one_thread_if_small(10**9):
    print(torch.get_num_threads())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "1", "2", "2"]


def test_every_public_name_is_there():
    import halfseen as library

    for name in library.__all__:
        assert getattr(library, name) is not None
    assert set(library.__all__) <= set(dir(library))
    with pytest.raises(AttributeError, match="'nothing'"):
        library.nothing  # noqa: B018


def test_completion_knows_the_commands(monkeypatch, capsys):
    monkeypatch.setenv("_HALFSEEN_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "halfseen pre")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert halfseen().out.split() == ["predict"]


def test_exit_codes_are_documented():
    page = (DOCS / "terminal.md").read_text()
    assert dict(re.findall(r"^\| (\d+) \| (.+) \|$", page, re.MULTILINE)) == {
        str(code): meaning for code, meaning in EXIT_CODES.items()
    }


def test_the_version_is_printed():
    assert re.fullmatch(r"halfseen \d+\.\d+\.\d+(\.dev\d+)?\n", halfseen("--version").out)


# --- class proportions ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def clicks(tmp_path_factory):
    """A model of two overlapping classes, and tables with other shares of them."""
    import numpy as np
    import pyarrow as pa

    folder = tmp_path_factory.mktemp("clicks")
    random = np.random.default_rng(0)

    def table(rows: int, share: float, *, moved: float = 0.0) -> pa.Table:
        click = random.random(rows) < share
        x = random.normal(np.where(click, 1.0, -1.0) + moved)
        return pa.table(
            {"x": x, "z": x + random.normal(size=rows), "click": np.where(click, "yes", "no")}
        )

    write(table(600, 0.5), folder / "source.parquet")
    write(table(1500, 0.1).drop_columns(["z", "click"]), folder / "rare.parquet")
    (folder / "tiny.toml").write_text(TINY)
    run = halfseen("fit", folder / "source.parquet", folder / "rare.parquet", "--label", "click",
                   "--config", folder / "tiny.toml", "-o", folder / "model")  # fmt: skip
    assert run.code == 0, run.err
    return folder


def test_scores_are_corrected_for_shares_that_are_known(clicks, tmp_path):
    import pandas as pd

    plain, corrected = tmp_path / "plain.csv", tmp_path / "corrected.csv"
    scored = ("predict", clicks / "model", clicks / "rare.parquet")
    assert halfseen(*scored, "-o", plain).code == 0
    run = halfseen(*scored, "-o", corrected, "--class-share", "yes=0.1", "--json")
    assert document(run)["class_shares"] == pytest.approx({"no": 0.9, "yes": 0.1})
    before, after = pd.read_csv(plain), pd.read_csv(corrected)
    assert before["p_yes"].mean() > 0.15
    assert after["p_yes"].mean() == pytest.approx(0.1, abs=0.03)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (["maybe=0.1"], "maybe=0.1 is not one of a class of the model (no, yes) and a share"),
        (["yes=often"], "a share from 0 to 1"),
        (["yes=0.7", "no=0.6"], "The class shares sum to 1.3, not to 1"),
    ],
)
def test_shares_that_cannot_be_are_refused(clicks, tmp_path, said, sentence):
    shares = [word for entry in said for word in ("--class-share", entry)]
    data = clicks / "rare.parquet"
    run = halfseen("predict", clicks / "model", data, "-o", tmp_path / "s.csv", *shares)
    assert run.code == 2
    assert sentence in run.err
    assert not list(tmp_path.iterdir())


def test_no_column_name_reaches_the_terminal_as_a_command(tmp_path, tables):
    """A title is changed, a line cleared, a file written by some terminals: by text alone."""
    hostile = "\x1b]0;owned\x07 \x9b2J \u202esecret"
    for name in ("source", "target"):
        table = pa.parquet.read_table(tables / f"{name}.parquet")
        names = [hostile if column == "shop" else column for column in table.column_names]
        write(table.rename_columns(names), tmp_path / f"{name}.parquet")
    both = tmp_path / "source.parquet", tmp_path / "target.parquet"
    fit = ("fit", *both, "--label", "click", "--id", "user", "--config", tables / "tiny.toml",
           "-o", tmp_path / "model")  # fmt: skip
    wrong = ("fit", *both, "--label", hostile, "-o", tmp_path / "other")
    for run in (halfseen(*fit), halfseen("inspect", tmp_path / "model"), halfseen(*wrong),
                halfseen(*fit, "--json", "--force")):  # fmt: skip
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", run.out + run.err)
    names = [column["name"] for column in json.loads(run.out)["columns"]]
    assert hostile in names
