"""What measuring is promised to bring, held against worlds in which that is known."""

import numpy as np
import pandas as pd
import pytest

import halfseen
from halfseen.errors import InputError, OptionError
from halfseen.metrics import auc, weighted_auc


def patients(rows: int, seed: int) -> pd.DataFrame:
    """Return rows in which `test` tells the label where a > 0; `part` and `other` only together."""
    random = np.random.default_rng(seed)
    a, b, test, useless = random.normal(size=(4, rows))
    tells = 3.0 * test * (a > 0)
    sick = np.where(b + tells + random.logistic(size=rows) > 0, "yes", "no")
    return pd.DataFrame({"a": a, "b": b, "test": test, "useless": useless, "sick": sick})


TARGET = patients(400, 1)
HIDDEN = TARGET.drop(columns=["test", "useless", "sick"])


@pytest.fixture(scope="module")
def model():
    return halfseen.fit(
        patients(800, 0), HIDDEN, "sick", members=["boosted_trees"], effort="quick",
        value_of_missing=True, report=False,
    )  # fmt: skip


def test_the_column_that_tells_comes_first_and_the_gain_is_in_its_interval(model):
    first, *others = model.value_of_measuring()
    by_name = {tuple(each["columns"]): each["gains"] for each in (first, *others)}
    assert set(by_name) == {("test",), ("useless",), ("test", "useless")}
    assert "test" in first["columns"]
    value, low, high = by_name["useless",]["auc"]
    assert low < 0.0 < high
    assert abs(value) < 0.03
    complete = halfseen.fit(
        patients(800, 0), TARGET.drop(columns=["useless", "sick"]), "sick",
        members=["boosted_trees"], effort="quick", report=False,
    )  # fmt: skip
    truth = (TARGET.sick == "yes").to_numpy().astype(int)
    shown = [model.predict_proba(HIDDEN), complete.predict_proba(TARGET)]
    gained = auc(shown[1], truth) - auc(shown[0], truth)
    value, low, high = by_name["test",]["auc"]
    assert 0.03 < low < gained < high
    assert abs(value - gained) < 0.06


def test_rows_that_the_column_tells_nothing_of_come_last(model, tmp_path):
    worth = model.value_by_row_of(HIDDEN, ["test"])
    assert (worth >= 0.0).all()
    assert worth[HIDDEN.a > 0.3].mean() > 3 * worth[HIDDEN.a < -0.3].mean()
    model.save(tmp_path / "model")
    again = halfseen.load(tmp_path / "model")
    np.testing.assert_array_equal(again.value_by_row_of(HIDDEN, ["test"]), worth)
    assert again.value_of_measuring() == model.value_of_measuring()


def test_costs_change_the_order(model):
    told = model.value_of_measuring(costs={"test": 2.0, "useless": 3.0})
    assert [(each["columns"], each["cost"]) for each in told[:2]] == [
        (["test"], 2.0),
        (["test", "useless"], 5.0),
    ]
    assert [s["columns"] for s in model.value_of_measuring(["test"])] == [["test"]]


def test_what_cannot_be_told_is_a_sentence(model):
    for ask, says in {
        lambda: model.value_of_measuring(["a"]): "'a' is none of the columns that are missing",
        lambda: model.value_of_measuring(costs={"z": 1.0}): "'z' is none of the columns",
        lambda: model.value_of_measuring(costs={"test": -1.0}): "test=-1 must be a number above",
        lambda: model.value_of_measuring(costs={"test": np.nan}): "must be a number above zero",
    }.items():
        with pytest.raises(OptionError, match=says):
            ask()
    plain = halfseen.fit(
        patients(60, 0), HIDDEN, "sick", members=["regression"], effort="quick", report=False
    )
    with pytest.raises(InputError, match="fit it again with --value-of-missing"):
        plain.value_of_measuring()
    with pytest.raises(InputError, match=r"40 labelled rows, .* are too few for an interval"):
        halfseen.fit(patients(40, 0), HIDDEN, "sick", value_of_missing=True)


def test_columns_that_help_only_together_are_told_as_a_pair():
    random = np.random.default_rng(0)
    left, right, third, x = random.normal(size=(4, 1_200))
    noisy = np.sign(left * right) * (random.random(1_200) < 0.95)
    source = pd.DataFrame({"x": x, "left": left, "right": right, "third": third, "y": noisy > 0})
    found = halfseen.fit(
        source, source[["x"]][:200], "y", members=["regression"], effort="quick",
        value_of_missing=True, report=False,
    ).value_of_measuring()  # fmt: skip
    by_name = {tuple(sorted(each["columns"])): each["gains"]["auc"] for each in found}
    assert by_name["left", "right"][1] > 0.1
    assert max(by_name[name,][0] for name in ("left", "right")) < 0.1
    assert ("left", "third") not in by_name


def test_amounts_are_told_in_their_unit():
    random = np.random.default_rng(0)
    x, test = random.normal(size=(2, 400))
    source = pd.DataFrame({"x": x, "test": test, "y": 10.0 * (x + test) + random.normal(size=400)})
    (found,) = halfseen.fit(
        source, source[["x"]][:100], "y", members=["regression"], effort="quick",
        value_of_missing=True, report=False,
    ).value_of_measuring()  # fmt: skip
    value, low, high = found["gains"]["rmse"]
    assert 5.0 < value < 10.0
    assert low < value < high


def test_a_weighted_area_is_that_of_repeated_rows():
    random = np.random.default_rng(0)
    score, y = random.integers(0, 9, 60) / 9, random.integers(0, 2, 60)
    times = random.integers(1, 4, 60)
    repeated = np.repeat(score, times)
    known = auc(np.column_stack([1 - repeated, repeated]), np.repeat(y, times))
    assert weighted_auc(score, y, times.astype(float)) == pytest.approx(known)
