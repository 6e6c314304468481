"""Trees as members: against LightGBM's own predictions, in folders, in graphs, on odd rows."""

from dataclasses import replace

import lightgbm
import numpy as np
import pytest
from onnx import TensorProto, helper
from onnxruntime import InferenceSession
from scipy.special import log_softmax

from halfseen.blocks import Blocks
from halfseen.errors import InputError
from halfseen.export.member_graphs import add_member
from halfseen.export.onnx_graph import GraphBuilder
from halfseen.members import BoostedTreesLearner, ForestLearner, Sample, TrainingJob
from halfseen.members.tree_arrays import TreeArrays
from halfseen.targets import ClassTarget

BLOCKS = Blocks((4,), (2,))
TWO = ClassTarget.of(2)
LEARNERS = (BoostedTreesLearner(rounds=24, rate=0.3), ForestLearner(size=8))


def task(classes=2, rows=300, *, soft=False, seed=0):
    random = np.random.default_rng(seed)
    inputs = random.normal(size=(rows, 4)).astype(np.float32)
    labels = np.digitize(inputs[:, 0] + inputs[:, 1], np.linspace(-1, 1, classes - 1))
    if soft:
        labels = 0.9 * np.eye(classes)[labels] + 0.1 / classes
    return TrainingJob(BLOCKS, ClassTarget.of(classes), Sample(inputs, labels), inputs, seed)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.name)
@pytest.mark.parametrize("classes", [2, 3, 12])
def test_trees_learn_save_and_export(learner, classes):
    given = task(classes, soft=classes == 3)
    member = learner.fit(given)
    rows, labels = given.source.inputs, given.source.labels
    labels = labels if labels.ndim == 1 else labels.argmax(1)
    said = member.raw_prediction(rows)
    assert np.allclose(np.exp(said).sum(1), 1.0)
    assert (said.argmax(1) == labels).mean() > 0.6

    hidden = rows.copy()
    hidden[:, 2] = 99.0
    assert np.array_equal(member.raw_prediction(hidden), said)  # x2 is not looked at

    again = type(member).restored(
        member.describe(), member.tensors(), BLOCKS, ClassTarget.of(classes)
    )
    assert np.array_equal(again.raw_prediction(rows), said)

    builder = GraphBuilder(["answer"])
    builder._inputs.append(helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", 4]))
    builder.output(add_member(member, builder, "rows"), "answer", TensorProto.FLOAT, classes)
    session = InferenceSession(builder.model({}).SerializeToString())
    (logits,) = session.run(None, {"rows": rows})
    assert np.abs(np.exp(log_softmax(logits, axis=1)) - np.exp(said)).max() < 1e-5


def test_sums_are_those_of_lightgbm():
    random = np.random.default_rng(0)
    rows = random.normal(size=(200, 3)).astype(np.float32)
    data = lightgbm.Dataset(rows, rows[:, 0] ** 2)
    booster = lightgbm.train({"verbose": -1, "num_leaves": 5, "num_threads": 1}, data, 7)
    ours = TreeArrays.of([booster]).sums(rows)[:, 0]
    assert np.allclose(ours, booster.predict(rows), atol=1e-12)


def grouped(rows, groups):
    """Rows whose first input is the number of a group, which decides the label at random."""
    random = np.random.default_rng(0)
    inputs = random.normal(size=(rows, 4)).astype(np.float32)
    group = random.integers(0, groups, rows)
    inputs[:, 0] = group / groups
    labels = random.integers(0, 2, groups)[group] ^ (random.random(rows) < 0.05)
    return TrainingJob(BLOCKS, TWO, Sample(inputs, labels), inputs, 0)


def test_large_trees_are_grown_where_small_ones_do_not_find_the_groups():
    learner = BoostedTreesLearner(rounds=100, rate=0.1)
    assert learner.selected(grouped(1500, 150)).large
    noisy = grouped(1500, 4)
    assert not learner.selected(noisy).large
    rare = task(rows=30)
    alone = replace(rare, source=Sample(rare.source.inputs, np.arange(30) // 29))
    assert not learner.selected(alone).large


def test_codes_of_many_rows_are_told_apart():
    """More groups than a column of amounts has bins."""
    given = grouped(6000, 200)
    member = BoostedTreesLearner(rounds=200, rate=0.2, large=True).fit(given)
    right = member.raw_prediction(given.source.inputs).argmax(1) == given.source.labels
    assert right.mean() > 0.93


def test_row_weights_are_repeated_rows():
    given = task(rows=120)
    labels = np.arange(120) % 2  # nothing to learn but how often each class is
    given = replace(given, source=replace(given.source, labels=labels))
    counts = np.where(given.source.labels == 1, 3.0, 1.0)
    weighted = replace(given, source=replace(given.source, weights=counts))
    plain, heavier = (LEARNERS[0].fit(t).raw_prediction(given.target) for t in (given, weighted))
    assert np.exp(heavier)[:, 1].mean() > np.exp(plain)[:, 1].mean() + 0.15


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.name)
def test_constant_columns_one_class_and_few_rows_end_in_a_model(learner):
    inputs = np.ones((30, 4), dtype=np.float32)
    alone = Sample(inputs, np.zeros(30, dtype=np.int64))
    said = learner.fit(TrainingJob(BLOCKS, TWO, alone, inputs, 0)).raw_prediction(inputs)
    assert np.isfinite(said).all()
    assert (said.argmax(1) == 0).all()


def broken(tensors, name, change):
    tensors = {key: tensor.copy() for key, tensor in tensors.items()}
    tensors[name] = change(tensors[name])
    return tensors


def set_first(value):
    def change(tensor):
        tensor[0] = value
        return tensor

    return change


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("feature", set_first(3), "beyond the 3 there are"),
        ("feature", set_first(-1), "beyond the 3 there are"),
        ("left", set_first(0), "is not a tree"),
        ("right", set_first(-40), "is not a tree"),
        ("value", set_first(float("nan")), "not finite"),
        ("threshold", set_first(float("inf")), "not finite"),
        ("nodes", set_first(2**30), "differ in length"),
        ("nodes", set_first(-1), "differ in length"),
        ("value", lambda t: t[:-1], "differ in length"),
        ("left", lambda t: t.astype(np.float64), "is no vector of"),
        ("constant", lambda t: t[:1], "lack a constant"),
    ],
)
def test_forged_trees_are_refused(name, change, sentence):
    member = LEARNERS[0].fit(task())
    forged = broken(member.tensors(), name, change)
    with pytest.raises(InputError, match=sentence):
        type(member).restored(member.describe(), forged, BLOCKS, TWO)


def test_missing_and_extra_tensors_and_outputs_are_refused():
    member = LEARNERS[0].fit(task())
    tensors = member.tensors()
    with pytest.raises(InputError, match="trees have the tensors"):
        type(member).restored(member.describe(), tensors | {"more": np.ones(1)}, BLOCKS, TWO)
    with pytest.raises(InputError, match="5 outputs for 2 of an answer"):
        type(member).restored({"outputs": 5}, tensors, BLOCKS, TWO)
