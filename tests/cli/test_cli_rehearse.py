"""`halfseen rehearse` as a person runs it."""

import json

import pytest
from tables_cli import TINY, halfseen, source_table, target_table, write

from halfseen.rehearsal import TAUGHT, UNTAUGHT, RehearsalStage, baselines
from halfseen.targets import ClassTarget


@pytest.fixture
def tables(tmp_path):
    config = tmp_path / "tiny.toml"
    config.write_text(TINY)
    return (
        write(source_table(160), tmp_path / "source.csv"),
        write(target_table(120), tmp_path / "target.csv"),
        "--label",
        "click",
        "--config",
        config,
    )


def test_a_rehearsal_ends_with_tables_and_a_verdict(tables, tmp_path):
    output = tmp_path / "found.json"
    result = halfseen("rehearse", *tables, "--repeats", 1, "-o", output, "--json")
    assert result.code == 0, result.err
    for words in ("Models on the slice", "Scores without labels", "would have won"):
        assert words in result.err
    found = json.loads(output.read_text())
    assert json.loads(result.out) == found
    models = {run["model"] for run in found["runs"]}
    assert models == {"Adaptation-Imputation", *baselines(ClassTarget.of(2))}
    assert found["verdict"] in result.err


def test_what_fit_would_fit_is_rehearsed(tables, tmp_path):
    output = tmp_path / "found.json"
    weighed = ("--weight", "visits", "--class-weight", "balanced")
    run = halfseen("rehearse", *tables[:4], "--id", "user", "--repeats", 1, "-o", output, *weighed)
    assert run.code == 0, run.err
    models = {run["model"] for run in json.loads(output.read_text())["runs"]}
    assert models == {TAUGHT, UNTAUGHT, *baselines(ClassTarget.of(2))}
    run = halfseen("rehearse", *tables[:4], "--id", "user", "--rows", 100, *weighed[:2])
    assert run.code == 2
    assert "let it read all 155 (--rows)" in run.err


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--models", "Adaptation-Full"), "Full models are for benchmarks"),
        (("--models", "Best"), "There is no model 'Best'"),
        (("--missing", "speed"), "'speed'"),
    ],
)
def test_mistakes_are_one_sentence(given, words, tables):
    result = halfseen("rehearse", *tables, *given)
    assert result.code == 2
    assert words in result.err
    assert "Traceback" not in result.err


def test_stopping_writes_nothing(tables, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(RehearsalStage, "fit", interrupted)
    output = tmp_path / "found.json"
    result = halfseen("rehearse", *tables, "-o", output)
    assert result.code == 130
    assert "Nothing was written" in result.err
    assert not output.exists()
