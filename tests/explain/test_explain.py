"""Reasons: what columns add, what is missing, how far rows are; each against a known answer."""

from __future__ import annotations

import json
from itertools import combinations
from math import factorial

import numpy as np
import pyarrow as pa
import pytest

import halfseen
import tiny
from halfseen.data.preprocessing import read_rows, transform
from halfseen.errors import InputError
from halfseen.explain import (
    TYPICAL,
    distances,
    expected_columns,
    outside_columns,
    shapley_values,
    shown,
    typical_rows,
)
from halfseen.targets import ClassTarget


def patients(rows: int, seed: int) -> pa.Table:
    """A table whose test follows from age and ward, and whose noise follows from nothing."""
    random = np.random.default_rng(seed)
    age, ward = random.normal(50, 10, rows), random.choice(["north", "south"], rows)
    test = 2 * age + 30 * (ward == "north") + random.normal(0, 3, rows)
    sick = np.where(test + 8 * random.normal(size=rows) > 115, "yes", "no")
    return pa.table(
        {
            "age": age,
            "ward": ward,
            "idle": random.normal(size=rows),
            "visits": np.where(random.random(rows) < 0.2, np.nan, random.poisson(2, rows)),
            "test": test,
            "grade": np.where(test > 115, "high", "low"),
            "noise": random.normal(size=rows),
            "sick": sick,
        }
    )


TARGET = patients(60, 1).select(["age", "ward", "idle", "visits"])


@pytest.fixture(scope="module")
def model():
    members = ["boosted_trees", "regression"]
    return halfseen.fit(patients(300, 0), TARGET, "sick", members=members, align=False)


# --- Shapley values ---------------------------------------------------------------------------


def exact(answer, row, background):
    """Shapley values by their definition, over all subsets."""
    count = len(row)

    def value(subset):
        shown = background.copy()
        shown[:, list(subset)] = row[list(subset)]
        return answer(shown)[:, 0].mean()

    found = np.zeros(count)
    for j in range(count):
        others = [k for k in range(count) if k != j]
        for size in range(count):
            weight = factorial(size) * factorial(count - size - 1) / factorial(count)
            for subset in combinations(others, size):
                found[j] += weight * (value((*subset, j)) - value(subset))
    return found


def test_values_are_those_of_the_definition_where_columns_interact():
    random = np.random.default_rng(0)
    background, rows = random.normal(size=(400, 4)), random.normal(size=(3, 4))

    def answer(x):
        return (x[:, [0]] * x[:, [1]] + np.sin(x[:, [2]]) * 2 + x[:, [3]]) ** 2 / 3

    found = shapley_values(answer, rows, background, [[0], [1], [2], [3]])
    for row, values, errors in zip(rows, found.values, found.errors, strict=True):
        truth = exact(answer, row, background)
        assert np.abs(values[:, 0] - truth).max() < 4 * errors.max()
        assert np.corrcoef(values[:, 0], truth)[0, 1] > 0.99


def test_values_add_up_and_a_column_of_no_effect_has_none(model):
    found = model.explain(TARGET.slice(0, 8))
    probability = model.predict_proba(TARGET.slice(0, 8))
    total = found.base + found.contributions.sum(1)
    assert total == pytest.approx(ClassTarget.of(2).explained(np.log(probability))[:, 1], abs=1e-9)
    assert set(list(found.importance)[:2]) == {"age", "ward"}
    assert found.importance["age"] > 5 * found.importance["idle"]
    first = found.row(0)["contributions"][0]
    assert abs(first["log_odds"]) == np.abs(found.contributions[0]).max()
    json.dumps(found.to_dict())


def test_several_classes_are_explained_by_the_predicted_one():
    random = np.random.default_rng(0)
    x = random.normal(size=(150, 3))
    y = np.array(["a", "b", "c"])[np.digitize(x[:, 0], [-0.5, 0.5])]
    target = random.normal(size=(40, 3))
    target[:, 2] = np.nan
    model = tiny.classifier(members=["regression"]).fit(x, y, X_target=target)
    found = model.explain(target[:30])
    probability = model.predict_proba(target[:30])
    assert found.spoken_of.tolist() == probability.argmax(1).tolist()
    best = ClassTarget.of(3).explained(np.log(probability))[np.arange(30), found.spoken_of]
    assert found.base + found.contributions.sum(1) == pytest.approx(best, abs=1e-9)
    assert next(iter(found.importance)) == "x0"


def test_many_columns_are_sampled_with_fewer_orders():
    random = np.random.default_rng(0)
    rows, background = random.normal(size=(2, 1, 3000)).astype(np.float32)
    background = np.repeat(background, TYPICAL, axis=0)
    asked = []

    def answer(x):
        asked.append(len(x))
        return x[:, :10].sum(1, keepdims=True)

    found = shapley_values(answer, rows, background, [[k] for k in range(3000)])
    assert sum(asked) < 13_000
    assert found.values[0, :10, 0] == pytest.approx((rows - background[:1])[0, :10], abs=1e-5)
    assert np.abs(found.values[0, 10:]).max() < 1e-5


# --- typical rows and distances ---------------------------------------------------------------


