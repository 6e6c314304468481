"""Amounts as a kind of label: each formula against another way to compute it."""

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnxruntime import InferenceSession
from scipy.optimize import minimize
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from halfseen.blocks import Blocks
from halfseen.errors import InputError
from halfseen.export.onnx import add_interval
from halfseen.members import (
    BoostedTreesLearner,
    ForestLearner,
    RegressionLearner,
    Sample,
    TrainingJob,
    words_of,
)
from halfseen.onnx_graph import GraphBuilder
from halfseen.targets import IntervalReach, RegressionTarget, target_type_of
from halfseen.targets.regression import PRIOR_ROWS

AMOUNTS = RegressionTarget()
BLOCKS = Blocks((4,), (2,))


def task(rows=300, *, offset=1000.0, weights=None):
    random = np.random.default_rng(0)
    inputs = random.normal(size=(rows, 4)).astype(np.float32)
    labels = offset + 10.0 * inputs[:, 0] + 5.0 * inputs[:, 1] + random.normal(size=rows)
    return TrainingJob(
        BLOCKS, AMOUNTS, Sample(inputs, labels.astype(np.float64), weights), inputs, 0
    )


LEARNERS = (BoostedTreesLearner(rounds=60, rate=0.2), ForestLearner(size=40), RegressionLearner())


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.name)
def test_members_learn_save_and_export_amounts(learner):
    given = task()
    member = learner.fit(given)
    rows, labels = given.source.inputs, given.source.labels
    said = member.raw_prediction(rows)
    assert said.shape == (300, 1)
    assert r2_score(labels, said[:, 0]) > 0.7
    hidden = rows.copy()
    hidden[:, 2] = 99.0
    assert np.array_equal(member.raw_prediction(hidden), said)  # x2 is not looked at
    again = type(member).restored(member.describe(), member.tensors(), BLOCKS, AMOUNTS)
    assert np.array_equal(again.raw_prediction(rows), said)
    builder = GraphBuilder(["answer"])
    builder._inputs.append(helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", 4]))
    builder.output(member.add_to_graph(builder, "rows"), "answer", TensorProto.FLOAT, 1)
    session = InferenceSession(builder.model({}).SerializeToString())
    (amounts,) = session.run(None, {"rows": rows})
    assert np.abs(amounts - said).max() < AMOUNTS.tolerance(said)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.name)
def test_amounts_in_another_unit_and_place_are_the_same_amounts(learner):
    near, far = task(offset=0.0), task(offset=0.0)
    scaled = Sample(far.source.inputs, 1e6 * far.source.labels + 1e7)
    far = TrainingJob(BLOCKS, AMOUNTS, scaled, far.target, 0)
    one, other = (learner.fit(t).raw_prediction(t.target) for t in (near, far))
    np.testing.assert_allclose((other - 1e7) / 1e6, one, atol=0.3)  # near ties may fall otherwise


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.name)
def test_row_weights_move_amounts(learner):
    given = task(offset=0.0)
    labels = np.repeat([0.0, 10.0], 150)  # nothing to learn but the mean
    weights = np.where(labels > 0, 3.0, 1.0)
    plain, heavier = (
        learner.fit(
            TrainingJob(BLOCKS, AMOUNTS, Sample(given.source.inputs, labels, w), given.target, 0)
        )
        for w in (None, weights)
    )
    lighter, heavier = (
        plain.raw_prediction(given.target).mean(),
        heavier.raw_prediction(given.target).mean(),
    )
    assert lighter == pytest.approx(5.0, abs=0.5)
    assert heavier > lighter + 0.5


@pytest.mark.parametrize("learner", [RegressionLearner(), BoostedTreesLearner()])
def test_a_slope_goes_on_a_little_beyond_the_source_and_no_further(learner):
    given = task()
    member = learner.fit(given)
    edge = given.source.inputs.max(0, keepdims=True)
    spread = given.source.inputs.std(0)
    at, beyond, far, farther = (
        member.raw_prediction(edge + np.float32(k) * spread)[0, 0] for k in (0, 0.5, 1.01, 100)
    )
    assert abs(beyond - at) > 0.1
    assert far == pytest.approx(farther)


