"""``halfseen fit``, ``predict`` and ``inspect`` as a person runs them."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
import typer
from rich.console import Console
from tables_cli import TINY, halfseen, replaced, source_table, target_table, write

import halfseen as library
from halfseen.cli.fit_config import read_settings
from halfseen.cli.printing import print_metrics
from halfseen.networks.variants import VARIANTS

HEART_CATEGORIES = "cp,restecg,slope,thal"


@pytest.fixture(scope="module")
def heart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The exported Cleveland and Hungarian tables, with a model of them."""
    root = os.environ.get("HALFSEEN_DATA")
    if not root or not (Path(root) / "heart").is_dir():
        pytest.skip("HALFSEEN_DATA has no folder 'heart'")
    folder = tmp_path_factory.mktemp("heart")
    run = halfseen("data", "export", "heart", "cleveland:hungarian", "-o", folder,
                   "--format", "csv", "--data-dir", root)  # fmt: skip
    assert run.code == 0, run.err
    (folder / "small.toml").write_text(
        TINY.replace("joint_epochs = 1", "joint_epochs = 15\nlearning_rate = 3e-3").replace(
            "[4]", "[16]"
        )
    )
    return folder


def test_heart_from_two_files_to_scores(heart, one_part):
    run = halfseen("fit", heart / "source.csv", heart / "target.csv", "--label", "label",
                   "--categorical", HEART_CATEGORIES, "--config", heart / "small.toml",
                   "-o", heart / "model")  # fmt: skip
    assert run.code == 0, run.err
    spec = {
        line.split()[0]: line.split()[1] for line in run.out.splitlines() if len(line.split()) > 2
    }
    assert [name for name, role in spec.items() if role == "missing"] == ["slope", "ca", "thal"]
    assert "0 164 (54.1%), 1 139 (45.9%)" in run.out
    run = halfseen("predict", heart / "model", heart / "target.csv", "-o", heart / "scores.parquet")
    assert run.code == 0, run.err
    assert "294 rows in" in run.out
    assert "rows a second" in run.out
    scores = pd.read_parquet(heart / "scores.parquet")
    assert list(scores.columns) == ["p_0", "p_1", "prediction"]
    labels = pd.read_csv(heart / "target_labels.csv")["label"]
    assert (scores["prediction"] == labels).mean() > 0.7
    assert halfseen("inspect", heart / "model").code == 0


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".arrow"])
def test_what_was_understood_does_not_depend_on_the_format(ending, tmp_path):
    source = write(source_table(), tmp_path / f"source{ending}")
    target = write(target_table(), tmp_path / f"target{ending}")
    run = halfseen("fit", source, target, "--label", "click", "--id", "user", "--dry-run")
    assert run.code == 0, run.err
    found = {line.split()[0]: line.split()[1:3] for line in run.out.splitlines()}
    assert found["visits"] == ["observed", "count"]
    assert found["basket"] == ["observed", "numeric"]
    assert found["shop"] == ["observed", "categorical"]
    assert found["member"] == ["observed", "boolean"]
    assert found["spend"] == ["missing", "numeric"]
    assert found["grade"] == ["missing", "categorical"]
    assert found["user"] == ["id", "carried"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [source.name, target.name]


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".arrow"])
def test_scores_keep_order_and_ids_and_do_not_depend_on_the_format(ending, tables, tmp_path):
    table = target_table(50)
    order = np.random.default_rng(0).permutation(table.num_columns)
    table = table.select([table.column_names[i] for i in order])
    table = replaced(table, "colour", ["red"] * 50).take(pa.array(np.arange(50)[::-1]))
    data = write(table, tmp_path / f"data{ending}")
    run = halfseen("predict", tables / "model", data, "-o", tmp_path / "scores.parquet")
    assert run.code == 0, run.err
    assert "does not know them: colour" in run.out
    scores = pd.read_parquet(tmp_path / "scores.parquet")
    assert list(scores.columns) == ["user", "p_no", "p_yes", "prediction"]
    ids = list(map(str, range(50))) if ending == ".csv" else list(range(50))
    assert scores["user"].tolist() == ids[::-1]
    np.testing.assert_allclose(scores["p_no"] + scores["p_yes"], 1.0)
    expected = library.load(tables / "model").predict_proba(target_table(50))[::-1]
    np.testing.assert_allclose(scores[["p_no", "p_yes"]], expected, atol=1e-6)
    assert (scores["prediction"] == np.where(expected[:, 1] > 0.5, "yes", "no")).all()


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_scores_are_written_in_the_format_of_the_ending(ending, tables, tmp_path):
    out = tmp_path / f"scores.{ending}"
    assert halfseen("predict", tables / "model", tables / "target.parquet", "-o", out).code == 0
    read = {"csv": pd.read_csv, "parquet": pd.read_parquet, "arrow": pd.read_feather}[ending]
    assert len(read(out)) == 70
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def test_missing_columns_of_complete_rows_are_not_looked_at(tables, tmp_path):
    out = tmp_path / "scores.csv"
    run = halfseen("predict", tables / "model", tables / "source.parquet", "-o", out)
    assert "because the model takes them for missing: spend, grade." in run.out


