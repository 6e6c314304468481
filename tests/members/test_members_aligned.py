"""Maps of drifted columns: their algebra, the judge, and a fit that needs them."""

import numpy as np
import pandas as pd
import pytest
from onnx import TensorProto, helper
from onnxruntime import InferenceSession

import halfseen
from halfseen import HalfSeenClassifier, load
from halfseen.errors import InputError
from halfseen.export.member_graphs import add_map
from halfseen.export.onnx import check_parity, onnx_model
from halfseen.export.onnx_graph import GraphBuilder
from halfseen.fitting import prepared_rows
from halfseen.fitting.drift import SELF_TRAINED
from halfseen.members import Aligned
from halfseen.members.aligned import (
    ColumnMap,
    Continuous,
    continuous_columns,
    distance_of,
    judged_weights,
)

COLUMNS = Continuous(
    np.array([0, 2]), np.array([5.0, -1.0]), np.array([2.0, 3.0]), np.array([False, True])
)


def drifted(rows=400, seed=0, classes=4):
    """Return a source, its labels, and a target whose sensors read three times as much and more."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, 2 * rows)
    centres = random.normal(size=(classes, 6)) * 3
    values = centres[labels] + random.normal(size=(2 * rows, 6))
    frame = pd.DataFrame(values, columns=list("abcdef"))
    target = frame[rows:].drop(columns="f") * 3.0 + 40.0
    return frame[:rows], labels[:rows], target, labels[rows:]


def test_a_map_is_what_its_docstring_says_and_comes_back():
    rows = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    mapped = ColumnMap.standard(COLUMNS, rows, logarithm=True)
    raw = 2.0 * rows[:, 0].astype(float) + 5.0
    logs = np.sign(raw) * np.log1p(np.abs(raw))
    expected = (logs - logs.mean()) / logs.std()
    other = 3.0 * rows[:, 2].astype(float) - 1.0  # a logarithm already
    moved = mapped(rows)
    assert np.allclose(moved[:, 0], expected, atol=1e-5)
    assert np.allclose(moved[:, 2], (other - other.mean()) / other.std(), atol=1e-5)
    assert np.array_equal(moved[:, 1], rows[:, 1])
    again = ColumnMap.restored(mapped.tensors(), 3)
    assert np.array_equal(again(rows), moved)

    builder = GraphBuilder(["moved"])
    builder._inputs.append(helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", 3]))
    builder.output(add_map(mapped, builder, "rows", 3), "moved", TensorProto.FLOAT, 3)
    session = InferenceSession(builder.model({}).SerializeToString())
    assert np.allclose(session.run(None, {"rows": rows})[0], moved, atol=1e-6)


def test_forged_maps_are_refused():
    rows = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    tensors = ColumnMap.standard(COLUMNS, rows, logarithm=True).tensors()
    with pytest.raises(InputError, match="beyond the 2 there are"):
        ColumnMap.restored(tensors, 2)
    with pytest.raises(InputError, match="do not fit together"):
        ColumnMap.restored(tensors | {"slope": tensors["slope"][:1]}, 3)
    with pytest.raises(InputError, match="has the tensors"):
        ColumnMap.restored({"slope": tensors["slope"]}, 3)


def test_numbers_and_integers_measure_but_flags_and_constants_do_not():
    random = np.random.default_rng(0)
    flag = random.integers(0, 2, 500)
    columns = [random.normal(size=500), random.integers(0, 9, 500), flag, np.zeros(500), flag]
    rows = np.stack(columns, axis=1)
    given = Continuous(np.arange(5), np.zeros(5), np.ones(5), np.zeros(5, dtype=bool))
    target = rows + np.array([0, 0, 0, 5, 5])  # the last is read as 5 and 6, and so no flag
    assert continuous_columns(given, rows, target).positions.tolist() == [0, 1, 4]


def test_rows_that_repeat_are_not_near():
    random = np.random.default_rng(0)
    rows, others = random.integers(0, 4, (2, 800, 3)).astype(np.float32)
    assert 0.8 < distance_of(rows, others).times < 1.25
    # A reading between the source's integers is not infinitely far from them.
    assert distance_of(rows, others + 0.1).times < 1.5


def test_drift_is_far_rows_and_not_rows_of_other_frequency():
    random = np.random.default_rng(0)
    rows = random.normal(size=(800, 5)).astype(np.float32)
    often = rows[rows[:, 0] > 0.5]
    assert distance_of(rows, often).outside < 0.15
    assert distance_of(rows, rows * 3 + 10).times > 3


def test_rows_of_a_rare_kind_are_not_drift():
    """Most source rows are near each other; nearly all of the target's are of the others."""
    random = np.random.default_rng(0)
    near, spread = random.normal(size=(2, 800, 5)).astype(np.float32)
    source = np.concatenate([0.1 * near, 3 + 2 * spread[:200]])
    found = distance_of(source, np.concatenate([0.1 * near[:50], 3 + 2 * spread[200:]]))
    assert found.outside < 0.3