def test_a_linear_model_is_ridge_regression():
    random = np.random.default_rng(1)
    rows, labels = random.normal(size=(50, 3)), random.normal(size=50)
    slopes, bias = AMOUNTS.fit_linear(rows, labels, None, 0.1)
    oracle = Ridge(alpha=10.0).fit(rows, labels)
    np.testing.assert_allclose(slopes[0], oracle.coef_)
    np.testing.assert_allclose(bias[0], oracle.intercept_)
    assert AMOUNTS.linear_scores(rows, np.ones(50), (0.1, 1.0)).size == 0  # nothing to compare on


@pytest.mark.parametrize("weighted", [False, True])
def test_shares_have_the_least_penalised_squared_error(weighted):
    random = np.random.default_rng(2)
    labels = random.normal(size=200)
    answers = [labels[:, None] + s * random.normal(size=(200, 1)) for s in (0.5, 0.6, 3.0)]
    weights = random.uniform(0.1, 2.0, 200) if weighted else np.ones(200)
    counted = weights / weights.mean()
    missed = labels[:, None] - np.hstack(answers)
    variance = (counted * (missed.mean(1) ** 2)).mean()

    def loss(free):
        shares = np.exp(np.append(free, 0.0))
        shares /= shares.sum()
        held = PRIOR_ROWS * variance * ((shares - 1 / 3) ** 2).sum()
        return (counted * (missed @ shares) ** 2).sum() + held

    free = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-8}).x
    expected = np.exp(np.append(free, 0.0))
    found = AMOUNTS.fit_shares(answers, labels, None, weights if weighted else None)
    np.testing.assert_allclose(found, expected / expected.sum(), atol=1e-3)


def test_few_rows_leave_shares_near_where_they_began():
    labels = np.arange(4.0)
    answers = [labels[:, None] + 0.1, labels[:, None] - 5.0]
    first, second = AMOUNTS.fit_shares(answers, labels, [0.2, 0.8])
    assert 0.2 < first < 0.5
    assert first + second == pytest.approx(1.0)
    assert AMOUNTS.fit_shares([labels[:, None]] * 2, labels) == (0.5, 0.5)  # none misses anything


def test_metrics_are_those_of_scikit_learn():
    random = np.random.default_rng(3)
    y = random.normal(size=60)
    shown = np.stack([y + 0.3 * random.normal(size=60), y - 0.1, y + 0.2], axis=1)
    shown[:15, 1] = y[:15] + 0.1  # a quarter lies below its interval
    found = AMOUNTS.metrics_of(shown, y)
    assert found["rmse"] == pytest.approx(root_mean_squared_error(y, shown[:, 0]), rel=1e-4)
    assert found["mae"] == pytest.approx(mean_absolute_error(y, shown[:, 0]), rel=1e-4)
    assert found["r2"] == pytest.approx(r2_score(y, shown[:, 0]), rel=1e-4)
    assert found["coverage"] == 0.75
    assert AMOUNTS.metrics_of(shown[:, :1], np.ones(60))["r2"] is None
    assert AMOUNTS.metrics_of(shown[:, :1], y)["coverage"] is None


def noisy(rows, seed, *, growing):
    random = np.random.default_rng(seed)
    amounts = random.uniform(1.0, 10.0, rows)
    return amounts, amounts + random.normal(size=rows) * (amounts if growing else 3.0)


@pytest.mark.parametrize("growing", [False, True])
def test_intervals_hold_nine_of_ten_new_rows(growing):
    held = []
    for seed in range(30):
        reach = IntervalReach.fitted(*noisy(200, seed, growing=growing))
        amounts, labels = noisy(500, 1000 + seed, growing=growing)
        low, high = reach.around(amounts).T
        held.append(((low <= labels) & (labels <= high)).mean())
    assert np.mean(held) == pytest.approx(0.9, abs=0.03)


