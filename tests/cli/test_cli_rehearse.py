"""`halfseen rehearse` as a person runs it."""

import json

import pytest
from tables_cli import TINY, halfseen, source_table, target_table, write

from halfseen.labels import Classes
from halfseen.rehearsal import MODELS, RehearsalStage, baselines


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
    assert {run["model"] for run in found["runs"]} == {*MODELS, *baselines(Classes.of(2))}
    assert found["verdict"] in result.err


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--models", "Adaptation-Full"), "Full model needs a target"),
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
