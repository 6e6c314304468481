"""``halfseen tune`` as a person runs it."""

from __future__ import annotations

import json
import tomllib

import pytest
from tables_cli import TINY, halfseen, replaced, source_table, target_table, write

from halfseen.cli.tune import _toml
from halfseen.settings import FitSettings
from halfseen.tuning import _Rows, with_params

pytest.importorskip("optuna")
pytestmark = pytest.mark.usefixtures("one_part")


def tune(tables, output, *more):
    return halfseen(
        "tune", tables / "source.parquet", tables / "target.parquet", "--label", "click",
        "--id", "user", "--config", tables / "tiny.toml", "--score", "source_loss",
        "-o", output, *more,
    )  # fmt: skip


def test_from_two_tables_to_settings_that_fit_reads(tables, tmp_path):
    output = tmp_path / "best.toml"
    both = ("--models", "Adaptation-Imputation,Source-IgnoreComponent")
    run = tune(tables, output, *both, "--trials", 2)
    assert run.code == 0, run.err
    assert run.err.count("source_loss") == 4
    assert "lower is better" in run.out
    best = tomllib.loads(output.read_text())
    assert best["label"] == "click"
    assert best["id"] == ["user"]
    assert best["models"][0] in both[1].split(",")
    assert best["options"]["tables"]["latent_size"] == 3, "what the configuration says is kept"

    fitted = halfseen(
        "fit", tables / "source.parquet", tables / "target.parquet", "--config", output,
        "-o", tmp_path / "model",
    )  # fmt: skip
    assert fitted.code == 0, fitted.err

    longer = tune(tables, output, *both, "--trials", 3, "--json")
    assert longer.err.count("source_loss ") == 3, "the first four are kept; a title"
    found = json.loads(longer.out)
    assert len(found["trials"]) == 6
    assert found["best"]["value"] == min(trial["value"] for trial in found["trials"])
    rate = tomllib.loads(output.read_text())["options"]["training"]["learning_rate"]
    assert found["best"]["settings"]["training.learning_rate"] == rate
    other = tune(tables, output, *both, "--trials", 3, "--seed", 5)
    assert other.code == 2
    assert "The storage holds another search" in other.err


def test_weights_of_a_settings_file_count(tables, tmp_path, monkeypatch):
    given = []

    def spied(self, settings, score):
        given.append((self.training.weights, settings.class_weight))
        return 1.0

    monkeypatch.setattr(_Rows, "value", spied)
    config = tmp_path / "weighted.toml"
    config.write_text('weight = "visits"\nclass_weight = {yes = 3}\n' + TINY)
    run = tune(tables, tmp_path / "best.toml", "--config", config, "--trials", 1)
    assert run.code == 0, run.err
    ((weights, of_classes),) = given
    assert len(set(weights)) > 1
    assert of_classes == {"yes": 3}
    best = tomllib.loads((tmp_path / "best.toml").read_text())
    assert (best["weight"], best["class_weight"]) == ("visits", ["yes=3.0"])


def test_tables_beyond_memory_are_sampled(tables, tmp_path):
    config = tmp_path / "streamed.toml"
    config.write_text("memory_mib = 0\n" + TINY)
    run = tune(tables, tmp_path / "best.toml", "--config", config, "--trials", 1)
    assert run.code == 0, run.err
    assert tomllib.loads((tmp_path / "best.toml").read_text())["memory_mib"] == 0


def test_mistakes_are_sentences(tables, tmp_path):
    run = tune(tables, tmp_path / "best.toml", "--score", "accuracy")
    assert run.code == 2
    assert "The score 'accuracy' is unknown" in run.err
    run = tune(tables, tmp_path / "best.toml", "--models", "Best")
    assert run.code == 2
    assert "There is no model 'Best'" in run.err
    assert not (tmp_path / "best.toml").exists()


def test_a_damaged_storage_is_a_sentence(tables, tmp_path):
    kept = tmp_path / "best.db"
    kept.write_bytes(b"SQLite format 3\0" + b"?" * 5000)
    run = tune(tables, tmp_path / "best.toml", "--trials", 1)
    assert run.code == 2
    assert f"The trials cannot be kept in {kept} (" in " ".join(run.err.split())
    assert not (tmp_path / "best.toml").exists()


def test_a_stopped_search_says_how_to_go_on(tables, tmp_path, monkeypatch):
    value, ran = _Rows.value, []

    def interrupted(self, settings, score):
        ran.append(settings)
        if len(ran) == 2:
            raise KeyboardInterrupt
        return value(self, settings, score)

    monkeypatch.setattr(_Rows, "value", interrupted)
    run = tune(tables, tmp_path / "best.toml", "--trials", 2)
    assert run.code == 130
    assert "Run the command again to go on" in run.err
    monkeypatch.undo()
    run = tune(tables, tmp_path / "best.toml", "--trials", 2)
    assert run.code == 0, run.err
    assert run.err.count("source_loss") == 1


def test_settings_of_every_kind_become_toml():
    config = FitSettings(
        label='click "now"', drop=["a b", "ü\x7f"], positive=True, seed=3,
        dates={"visit": ["month", "hour@Europe/Berlin"]}, options=tomllib.loads(TINY)["options"],
    )  # fmt: skip
    written = tomllib.loads(
        _toml(with_params(config, {"refine": True, "training.learning_rate": 1e-7}))
    )
    assert written.pop("options") == {
        **config.options, "training": config.options["training"] | {"learning_rate": 1e-7},
    }  # fmt: skip
    assert written == {
        "label": 'click "now"', "drop": ["a b", "ü\x7f"], "positive": True, "seed": 3,
        "dates": ["visit=month,hour@Europe/Berlin"], "refine": True,
    }  # fmt: skip


def test_what_is_said_of_columns_and_rows_holds_in_a_search(tmp_path):
    source = source_table(160)
    texts = ["unknown" if k == 7 else str(v) for k, v in enumerate(source["basket"].to_pylist())]
    run = halfseen(
        "tune", write(replaced(source, "basket", texts), tmp_path / "source.csv"),
        write(target_table(120), tmp_path / "target.csv"), "--label", "click", "--id", "user",
        "--numeric", "basket", "--weight", "visits", "--class-weight", "balanced", "--trials", 2,
        "--score", "source_loss", "-o", tmp_path / "best.toml",
    )  # fmt: skip
    assert run.code == 0, run.err
    assert "2 fits of each of Trees and regression" in run.out
    best = tomllib.loads((tmp_path / "best.toml").read_text())
    assert "members" in best, "without networks members are searched"
    assert (best["numeric"], best["weight"]) == (["basket"], "visits")
    assert "models" not in best