def test_clear_cases_count_alone_and_close_ones_are_hedged():
    assert judged_weights([0.3, 3.0])[0] > 0.99
    assert np.allclose(judged_weights([0.3, 0.3]), 0.5)


@pytest.fixture(autouse=True)
def one_part(monkeypatch):
    monkeypatch.setattr(prepared_rows, "SMALL", 0)  # one part held out instead of five folds


def test_a_fit_maps_drifted_columns_and_its_folder_and_graph_do_the_same(tmp_path):
    source, labels, target, truth = drifted()
    settings = {"effort": "quick", "random_state": 0}
    model = HalfSeenClassifier(**settings).fit(source, labels, X_target=target)
    plain = HalfSeenClassifier(**settings, align=False)
    assert plain.fit(source, labels, X_target=target).score(target, truth) < 0.8
    assert model.score(target, truth) > 0.95
    assert all(isinstance(member, Aligned) for member in model.model_.members)
    told = model.model_.metrics["alignment"]
    assert told["drift"] > 1.5
    assert len(told["maps"]) == 6
    assert sum(entry["weight"] for entry in told["maps"]) == pytest.approx(1.0)
    with pytest.raises(InputError, match="no networks, and so no latents"):
        model.model_.transform(target)

    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert np.array_equal(again.predict_proba(target), model.predict_proba(target))
    assert check_parity(again, onnx_model(again)) < 1e-4

    with again.source_statistics(again.prepare(source)):
        assert (again.predict(source) == labels).mean() > 0.95


def test_nothing_is_mapped_where_the_target_lies_among_the_source():
    source, labels, target, _ = drifted()
    model = HalfSeenClassifier(effort="quick", random_state=0)
    model.fit(source, labels, X_target=(target - 40.0) / 3.0)
    assert "alignment" not in model.model_.metrics
    assert not any(isinstance(member, Aligned) for member in model.model_.members)


def test_labels_of_the_target_weigh_each_map_by_itself(tmp_path):
    source, labels, target, truth = drifted()
    said = np.random.default_rng(0).integers(0, 4, len(truth))  # what no map agrees with
    known = np.where(np.arange(len(truth)) < 20, said.astype(object), None)
    model = HalfSeenClassifier(members=["regression"], random_state=0)
    found = model.fit(source, labels, X_target=target, y_target=known).model_
    assert found.metrics["target_labels"]["used_for"] == "weights"
    assert len(found.members) > 2
    assert all(len(member.alone()) == 1 for member in found.members)
    assert sum(found.weights.members) == pytest.approx(1.0)
    named = found.metrics["weights"]
    assert set(named) == {"regression, values", "regression, logarithms", SELF_TRAINED}
    found.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert np.array_equal(again.predict_proba(target), found.predict_proba(target))


def test_a_target_that_has_nothing_to_do_with_the_source_raises_an_alarm():
    source, labels, target, _ = drifted()
    table = source.assign(label=labels)
    others = target * 0 + np.random.default_rng(1).normal(0, 30, target.shape)
    with pytest.warns(UserWarning, match="the model guesses where it has seen nothing"):
        model = halfseen.fit(table, others, "label", members=["regression"])
    assert {"drift", "range", "unit"} <= {alarm.kind for alarm in model.alarms}