def test_an_older_model_and_older_scores_are_replaced(tables, tmp_path, one_part):
    arguments = ["fit", tables / "source.parquet", tables / "target.parquet", "--label", "click",
                 "--config", tables / "tiny.toml", "-o", tmp_path / "m"]  # fmt: skip
    assert halfseen(*arguments).code == 0
    first = (tmp_path / "m/model.safetensors").read_bytes()
    assert halfseen(*arguments, "--seed", "5").code == 0
    assert (tmp_path / "m/model.safetensors").read_bytes() != first
    assert halfseen(*arguments).code == 0
    assert (tmp_path / "m/model.safetensors").read_bytes() == first
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_several_models_and_a_sample_from_a_configuration(tables, tmp_path):
    config = tmp_path / "all.toml"
    config.write_text(
        'label = "click"\nid = ["user"]\npositive = "no"\nmemory_mib = 0\n'
        'models = ["Adaptation-Imputation", "Source-IgnoreComponent"]\n'
        + TINY
        + "batch_size = 16\nwarmup_batch_size = 16\n"
    )
    run = halfseen("fit", tables / "source.parquet", tables / "target.parquet", "--config", config,
                   "-o", tmp_path / "model")  # fmt: skip
    assert run.code == 0, run.err
    assert "a sample of large tables" in run.out
    assert "no target label is used" in run.out
    model = library.load(tmp_path / "model")
    assert model.schema.classes == ("yes", "no")
    assert set(model.metrics["choice"]["weighted_cross_entropy"]) == {
        "Adaptation-Imputation",
        "Source-IgnoreComponent",
    }


def test_a_terminal_is_asked_about_doubtful_columns(tables, tmp_path, monkeypatch):
    target = write(replaced(target_table(), "basket", [0.0] * 70), tmp_path / "target.parquet")
    asked: list[str] = []

    def confirm(question: str, *, err: bool) -> bool:
        asked.append(question)
        return True

    monkeypatch.setattr(typer, "confirm", confirm)
    monkeypatch.setattr("halfseen.cli.inputs.is_terminal", lambda: True)
    run = halfseen("fit", tables / "source.parquet", target, "--label", "click", "--id", "user",
                   "--dry-run")  # fmt: skip
    assert run.code == 0, run.err
    assert len(asked) == 1
    assert "'basket' is 0 in every target row" in asked[0]
    found = {line.split()[0]: line.split()[1:2] for line in run.out.splitlines()}
    assert found["basket"] == ["missing"]


def test_inspect_tells_what_the_model_expects(tables):
    run = halfseen("inspect", tables / "model")
    assert run.code == 0
    for said in ("Adaptation-Imputation", "spend", "source.parquet: 80 rows", "AUC", "torch"):
        assert said in run.out
    described = json.loads(halfseen("inspect", tables / "model", "--json").out)
    names = [column["name"] for column in described["preprocessor"]["schema"]["columns"]]
    assert names == ["visits", "basket", "shop", "member", "spend", "grade"]
    assert described["metrics"]["class_counts"] == {"no": 40, "yes": 40}


@pytest.mark.parametrize(("baseline", "is_said"), [(0.4, True), (0.6, False)])
def test_a_model_behind_logistic_regression_says_so(baseline, is_said):
    console = Console(file=io.StringIO(), width=200)
    measured = {"rows": 9, "accuracy": 0.7, "balanced_accuracy": 0.7, "cross_entropy": 0.5}
    metrics = {
        "held_out_source": {"without_missing_block": measured | {"auc": None}},
        "members": {
            "networks": measured | {"auc": 0.8},
            "regression": measured | {"cross_entropy": baseline, "auc": 0.8},
        },
        "trained_on": "some rows",
    }
    print_metrics(metrics, console)
    assert ("may be the better choice" in console.file.getvalue()) == is_said


def test_no_pickle_is_in_a_model_folder(tables):
    files = sorted(path.name for path in (tables / "model").iterdir())
    assert files == ["model.json", "model.safetensors"]
    json.loads((tables / "model/model.json").read_text())
    header = (tables / "model/model.safetensors").read_bytes()
    assert header[8:9] == b"{"


def test_the_configuration_of_the_guide_is_one(tmp_path):
    guide = (Path(__file__).parents[2] / "docs/tables.md").read_text()
    path = tmp_path / "fit.toml"
    path.write_text(guide.split("```toml\n")[1].split("```")[0])
    config = read_settings(path, {})
    assert config.label == "click"
    assert config.options_for(VARIANTS[-1]).training.joint_epochs == 40
    assert config.memory_mib == 256


def test_a_model_of_the_paper_that_is_named_has_networks():
    given = {"label": "click", "models": ["Adaptation-Imputation"]}
    assert "networks" in read_settings(None, given).members_for("table")
    assert "networks" not in read_settings(None, {"label": "click"}).members_for("table")


def test_names_behind_each_other_are_renamed(tmp_path):
    source, target = source_table(), target_table()
    named = {"basket": "Basket", "shop": "SHOP"}
    other = target.rename_columns([named.get(name, name) for name in target.column_names])
    run = halfseen(
        "fit", write(source, tmp_path / "source.csv"), write(other, tmp_path / "target.csv"),
        "--label", "click", "--id", "user", "--rename", "Basket=basket,SHOP=shop",
        "--dry-run", "--json",
    )  # fmt: skip
    spec = {column["name"]: column["role"] for column in json.loads(run.out)["columns"]}
    assert spec["basket"] == spec["shop"] == "observed"