def test_intervals_grow_with_the_amount_only_where_errors_do():
    assert len(IntervalReach.fitted(*noisy(600, 0, growing=False)).at) == 1
    reach = IntervalReach.fitted(*noisy(600, 0, growing=True))
    short, long = np.diff(reach.around(np.array([1.5, 9.5])), axis=1)[:, 0]
    assert long > 3 * short


def test_an_interval_in_a_graph_is_the_models():
    reach = IntervalReach((0.0, 1.0, 4.0), (1.0, 2.0, 0.5), (0.0, 3.0, 3.0))
    builder = GraphBuilder(["ends"])
    builder._inputs.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 1]))
    builder.output(add_interval(builder, "x", reach), "ends", TensorProto.FLOAT, 2)
    session = InferenceSession(builder.model({}).SerializeToString())
    amounts = np.linspace(-3, 7, 41, dtype=np.float32)
    (ends,) = session.run(None, {"x": amounts[:, None]})
    np.testing.assert_allclose(ends, reach.around(amounts.astype(float)), atol=1e-5)


@pytest.mark.parametrize(
    ("at", "below", "above", "sentence"),
    [
        ((0.0,), (1.0, 2.0), (1.0,), "not one finite number"),
        ((), (), (), "not one finite number"),
        ((0.0,), (float("nan"),), (1.0,), "not one finite number"),
        ((1.0, 0.0), (1.0, 1.0), (1.0, 1.0), "does not reach"),
        ((0.0,), (-1.0,), (1.0,), "does not reach"),
    ],
)
def test_forged_intervals_are_refused(at, below, above, sentence):
    with pytest.raises(InputError, match=sentence):
        IntervalReach(at, below, above)


def test_splits_have_small_and_large_amounts_in_proportion():
    labels = np.random.default_rng(0).permutation(100).astype(float)
    strata = AMOUNTS.strata(labels)
    assert np.bincount(strata).tolist() == [10] * 10
    assert (np.sort(labels[strata == 0]) == np.arange(10)).all()
    assert AMOUNTS.strata(np.arange(5.0)).tolist() == [0] * 5


def test_labels_that_are_no_numbers_are_refused():
    assert AMOUNTS.read(["1.5", "2"]).tolist() == [1.5, 2.0]
    for wrong in (["much"], [1.0, float("nan")], [None]):
        with pytest.raises(InputError, match="not all finite numbers"):
            AMOUNTS.read(wrong)


def test_words_follow_the_kind():
    assert words_of("regression", target_type_of({"task": "regression"})) == "ridge regression"
    assert words_of("forest", AMOUNTS) == "random forest"


def test_intervals_hold_on_a_target_of_other_rows_and_are_never_narrower():
    random = np.random.default_rng(0)

    def drawn(rows, mean):
        x = random.normal(mean, 1.0, rows)
        return x, random.normal(0.0, np.exp(x))  # the spread grows with what shifts

    x, labels = drawn(4000, 0.0)
    truth = drawn(4000, 1.0)[1]
    plain = IntervalReach.fitted(np.zeros(4000), labels)
    weighted = plain.for_target(labels, np.exp(x - 0.5), covered=True)

    def held(reach):
        low, high = reach.around(np.zeros(4000)).T
        return np.mean((low <= truth) & (truth <= high))

    assert held(plain) < 0.8
    assert held(weighted) == pytest.approx(0.9, abs=0.02)
    narrow = plain.for_target(labels, np.exp(-2 * x), covered=True)
    assert narrow == plain
    wider = plain.for_target(labels, np.exp(-2 * x), covered=False)
    np.testing.assert_allclose(wider.above, 1.2 * np.array(plain.above))
    lost = plain.for_target(labels, np.zeros(4000), covered=False)
    np.testing.assert_allclose(lost.above, 1.2 * labels.max())
