"""Outputs never destroy inputs: every command refuses before it reads or trains anything."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from tables_cli import Result, halfseen, source_table, target_table, write

from halfseen.data import table_files
from halfseen.errors import InputError, OptionError
from halfseen.model import loading
from halfseen.outputs import Output, check_outputs

pytestmark = pytest.mark.usefixtures("one_part")


@pytest.fixture
def place(tables, tmp_path, monkeypatch) -> Path:
    """A folder to work in: tables as files and as folders, a model, and a person's own files."""
    folder = tmp_path / "place"
    folder.mkdir()
    write(source_table(160), folder / "source.csv")
    write(target_table(120), folder / "target.csv")
    write(source_table(), folder / "many/one.parquet")
    shutil.copytree(tables / "model", folder / "model")
    shutil.copy(tables / "tiny.toml", folder / "tiny.toml")
    (folder / "README.md").write_text("# halfseen at work\n")
    (folder / "notes.json").write_text('{"mine": 1}')
    (folder / "mine").mkdir()
    (folder / "mine/model.json").write_text('{"weights": "of another program"}')
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def no_work(monkeypatch) -> None:
    """Let reading a table or a model fail: a refusal comes before either."""

    def worked(*_: object, **__: object) -> None:
        raise AssertionError("it began to work")

    monkeypatch.setattr(table_files, "open_table", worked)
    monkeypatch.setattr(loading, "load", worked)


