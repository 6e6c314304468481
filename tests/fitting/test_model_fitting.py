"""Training from tables: in memory, sampled, chosen, measured, saved."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import halfseen
import tiny
from halfseen import load
from halfseen.data.column_spec import ColumnSpec
from halfseen.data.preprocessing import RowStream
from halfseen.data.schema_inference import InferredTables, infer_schema
from halfseen.data.table_files import open_table
from halfseen.errors import OptionError
from halfseen.fitting import prepared_rows
from halfseen.fitting.pipeline import RULE, Hooks, fit_tables
from halfseen.fitting.prepared_rows import is_resident
from halfseen.metrics import metrics_of
from halfseen.model import model as model_module
from halfseen.model.model import Model
from halfseen.parallel import at_once_workers
from halfseen.progress import Progress
from halfseen.settings import FitSettings

TINY = tiny.TINY | {
    "training.warmup_epochs": 2,
    "training.warmup_batch_size": 16,
    "training.batch_size": 16,
    "training.learning_rate": 1e-2,
}
QUICK: dict[str, Any] = {"options": TINY, "members": ("networks", "regression")}
"""Trees and forests have tests of their own, and take most of a fit of few rows."""
ROWS = 400


def make(folder: Path, *, share: float = 0.5, group: int = 64) -> InferredTables:
    random = np.random.default_rng(0)
    a, b, c = random.normal(size=(3, ROWS))
    c += a
    label = np.where(a + c > np.quantile(a + c, 1 - share), "yes", "no")
    shop = random.choice(["x", "y"], ROWS)
    source = pa.table({"row": np.arange(ROWS), "a": a, "b": b, "shop": shop, "c": c, "y": label})
    target = pa.table({"row": np.arange(300), "a": a[:300] + 0.5, "b": b[:300], "shop": shop[:300]})
    pa.parquet.write_table(source, folder / "source.parquet", row_group_size=group)
    pa.parquet.write_table(target, folder / "target.parquet", row_group_size=group)
    tables = [open_table(folder / f"{name}.parquet") for name in ("source", "target")]
    found = infer_schema(*tables, ColumnSpec("y", id=("row",)))
    assert isinstance(found, InferredTables)
    return found


def fitted(found: InferredTables, **given: Any) -> Model:
    return fit_tables(found, FitSettings(**QUICK | given)).model


@pytest.fixture(autouse=True)
def one_fold(monkeypatch):
    """Hold out one part, as with many rows: two trainings instead of six."""
    monkeypatch.setattr(prepared_rows, "SMALL", 0)


@pytest.fixture
def found(tmp_path: Path) -> InferredTables:
    return make(tmp_path)


@pytest.mark.parametrize("memory", [512, 0], ids=["in memory", "a sample"])
def test_a_model_is_trained_measured_and_comes_back_bit_for_bit(memory, found, tmp_path):
    settings = FitSettings(
        **QUICK | {"options": TINY | {"training.joint_epochs": 8}, "memory_mib": memory}
    )
    assert is_resident(found, settings) == (memory > 0)
    model = fit_tables(found, settings).model
    hidden = model.metrics["held_out_source"]["without_missing_block"]
    assert hidden["auc"] > 0.75
    assert model.metrics["held_out_source"]["with_missing_block"]["auc"] > 0.75
    assert model.metrics["members"]["regression"]["rows"] == hidden["rows"]
    assert model.metrics["class_counts"] == {"no": 200, "yes": 200}
    model.save(tmp_path / "model")
    loaded = halfseen.load(tmp_path / "model")
    target = pa.parquet.read_table(tmp_path / "target.parquet")
    np.testing.assert_array_equal(loaded.predict_proba(target), model.predict_proba(target))
    assert loaded.schema == model.schema
    assert loaded.metrics == model.metrics
    assert loaded.training_data["source"]["rows"] == ROWS


@pytest.mark.parametrize("memory", [512, 0], ids=["in memory", "a sample"])
def test_the_same_seed_gives_the_same_model(memory, found, tmp_path):
    target = pa.parquet.read_table(tmp_path / "target.parquet")
    first, second, other = (
        fitted(found, seed=seed, memory_mib=memory).predict_proba(target) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_frames_of_other_libraries_are_scored_alike(found, tmp_path):
    import polars as pl

    model = fitted(found)
    table = pa.parquet.read_table(tmp_path / "target.parquet")
    expected = model.predict_proba(table)
    shuffled = table.select(["shop", "b", "a"])
    for frame in (table.to_pandas(), pl.from_arrow(table), shuffled, table.to_batches()[0]):
        got = model.predict_proba(frame)
        np.testing.assert_allclose(got, expected[: len(got)], atol=1e-6)
    assert set(model.predict(table)) <= {"yes", "no"}


def test_many_rows_are_scored_in_shares(found, tmp_path, monkeypatch):
    model = fitted(found)
    target = pa.parquet.read_table(tmp_path / "target.parquet")
    whole, sizes = model.predict_proba(target), []
    answer = Model.raw_prediction
    monkeypatch.setattr(model_module, "SHARE", 128)
    monkeypatch.setattr(Model, "raw_prediction", lambda *a: sizes.append(len(a[1])) or answer(*a))
    np.testing.assert_allclose(model.predict_proba(target), whole, rtol=1e-6)
    assert sizes == [100, 100, 100]


def test_probabilities_speak_of_the_source_frequencies(tmp_path):
    found = make(tmp_path, share=0.1)
    options = TINY | {"training.joint_epochs": 6, "training.balanced": True}
    model = fitted(found, models=("Source-IgnoreComponent",), options=options)
    source = pa.parquet.read_table(tmp_path / "source.parquet")
    assert model.predict_proba(source)[:, 1].mean() == pytest.approx(0.1, abs=0.05)


def test_one_of_several_is_chosen_by_the_stated_rule(found):
    said: list[str] = []
    names = ("Adaptation-Imputation", "Source-IgnoreComponent", "Adaptation-ZeroImputation")
    fit = fit_tables(found, FitSettings(models=names, options=TINY), Hooks(say=said.append))
    model = fit.model
    risks = model.metrics["choice"]["weighted_cross_entropy"]
    assert set(risks) == set(names)
    assert model.method.name == min(risks, key=risks.get)
    assert model.metrics["choice"]["rule"] == RULE
    assert any(RULE in sentence for sentence in said)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"options": {"no_such": 1}}, "no_such"),
        ({"models": ("Source-Full", "Source-IgnoreComponent")}, "Full models are for benchmarks"),
        ({"models": ()}, "Name at least one model of"),
        ({"models": ("Magic",)}, "Magic"),
        ({"models": ("Source-IgnoreComponent",), "refine": True}, "does not adapt"),
        ({"effort": "endless"}, "effort='endless' is unknown; choose one of"),
        (
            {"members": ("networks", "trees")},
            r"must name one or more of \['networks', 'regression'",
        ),
    ],
)
def test_settings_are_checked_before_any_work(given, message, found, tmp_path):
    (tmp_path / "source.parquet").unlink()  # whoever opened it would say so
    with pytest.raises(OptionError, match=message):
        fitted(found, **given)


TREES_AND_REGRESSION = ("boosted_trees", "forest", "regression")


@pytest.mark.parametrize(
    "given",
    [
        {"effort": "best"},
        {"options": {"training.joint_epochs": 3}},
        {"models": ("Source-IgnoreComponent",)},
        {"divergence": "transport"},
        {"refine": True},
        {"effort": "quick", "refine": True},
    ],
    ids=str,
)
def test_networks_join_a_table_where_they_are_asked_for(given):
    assert FitSettings().members_for("table") == TREES_AND_REGRESSION
    assert FitSettings(effort="quick", align=False, seed=3).members_for("table") == (
        TREES_AND_REGRESSION
    )
    assert FitSettings(**given).members_for("table") == ("networks", *TREES_AND_REGRESSION)


@pytest.mark.parametrize("given", [{"preset": "paper"}, {}], ids=str)
def test_images_and_presets_of_the_paper_have_networks_alone(given):
    assert FitSettings(**given).members_for("image") == ("networks",)
    if given:
        assert FitSettings(**given).members_for("table") == ("networks",)


def rows_of(inputs: np.ndarray) -> Counter[bytes]:
    return Counter(row.tobytes() for row in inputs)


def test_held_out_rows_and_the_others_are_the_whole_table(found):
    source = RowStream(found.source.table, found.schema, is_source=True, share=0.25)
    held, kept = source.all(held_out=True)[0], source.all()[0]
    whole = RowStream(found.source.table, found.schema, is_source=True).all()[0]
    assert rows_of(held) + rows_of(kept) == rows_of(whole)
    assert 0.15 < len(held) / len(whole) < 0.35
    np.testing.assert_array_equal(held, source.all(held_out=True)[0])
    some, labels = source.at_most(len(kept), 2 * len(kept))
    assert rows_of(some) <= rows_of(kept)
    assert 0.3 < len(labels) / len(kept) < 0.7


def test_members_of_large_tables_learn_from_as_many_rows_as_memory_holds(found, monkeypatch):
    monkeypatch.setattr(prepared_rows, "SAMPLE_ROWS", 20)
    monkeypatch.setattr(prepared_rows, "TRAINING_ROWS", 200)
    few, many = (
        len(prepared_rows._sampled(found, FitSettings(memory_mib=memory)).folds[0].training)
        for memory in (0, 1024)
    )
    assert few < 50 < 100 < many < 300


def test_metrics_of_more_classes_and_of_an_absent_one():
    probability = np.eye(3)[[0, 1, 2, 0]] * 0.7 + 0.1
    found = metrics_of(probability, np.array([0, 1, 2, 1]))
    assert found["accuracy"] == 0.75
    assert found["balanced_accuracy"] == pytest.approx(0.8333)
    assert found["auc"] is not None
    assert metrics_of(probability, np.array([0, 1, 1, 0]))["auc"] is None


class Stop(Progress):
    """Stops everything after some epochs, as Ctrl-C would."""

    left = 0

    def end_epoch(self, record):
        Stop.left -= 1

    def step(self, phase, epoch, step, steps):
        if Stop.left == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("memory", [512, 0], ids=["in memory", "a sample"])
def test_a_stopped_fit_goes_on_where_it_was(memory, found, tmp_path, monkeypatch):
    monkeypatch.setattr(prepared_rows, "SMALL", 1_000)
    monkeypatch.setattr(prepared_rows, "FOLDS", 2)
    settings = FitSettings(**QUICK, memory_mib=memory)
    target = pa.parquet.read_table(tmp_path / "target.parquet")
    expected = fit_tables(found, settings).model
    folder = tmp_path / "unfinished"
    Stop.left = 3
    with pytest.raises(KeyboardInterrupt):
        fit_tables(found, settings, Hooks(lambda title: Stop(), checkpoints=folder))
    kept = {file: file.stat().st_mtime_ns for file in folder.iterdir()}
    assert kept
    Stop.left = -1
    model = fit_tables(found, settings, Hooks(lambda title: Stop(), checkpoints=folder)).model
    # All epochs but the three that were finished before.
    assert -1 - Stop.left == (8 if memory else 4) - 3
    np.testing.assert_array_equal(model.predict_proba(target), expected.predict_proba(target))
    settings = FitSettings(**QUICK, memory_mib=memory, seed=1)
    other = fit_tables(found, settings, Hooks(checkpoints=folder)).model
    assert not np.array_equal(other.predict_proba(target), expected.predict_proba(target))


def test_few_rows_are_all_measured_on(found, monkeypatch):
    monkeypatch.setattr(prepared_rows, "SMALL", 1_000)
    model = fitted(found)
    assert model.metrics["held_out_source"]["without_missing_block"]["rows"] == ROWS


def test_networks_of_all_folds_answer_together(found, monkeypatch, tmp_path):
    monkeypatch.setattr(prepared_rows, "SMALL", 1_000)
    monkeypatch.setattr(prepared_rows, "FOLDS", 3)
    fit = fit_tables(found, FitSettings(options=TINY, members=("networks", "regression")))
    model = fit.model
    assert [member.kind for member in model.members] == ["networks"] * 3 + ["regression"]
    shares = model.metrics["weights"]
    assert model.weights.members[:3] == pytest.approx([shares["networks"] / 3] * 3)
    assert model.weights.members[3] == shares["regression"]
    model.save(tmp_path / "model")
    target = pa.parquet.read_table(tmp_path / "target.parquet")
    again = load(tmp_path / "model").predict_proba(target)
    np.testing.assert_array_equal(again, model.predict_proba(target))
    assert (
        "networks on those that were not held out, 3 of them together"
        in model.metrics["trained_on"]
    )


def test_best_holds_every_row_out_however_many_there_are(found, monkeypatch):
    monkeypatch.setattr(prepared_rows, "SMALL", 0)
    monkeypatch.setattr(prepared_rows, "FOLDS", 2)
    settings = FitSettings(options=TINY, effort="best", members=("networks", "regression"))
    fit = fit_tables(found, settings)
    assert [member.kind for member in fit.model.members] == ["networks"] * 2 + ["regression"]
    assert fit.model.metrics["held_out_source"]["without_missing_block"]["rows"] == ROWS


def test_a_fit_tells_how_many_parts_are_left(found, monkeypatch):
    monkeypatch.setattr(prepared_rows, "SMALL", 1_000)
    monkeypatch.setattr(prepared_rows, "FOLDS", 2)
    told: list[tuple[str, int, int]] = []
    settings = FitSettings(members=("boosted_trees", "regression"), effort="quick")
    fit_tables(found, settings, Hooks(part=lambda *part: told.append(part)))
    assert [part[1:] for part in told] == [(done, 6) for done in range(6)]
    assert told[1][0] == "logistic regression, part 1 of 2"


def test_without_networks_there_is_nothing_to_choose(found, monkeypatch):
    monkeypatch.setattr(prepared_rows, "SMALL", 0)
    said: list[str] = []
    models = ("Adaptation-Imputation", "Adaptation-IgnoreComponent")
    settings = FitSettings(models=models, members=("regression",))
    model = fit_tables(found, settings, Hooks(say=said.append)).model
    assert "The models differ in their networks, which have no part in this fit." in said
    assert "choice" not in model.metrics


def test_the_number_of_cores_changes_no_bit_of_the_model(tmp_path, monkeypatch):
    found = make(tmp_path)
    monkeypatch.setattr(prepared_rows, "SMALL", 1_000)
    tensors = []
    for cores in (1, 2):
        monkeypatch.setenv("OMP_NUM_THREADS", str(cores))
        assert at_once_workers() == cores
        kinds = ("regression", "boosted_trees", "forest")
        fitted(found, members=kinds).save(tmp_path / str(cores))
        tensors.append((tmp_path / str(cores) / "model.safetensors").read_bytes())
    assert tensors[0] == tensors[1]
