"""The estimator of amounts, and weights and time limits of both estimators."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

import halfseen
from halfseen import HalfSeenClassifier, HalfSeenRegressor
from halfseen.errors import InputError, OptionError
from halfseen.selection import make_scorer

RIDGE = {"members": ["regression"], "random_state": 0}
NOT_DONE = {
    "check_dataframe_column_names_consistency": "columns are found by name, in any order",
    "check_sample_weight_equivalence_on_dense_data": "rows are held out at random",
    "check_sample_weight_equivalence_on_sparse_data": "rows are held out at random",
    **dict.fromkeys(
        [
            "check_regressors_train",
            "check_regressors_train(readonly_memmap=True)",
            "check_regressors_train(readonly_memmap=True,X_dtype=float32)",
        ],
        "one of the check's features is hidden, and the others do not tell its amounts",
    ),
}


@pytest.mark.filterwarnings("ignore:No target was given")
@parametrize_with_checks(
    [HalfSeenRegressor(missing=[-1], **RIDGE)],
    expected_failed_checks=lambda model: NOT_DONE,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def amounts(rows=150):
    random = np.random.default_rng(0)
    X = random.normal(size=(2 * rows, 4))
    y = 100 + 20 * X[:, 0] + 8 * X[:, 1] + 5 * X[:, 3] + random.normal(size=2 * rows)
    target = X[rows:].copy()
    target[:, 3] = np.nan
    return X[:rows], y[:rows], target, y[rows:]


def test_amounts_are_predicted_with_intervals_and_scored_by_r2(tmp_path):
    X, y, target, truth = amounts()
    model = HalfSeenRegressor(**RIDGE).fit(X, y, X_target=target)
    predicted = model.predict(target)
    assert model.score(target, truth) == r2_score(truth, predicted) > 0.9
    low, high = model.predict_interval(target).T
    assert ((low <= truth) & (truth <= high)).mean() > 0.8
    assert model.blocks_.missing == (3,)
    model.save(tmp_path / "model")
    assert np.array_equal(halfseen.load(tmp_path / "model").predict(target), predicted)
    assert clone(model).get_params()["members"] == ["regression"]
    found = model.explain(target[:30])
    np.testing.assert_allclose(found.base + found.contributions.sum(1), predicted[:30], rtol=1e-6)


def test_whole_numbers_are_amounts_where_the_estimator_says_so():
    X, y, target, _ = amounts()
    model = HalfSeenRegressor(**RIDGE).fit(X, np.rint(y).astype(int), X_target=target)
    assert model.model_.metrics["task"] == "regression"
    with pytest.raises(InputError, match="HalfSeenRegressor predicts amounts"):
        HalfSeenClassifier(**RIDGE).fit(X, y, X_target=target)
    with pytest.raises(InputError, match="Amounts are predicted of tables"):
        HalfSeenRegressor(missing="bottom").fit(np.zeros((20, 1, 4, 4)), np.arange(20.0))


def test_a_grid_search_and_a_data_frame():
    X, y, *_ = amounts(60)
    frame = pd.DataFrame(X, columns=list("abcd"))
    search = GridSearchCV(
        HalfSeenRegressor(missing=["d"], random_state=0),
        {"members": [["regression"], ["boosted_trees"]]},
        cv=2,
    )
    with pytest.warns(UserWarning, match="No target was given"):
        search.fit(frame, y)
    assert search.best_params_ == {"members": ["regression"]}


def labelled(rows=200):
    random = np.random.default_rng(0)
    X = random.normal(size=(rows, 3))
    y = (X[:, 0] + random.normal(size=rows) > 0.8).astype(int)
    target = random.normal(size=(80, 3))
    target[:, 2] = np.nan
    return X, y, target


def share(model, X, y, target, **given):
    fitted = model.fit(X, y, X_target=target, **given)
    return fitted.predict_proba(target)[:, 1].mean(), fitted.class_prior_[1]


def test_weights_of_rows_and_of_classes_do_the_same():
    X, y, target = labelled()
    plain, prior = share(HalfSeenClassifier(**RIDGE), X, y, target)
    weights = np.where(y == 1, 3.0, 1.0)
    heavier = share(HalfSeenClassifier(**RIDGE), X, y, target, sample_weight=weights)
    classes = share(HalfSeenClassifier(class_weight={1: 3}, **RIDGE), X, y, target)
    assert heavier == classes
    assert heavier[0] > plain + 0.1
    assert heavier[1] == pytest.approx(3 * prior / (3 * prior + 1 - prior))
    balanced = share(HalfSeenClassifier(class_weight="balanced", **RIDGE), X, y, target)
    assert balanced[1] == pytest.approx(0.5)


def test_a_row_without_weight_counts_nothing():
    X, y, target, truth = amounts(80)
    wrong = np.concatenate([y, y[:20] + 1e4])
    X, weights = np.vstack([X, X[:20]]), np.r_[np.ones(80), np.zeros(20)]
    model = HalfSeenRegressor(**RIDGE)
    assert model.fit(X, wrong, X_target=target, sample_weight=weights).score(target, truth) > 0.9
    assert model.fit(X, wrong, X_target=target).score(target, truth) < 0


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        (np.r_[-1.0, np.ones(199)], "sample_weight is -1 in row 0"),
        (np.r_[np.ones(199), np.nan], "sample_weight is nan in row 199"),
        (np.zeros(200), "zero in every row"),
        (np.ones(7), r"shape \(7,\) for 200 source rows"),
        (["much"] * 200, "no number"),
    ],
)
def test_bad_weights_are_refused(weights, sentence):
    X, y, target = labelled()
    with pytest.raises(InputError, match=sentence):
        HalfSeenClassifier(**RIDGE).fit(X, y, X_target=target, sample_weight=weights)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({5: 1.0}, "names '5', which is none of the classes 0, 1"),
        ({0: -1.0}, "must be positive numbers"),
        ({0: 0.0, 1: 0.0}, "must be positive numbers"),
        ("even", "must be 'balanced' or a mapping"),
    ],
)
def test_bad_class_weights_are_refused(given, sentence):
    X, y, target = labelled()
    with pytest.raises(OptionError, match=sentence):
        HalfSeenClassifier(class_weight=given, **RIDGE).fit(X, y, X_target=target)


def tables():
    X, y, target = labelled()
    names = ["a", "b", "c"]
    source = pa.table({n: X[:, k] for k, n in enumerate(names)} | {"y": y})
    return source, pa.table({n: target[:, k] for k, n in enumerate(names[:2])})


def test_a_column_of_weights_is_no_input():
    source, target = tables()
    weights = np.where(source["y"].to_numpy() == 1, 3.0, 1.0)
    source = source.append_column("cost", pa.array(weights))
    how = {"members": ["regression"], "report": False}
    model = halfseen.fit(source, target, "y", weight="cost", **how)
    again = halfseen.fit(source, target, "y", drop=["cost"], class_weight={"1": 3}, **how)
    assert [column.name for column in model.schema.columns] == ["a", "b", "c"]
    assert model.schema.order == ("a", "b", "c")
    np.testing.assert_allclose(model.predict_proba(target), again.predict_proba(target))
    with pytest.raises(InputError, match="weight names column 'costs'"):
        halfseen.fit(source, target, "y", weight="costs", **how)
    with pytest.raises(InputError, match="given to both drop and weight"):
        halfseen.fit(source, target, "y", weight="cost", drop=["cost"], **how)
    with pytest.raises(InputError, match="need the tables in memory"):
        halfseen.fit(source, target, "y", weight="cost", memory_mib=0, **how)
    with pytest.raises(OptionError, match="amounts have none"):
        halfseen.fit(source, target, "cost", task="regression", class_weight="balanced", **how)


def test_a_time_limit_leaves_out_what_takes_too_long():
    source, target = tables()
    how = {"report": False, "members": ["boosted_trees", "forest", "regression"]}
    model = halfseen.fit(source, target, "y", time_limit=1e-6, **how)
    assert model.metrics["time_limit"] == {"seconds": 1e-6, "left_out": ["forest", "teachers"]}
    assert [member.kind for member in model.members] == ["boosted_trees", "regression"]
    plain = halfseen.fit(
        source, target, "y", report=False, members=["boosted_trees", "regression"], effort="quick"
    )
    np.testing.assert_array_equal(model.predict_proba(target), plain.predict_proba(target))
    quick = halfseen.fit(source, target, "y", time_limit=1e6, effort="quick", **how)
    assert quick.metrics["time_limit"]["left_out"] == []
    with pytest.raises(OptionError, match="more than no seconds"):
        halfseen.fit(source, target, "y", time_limit=0, **how)


def test_scores_without_labels_judge_amounts_too():
    X, y, target, _ = amounts(80)
    model = HalfSeenRegressor(effort="quick", members=["regression"], random_state=0)
    fitted = model.fit(X, y, X_target=target)
    assert make_scorer("source_loss", X_target=target)(fitted, X, y) < 0
    with pytest.raises(OptionError, match="do not tell how good they are"):
        make_scorer("mutual_information", X_target=target)(fitted, X, y)