def content(folder: Path) -> dict[str, object]:
    return {
        str(path.relative_to(folder)): os.readlink(path) if path.is_symlink() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def check_spared(place: Path, words: str, says: str) -> None:
    before = content(place)
    run = halfseen(*words.split())
    assert content(place) == before, "something was written or lost"
    assert run.code == 2, f"exit code {run.code}\n{run.out}\n{run.err}"
    (line,) = run.err.strip().splitlines()
    assert line.startswith("error: ")
    assert line.endswith(".")
    assert says in line, line


def passed(words: str) -> Result:
    run = halfseen(*words.split())
    assert run.code == 0, run.err
    return run


FIT = "fit source.csv target.csv --label click --id user --config tiny.toml"

INPUTS = [
    ("export model --onnx model/model.safetensors", "lies inside the model model"),
    ("export model --onnx model/graph.onnx", "lies inside the model model"),
    ("export model --onnx model", "is a folder: name a file in it"),
    ("predict model target.csv -o target.csv", "which is the table itself"),
    ("predict model many -o many/one.parquet", "lies inside the table many"),
    ("predict model many -o many/scores.parquet", "lies inside the table many"),
    ("predict model target.csv -o model/scores.csv", "lies inside the model model"),
    ("report model -o model/model.json", "lies inside the model model"),
    ("report model/model.json -o model/report.html", "lies inside the model model"),
    (f"{FIT} -o source.csv", "source.csv, which is a file and no folder"),
    (f"{FIT} -o ../place", "holds the source table source.csv"),
    (f"{FIT} -o .", "is no folder of the model's own"),
    ("fit many target.csv --label click -o many", "which is the source table itself"),
    ("fit many target.csv --label click -o many/model", "lies inside the source table many"),
    (f"{FIT} -o model/inner", "lies inside the model folder"),
]


@pytest.mark.parametrize("force", ["", " --force"])
@pytest.mark.parametrize(("words", "says"), INPUTS, ids=[words for words, _ in INPUTS])
def test_an_input_is_never_an_output(words, says, force, place, no_work):
    check_spared(place, words + force, says)


EXISTING = [
    ("export model --onnx README.md", "The graph would go to README.md, which exists"),
    ("predict model target.csv -o source.csv", "The scores would go to source.csv"),
    ("report model -o README.md", "The report would go to README.md"),
    (f"{FIT} -o mine", "The model would go to mine, which exists"),
    ("data export ads-sim retargeting:prospecting --set rows=9 -o . --format csv", "source.csv"),
]


@pytest.mark.parametrize(("words", "says"), EXISTING, ids=[words for words, _ in EXISTING])
def test_what_the_command_did_not_write_is_kept(words, says, place, no_work):
    check_spared(place, words, says)
    run = halfseen(*words.split())
    assert "or replace it with --force" in run.err


@pytest.mark.parametrize("force", ["", " --force"])
def test_force_does_not_help_where_nothing_can_be_replaced(force, place, no_work):
    (place / "mine/thesis.doc").write_text("mine")
    check_spared(place, f"{FIT} -o mine{force}", "holds other things (thesis.doc)")
    check_spared(place, f"{FIT} -o README.md{force}", "is a file and no folder")
    os.mkfifo(place / "pipe.csv")
    run = halfseen("predict", "model", "target.csv", "-o", "pipe.csv", *force.split())
    assert (run.code, "neither a file nor a folder" in run.err) == (2, True)


@pytest.mark.parametrize("force", ["", " --force"])
def test_a_hard_link_is_the_file(force, place, no_work):
    os.link(place / "many/one.parquet", place / "scores.parquet")
    words = f"predict model many -o scores.parquet{force}"
    check_spared(place, words, "is many/one.parquet of the table")
    os.link(place / "model/model.json", place / "report.html")
    check_spared(place, f"report model -o report.html{force}", "is model/model.json of the model")


@pytest.mark.parametrize("force", ["", " --force"])
def test_a_symbolic_link_is_neither_followed_nor_replaced(force, place, no_work):
    (place / "link.csv").symlink_to("target.csv")
    (place / "link").symlink_to("model")
    (place / "nowhere.html").symlink_to("none.html")
    (place / "linked").symlink_to("many")
    check_spared(place, f"predict model source.csv -o link.csv{force}", "is a symbolic link")
    check_spared(place, f"{FIT} -o link{force}", "link, which is a symbolic link: name the place")
    check_spared(place, f"report model -o nowhere.html{force}", "is a symbolic link")
    check_spared(place, f"predict model many -o linked/s.csv{force}", "inside the table many")
    check_spared(place, f"predict model linked -o many/s.csv{force}", "inside the table linked")
    check_spared(place, f"predict model link.csv -o target.csv{force}", "is the table itself")


def test_a_loaded_model_is_not_saved_over_a_link(place):
    (place / "link").symlink_to("model")
    model = loading.load(place / "model")
    with pytest.raises(InputError, match="is a symbolic link"):
        model.save(place / "link")
    assert (place / "link").is_symlink()


def test_fit_and_predict_and_report_replace_what_they_wrote(place):
    for _ in range(2):
        passed(f"{FIT} -o fitted")
        for ending in ("csv", "parquet", "arrow"):
            passed(f"predict fitted target.csv -o scores.{ending}")
        passed("report fitted -o page.html")
        passed("report fitted")
    (place / "empty.csv").touch()
    passed("predict fitted target.csv -o empty.csv")


def test_export_replaces_what_it_wrote(place):
    pytest.importorskip("onnxruntime")
    passed("export model --onnx graph.onnx")
    passed("export model --onnx graph.onnx")


def test_data_export_replaces_what_it_wrote(place):
    words = "data export ads-sim retargeting:prospecting --set rows=200 --set test_rows=50 -o ads"
    passed(words)
    passed(words)
    (place / "ads/card.json").write_text("mine")
    check_spared(place, words, "which exists")


def test_the_data_sets_are_inputs(place):
    (place / "data/heart").mkdir(parents=True)
    words = "data export heart cleveland:va --data-dir data -o data/heart"
    check_spared(place, words, "lies inside the data set heart")
    check_spared(place, "bench run demo --data-dir data -o data/heart", "inside the data set heart")


def test_a_log_of_somebody_else_is_not_continued(place):
    (place / "runs.jsonl").write_text("one line that is no run")
    check_spared(place, "bench run demo -o .", "runs.jsonl, which exists")
    check_spared(place, "demo -o . --force", "runs.jsonl, which exists")
    (place / "runs.jsonl").unlink()
    (place / "results.json").write_text("mine")
    check_spared(place, "demo -o .", "results.json, which exists")


def test_force_replaces_a_file_of_somebody_else(place):
    passed("report model -o README.md --force")
    assert "halfseen report" in (place / "README.md").read_text()
    passed("predict model target.csv -o source.csv --force")
    assert "prediction" in (place / "source.csv").read_text()
    write(source_table(), place / "source.csv")
    passed(f"{FIT} -o mine --force")
    assert "sha256" in (place / "mine/model.json").read_text()


def test_places_that_cannot_be_looked_at_are_a_sentence(tmp_path):
    loop = tmp_path / "loop.csv"
    loop.symlink_to(loop)
    long = Output(tmp_path / ("x" * 300), "the scores", lambda path: False)
    fine = Output(tmp_path / "scores.csv", "the scores", lambda path: False)
    check_outputs([fine], {"the table": loop, "the model": None})
    with pytest.raises(OptionError, match=r"cannot be written: .*too long"):
        check_outputs([long], {})
