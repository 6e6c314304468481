"""Rows that lack a column the model observes: filled row by row, and said."""

import numpy as np
import pandas as pd
import pytest

import halfseen
from halfseen.data.gap_filling import RIDGE, GapFilling
from halfseen.errors import AlarmWarning, InputError
from halfseen.metrics import auc

pytestmark = pytest.mark.filterwarnings("ignore::halfseen.errors.AlarmWarning")


def rows(count: int, seed: int) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    a, c, test = random.normal(size=(3, count))
    b = a + 0.3 * random.normal(size=count)
    shop = np.where(a + 0.2 * random.normal(size=count) > 0, "north", "south")
    y = np.where(2 * b + c + test + random.normal(size=count) > 0, "yes", "no")
    return pd.DataFrame({"a": a, "b": b, "c": c, "shop": shop, "test": test, "y": y})


TARGET = rows(500, 1).drop(columns="test")


@pytest.fixture(scope="module")
def model():
    return halfseen.fit(rows(600, 0), TARGET.drop(columns="y"), "y", effort="quick")


def test_the_mean_given_the_rest_is_that_of_a_normal_distribution():
    random = np.random.default_rng(0)
    here, there = random.normal(size=(2, 300, 6)) @ random.normal(size=(6, 6))
    filling = GapFilling.fitted(here, there + 5.0)
    centred = np.concatenate([here - here.mean(0), there - there.mean(0)])
    spread = centred.std(0)
    link = np.corrcoef(centred.T) + RIDGE * np.eye(6)
    row, gone, known = there[0] + 5.0, [1, 4], [0, 2, 3, 5]
    z = (row - 5.0 - there.mean(0)) / spread
    mean = link[np.ix_(gone, known)] @ np.linalg.solve(link[np.ix_(known, known)], z[known])
    filled = filling.filled(row[None], np.isin(np.arange(6), gone)[None])[0]
    np.testing.assert_allclose(
        filled[gone], (there.mean(0) + 5.0 + spread * z_of(mean, gone))[gone]
    )
    np.testing.assert_array_equal(filled[known], row[known])


def z_of(mean, gone):
    z = np.zeros(6)
    z[gone] = mean
    return z


@pytest.mark.parametrize("gone", ["b", "shop", "c"])
def test_a_row_is_answered_by_itself_whether_its_column_is_absent_or_empty(model, gone):
    absent = model.predict_proba(TARGET.drop(columns=gone))
    emptied = TARGET.assign(**{gone: None if gone == "shop" else np.nan})
    some = TARGET.astype({gone: object})
    some.loc[::2, gone] = None
    np.testing.assert_array_equal(model.predict_proba(emptied), absent)
    if gone != "shop":
        some[gone] = some[gone].astype(float)
    np.testing.assert_array_equal(model.predict_proba(some)[::2], absent[::2])
    alone = model.predict_proba(TARGET.drop(columns=gone).iloc[[3]])
    np.testing.assert_allclose(alone, absent[[3]], atol=1e-12)
    (only,) = {name: cost for name, cost in model.metrics["gap_costs"].items() if name == gone}
    assert only == gone


def test_a_twin_stands_in_and_the_alarm_says_what_is_lost(model):
    truth = (TARGET.y == "yes").to_numpy().astype(int)
    with pytest.warns(AlarmWarning, match="b is not there or empty throughout: it is filled"):
        shown = model.predict_proba(TARGET.drop(columns="b"))
    medians = TARGET.assign(b=rows(600, 0).b.median())
    assert auc(shown, truth) > auc(model.predict_proba(medians), truth) + 0.03
    costs = model.metrics["gap_costs"]
    assert costs["c"] > 3 * costs["shop"]
    with pytest.warns(AlarmWarning, match="b, c are not there .* costs at least about"):
        model.predict_proba(TARGET.drop(columns=["b", "c"]))


def test_what_fills_gaps_is_saved_and_checked(model, tmp_path):
    model.save(tmp_path / "model")
    again = halfseen.load(tmp_path / "model")
    lacking = TARGET.drop(columns=["b", "shop"])
    np.testing.assert_array_equal(again.predict_proba(lacking), model.predict_proba(lacking))
    tensors = model.tables.gaps.tensors()
    with pytest.raises(InputError, match="what fills gaps has the shapes"):
        GapFilling.restored(tensors | {"mean": np.zeros(2)}, 5)


def test_a_graph_fills_gaps_as_the_model_does(model):
    pytest.importorskip("onnxruntime")
    from halfseen.export.onnx import check_parity, graph_values, onnx_model
    from halfseen.export.onnx_session import read_graph

    graph = onnx_model(model)
    assert check_parity(model, graph, 1_000) < 1e-5
    for gone in (["b"], ["shop", "a"], []):
        read = model.tables.read(TARGET.drop(columns=gone))
        inputs = {name: graph_values(values) for name, values in read.columns.items()}
        found, _ = read_graph(graph.SerializeToString()).run(inputs)
        known = model.predict_proba(TARGET.drop(columns=gone))
        np.testing.assert_allclose(found, known, atol=1e-5)