def test_typical_rows_have_the_sources_quantiles_and_belong_to_nobody(model):
    source = patients(300, 0)
    typical = typical_rows(model.schema)
    assert len(typical) == TYPICAL
    place = model.schema.inputs.index
    age = np.sort(typical[:, place("age")])
    column = next(c for c in model.schema.columns if c.name == "age")
    wanted = np.quantile(source["age"].to_numpy(), np.arange(1, 20) / 20)
    assert age * column.scale + column.mean == pytest.approx(wanted, abs=0.6)
    share = (typical[:, place("ward=north")]).mean()
    assert abs(share - (source["ward"].to_numpy() == "north").mean()) < 0.05
    gaps = typical[:, place("visits is missing")].sum()
    assert gaps == round(TYPICAL * 0.2)
    real = {row.tobytes() for row in transform(model.schema, source)}
    assert not real & {row.tobytes() for row in typical}


def test_what_the_source_never_had_is_named(model):
    odd = pa.table({"age": [50.0, 140.0], "ward": ["west", "north"], "idle": [0.0, 0.0],
                    "visits": [1.0, None]})  # fmt: skip
    assert outside_columns(model.schema, read_rows(model.schema, odd)) == [("ward",), ("age",)]
    told = " ".join(model.explain(odd, source=patients(300, 0)).told(1))
    assert "Outside of what the source had: age." in told
    assert "times as far from source rows" in told


# --- the missing block ------------------------------------------------------------------------


def test_missing_columns_are_shown_in_their_units_or_not_at_all(model):
    found = model.explain(TARGET, source=patients(300, 0))
    missing = {column.name: column for column in found.missing}
    assert missing["test"].explained > 0.9
    truth = patients(60, 1)["test"].to_numpy()
    assert np.abs(np.array(missing["test"].values) - truth).mean() < 5
    agree = np.array(missing["grade"].values) == np.array(patients(60, 1)["grade"].to_pylist())
    assert agree.mean() > 0.85
    assert missing["noise"].values == (None,) * 60, "nothing tells it"
    assert "noise" not in " ".join(found.told(0))
    assert "as the observed columns let expect: test about" in " ".join(found.told(0))
    assert model.explain(TARGET.slice(0, 2)).missing is None


def test_imputed_latents_are_read_where_there_are_networks():
    source = patients(200, 0)
    fitted = halfseen.fit(source, TARGET, "sick", members=["networks"], options=tiny.TINY,
                          measure=False, report=False)  # fmt: skip
    found = fitted.explain(TARGET.slice(0, 5), source=source)
    assert found.missing_by == "the imputed latents say"
    assert [column.name for column in found.missing] == ["test", "grade", "noise"]


def test_a_count_is_shown_on_its_own_scale():
    random = np.random.default_rng(0)
    count = random.poisson(np.exp(random.normal(1, 1.5, 400)))
    source = pa.table({"a": np.log1p(count) + random.normal(0, 0.1, 400), "count": count,
                       "y": random.choice(["u", "v"], 400)})  # fmt: skip
    fitted = halfseen.fit(source, source.select(["a"]).slice(0, 50), "y", members=["regression"])
    column = next(c for c in fitted.schema.columns if c.name == "count")
    assert column.log
    rows = transform(fitted.schema, source, complete=True)
    seen = rows[:, :1].astype(np.float64)
    (expected,) = expected_columns(fitted.schema, seen, rows, seen)
    large = count > 20
    assert np.array(expected.values)[large] == pytest.approx(count[large], rel=0.4)
    assert min(expected.values) >= 0


# --- what is refused --------------------------------------------------------------------------


def test_what_cannot_be_explained_is_refused(model):
    with pytest.raises(InputError, match="The source has 20 rows to compare with; at least 50"):
        model.explain(TARGET, source=patients(20, 0))
    bare = [c.model_copy(update={"shape": None}) for c in model.schema.columns]
    schema = model.schema.model_copy(update={"columns": tuple(bare)})
    with pytest.raises(InputError, match="does not hold how column 'age' is distributed"):
        typical_rows(schema)
    assert shown(None) == "empty"


def test_drifted_rows_are_compared_with_each_other():
    source = patients(200, 0).select(["age", "idle", "test", "sick"])
    there = patients(200, 1)
    moved = {name: there[name].to_numpy() * 3 + 8 for name in ("age", "idle")}
    target = pa.table(moved)
    with pytest.warns(UserWarning, match="times as far from source rows"):
        fitted = halfseen.fit(source, target, "sick", members=["regression"], report=False)
    assert "alignment" in fitted.metrics
    found = fitted.explain(target)
    assert found.compared_with == "each other"
    with pytest.raises(InputError, match=r"have drifted, .* 3 are too few: give at least 19"):
        fitted.explain(target.slice(0, 3))


def test_distances_are_in_units_of_the_sources_own():
    source = np.random.default_rng(0).normal(size=(500, 2)).astype(np.float32)
    near, far = distances(np.array([[0, 0], [6, 6]], np.float32), source)
    assert near < 1.5
    assert far > 10
    assert (shown(0.123456), shown(None), shown("north")) == ("0.1235", "empty", "north")
