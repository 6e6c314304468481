"""Labels that some target rows have: what a fit makes of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import halfseen
from halfseen.errors import InputError, OptionError
from halfseen.fitting import target_labels as labelling
from halfseen.metrics import row_losses
from halfseen.model.summaries import labels_sentence, told
from halfseen.targets import ClassTarget
from halfseen.weights import Weights

CLASSES = np.array(["no", "yes"])


def two_tables(seed: int = 0, rows: int = 240, *, yes: float = 0.5, turned: bool = False):
    """Return a source and a target, with other class shares and maybe another meaning of `b`."""
    random = np.random.default_rng(seed)

    def table(share: float, sign: float) -> pd.DataFrame:
        y = random.random(rows) < share
        a = random.normal(size=rows) + 1.2 * y
        b = random.normal(size=rows) + 1.6 * sign * y
        test = random.normal(size=rows) + 1.5 * y
        return pd.DataFrame({"a": a, "b": b, "test": test, "sick": CLASSES[y.astype(int)]})

    return table(0.5, 1.0), table(yes, -1.0 if turned else 1.0).drop(columns="test")


def some_labels(target: pd.DataFrame, count: int) -> pd.DataFrame:
    """Return the target with labels in its first rows alone."""
    return target.assign(sick=target.sick.where(np.arange(len(target)) < count, None))


def loss_of(model: halfseen.Model, target: pd.DataFrame, skip: int) -> float:
    rest = target.iloc[skip:]
    return float(row_losses(model.predict_proba(rest), model.positions(rest.sick)).mean())


def fitted(source, target, members=("regression",), **settings):
    return halfseen.fit(source, target, "sick", members=members, report=False, **settings)


@pytest.mark.filterwarnings("ignore")
def test_a_few_labels_move_probabilities_to_the_target():
    source, target = two_tables(yes=0.1)
    before = fitted(source, target.drop(columns="sick"))
    model = fitted(source, some_labels(target, 25))
    found = model.metrics["target_labels"]
    assert (found["rows"], found["used_for"]) == (25, "weights")
    assert set(found["losses"]) == {"nothing", "weights"}
    assert len(model.members) == len(before.members) == 1
    assert loss_of(model, target, 25) < loss_of(before, target, 25) - 0.05
    assert model.class_prior[1] < 0.35 < 0.45 < before.class_prior[1]


@pytest.mark.filterwarnings("ignore")
def test_more_labels_are_learned_from():
    source, target = two_tables(turned=True)
    before = fitted(source, target.drop(columns="sick"))
    model = fitted(source, some_labels(target, 90), ("forest", "regression"))
    found = model.metrics["target_labels"]
    assert (found["rows"], found["used_for"]) == (90, "training")
    assert len(model.members) == 4
    assert sum(model.metrics["weights"].values()) == pytest.approx(1)
    assert "logistic regression with target labels" in " ".join(told(model.metrics))
    loss = loss_of(model, target, 90)
    assert loss < loss_of(before, target, 90) - 0.1
    # What cross-validation said of rows without a label is near what they show.
    low, high = found["measured"]["metrics"]["cross_entropy"]["interval"]
    assert low < loss < high


def test_labels_that_bring_nothing_leave_the_model_as_it_is():
    source, target = two_tables()
    random = np.random.default_rng(5)
    noise = target.assign(sick=random.permutation(target.sick))  # no column tells these labels
    model = fitted(source, some_labels(noise, 12))
    found = model.metrics["target_labels"]
    if found["used_for"] == "nothing":
        plain = fitted(source, target.drop(columns="sick"))
        assert np.array_equal(model.predict_proba(target), plain.predict_proba(target))
    best = min(found["losses"].values())
    assert found["losses"][found["used_for"]] == best


def test_the_saved_model_and_its_graph_say_the_same(tmp_path):
    onnx = pytest.importorskip("halfseen.export.onnx")
    source, target = two_tables(yes=0.15)
    model = fitted(source, some_labels(target, 20))
    assert len(model.weights.bias) == 2
    model.save(tmp_path / "model")
    loaded = halfseen.load(tmp_path / "model")
    assert np.array_equal(loaded.predict_proba(target), model.predict_proba(target))
    assert onnx.check_parity(loaded, onnx.onnx_model(loaded)) < 1e-5


def test_maps_of_drifted_columns_are_weighed_by_labels():
    random = np.random.default_rng(3)
    rows, y = random.normal(size=(300, 6)), np.arange(300) % 2
    rows[:, :3] += 2.0 * y[:, None]
    names = [f"c{k}" for k in range(6)]
    source = pd.DataFrame(rows, columns=names).assign(sick=CLASSES[y])
    # The target's rows are far away; what looks plausible may well be wrong.
    target = pd.DataFrame(8.0 * rows + 30.0, columns=names).drop(columns="c5")
    target["sick"] = CLASSES[y]
    with pytest.warns(UserWarning, match="times as far from source rows"):
        model = fitted(source, some_labels(target, 40))
    assert "alignment" in model.metrics
    found = model.metrics["target_labels"]
    assert found["losses"][found["used_for"]] <= found["losses"]["nothing"]
    assert loss_of(model, target, 40) < 0.55


@pytest.mark.parametrize(
    ("count", "settings", "says"),
    [
        (0, {}, "The label column 'sick' of the target is empty in every row."),
        (5, {}, "5 of the target's 240 rows have a label, too few to be used: label at least 10."),
        (30, {}, "30 of the target's 240 rows have a label, and the fit uses them."),
        (30, {"target_labels": False}, "they are not used, as asked; model.evaluate measures"),
        (240, {}, "All 240 target rows have a label: they are not used for training"),
        (240, {"target_labels": True}, "240 of the target's 240 rows have a label, and the fit"),
    ],
)
def test_a_label_column_of_the_target_always_gets_a_sentence(count, settings, says):
    source, target = two_tables()
    table = some_labels(target, count)
    spec = halfseen.data.column_spec.ColumnSpec("sick", in_python=True, **settings)
    read = halfseen.data.frames.read_frame
    found = halfseen.data.schema_inference.infer_schema(read(source, "s"), read(table, "t"), spec)
    assert any(says in note for note in found.notes)
    assert found.labelled == (count if "the fit" in says and "lets" not in says else 0)


def test_a_label_that_the_source_does_not_know_is_refused():
    source, target = two_tables()
    table = some_labels(target, 30)
    table.loc[7, "sick"] = "maybe"
    with pytest.raises(InputError, match=r"value 'maybe', which is none of the source's classes"):
        fitted(source, table)


def test_numbers_with_gaps_are_the_labels_of_whole_numbers():
    source, target = two_tables()
    source["sick"] = (source.sick == "yes").astype(int)
    target["sick"] = (target.sick == "yes").astype(float)
    target.loc[30:, "sick"] = np.nan
    assert fitted(source, target).metrics["target_labels"]["rows"] == 30


def test_the_estimator_takes_masked_labels_of_the_target():
    source, target = two_tables(yes=0.15)
    y = np.where(np.arange(240) < 30, target.sick == "yes", np.nan)
    model = halfseen.HalfSeenClassifier(members=["regression"], random_state=0)
    rows = target.drop(columns="sick")
    model.fit(source.drop(columns="sick"), (source.sick == "yes").astype(int), rows, y_target=y)
    assert model.model_.metrics["target_labels"]["rows"] == 30
    assert any("30 of the target's 240 rows" in note for note in model.notes_)
    with pytest.raises(InputError, match="There are 240 target rows and 30 labels in y_target"):
        model.fit(source.drop(columns="sick"), source.sick, rows, y_target=y[:30])
    with pytest.raises(OptionError, match="y_target needs X_target"):
        model.fit(source.drop(columns="sick"), source.sick, y_target=y)
    with pytest.raises(OptionError, match="y_target goes with X_target"):
        model.fit(rows, target.sick, y_target=y, sample_domain=np.ones(240))


def test_tables_that_memory_does_not_hold_use_labels_too(tmp_path):
    source, target = two_tables(yes=0.15)
    source.to_parquet(tmp_path / "s.parquet")
    some_labels(target, 60).to_parquet(tmp_path / "t.parquet")
    model = fitted(tmp_path / "s.parquet", tmp_path / "t.parquet", memory_mib=0)
    assert model.metrics["target_labels"]["rows"] == 60


def test_the_bias_is_the_change_of_class_shares():
    random = np.random.default_rng(0)
    y = (random.random(20_000) < 0.2).astype(int)
    x = random.normal(size=20_000) + y
    score = x - 0.5  # log odds where both classes are as frequent
    answers = -np.log1p(np.exp(np.stack([score, -score], axis=1)))
    bias = ClassTarget.of(2).fit_bias(answers, y)
    assert bias[1] - bias[0] == pytest.approx(np.log(0.2 / 0.8), abs=0.06)
    assert sum(bias) == pytest.approx(0)
    moved = np.exp(Weights((1.0,), bias=bias).combined([answers], ClassTarget.of(2)))
    assert moved[:, 1].mean() == pytest.approx(0.2, abs=0.01)


def test_the_sentence_tells_what_was_done_and_measured():
    source, target = two_tables(yes=0.15)
    model = fitted(source, some_labels(target, 20))
    says = labels_sentence(model.metrics)
    assert says.startswith("20 labelled target rows were used for ")
    assert "by cross-validation, cross-entropy" in says
    assert labelling.ENOUGH > 20
    assert "trained" not in says
