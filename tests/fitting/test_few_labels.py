"""Complete rows without a label teach what the missing columns say, at every entrance."""

import numpy as np
import pandas as pd
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import roc_auc_score
from sklearn.svm import LinearSVC
from typer.testing import CliRunner

import halfseen
from halfseen import (
    AdaptationImputationClassifier,
    HalfSeenClassifier,
    HalfSeenRegressor,
    InputError,
)
from halfseen.cli.app import app
from halfseen.model.summaries import told

pytestmark = pytest.mark.filterwarnings("ignore")


def problem(rows=900, labels=40, seed=0):
    """Return a source whose label x2 tells and x1 hints at, few labels, a target, and its truth."""
    random = np.random.default_rng(seed)
    hint = random.normal(size=(rows, 3))
    x2 = hint.sum(axis=1) + random.normal(size=rows)
    truth = np.where(x2 > 0, "yes", "no").astype(object)
    frame = pd.DataFrame(hint, columns=list("abc")).assign(test=x2)
    y = np.full(rows, None, dtype=object)
    known = random.permutation(600)[:labels]
    y[known] = truth[known]
    target = frame[600:].drop(columns="test").reset_index(drop=True)
    return frame[:600].assign(y=y[:600]), target, truth[600:] == "yes"


def auc(model, target, truth):
    return roc_auc_score(truth, model.predict_proba(target)[:, 1])


def test_rows_without_a_label_are_worth_something():
    scores = []
    for seed in range(3):
        source, target, truth = problem(labels=30, seed=seed)
        few = halfseen.fit(source, target, "y", report=False)
        alone = halfseen.fit(source[source["y"].notna()], target, "y", report=False)
        scores.append((auc(few, target, truth), auc(alone, target, truth)))
        facts = few.metrics["few_labels"]
        assert (facts["labelled"], facts["unlabelled"]) == (30, 570)
        assert facts["lead"] > 1.0
        assert facts["believed"] > 0.5
        assert "boosted_trees, distilled" in few.metrics["weights"]
        assert few.metrics["teaching"]["rows"] == 30
    few, alone = np.mean(scores, axis=0)
    assert few > alone + 0.01


def test_every_entrance_gives_the_same_model(tmp_path):
    source, target, _ = problem()
    more = source[300:].drop(columns="y")
    first = source[:300]
    files = {}
    for name, rows in {"s": source, "first": first, "more": more, "t": target}.items():
        files[name] = tmp_path / f"{name}.csv"
        rows.to_csv(files[name], index=False)
    known = source["y"].notna()
    first_known = source.assign(y=source["y"].where(np.arange(600) < 300, None))
    expected = halfseen.fit(first_known, target, "y", report=False).predict_proba(target)
    apart = halfseen.fit(first, target, "y", unlabelled=[more], report=False)
    assert (apart.predict_proba(target) == expected).all()
    words = ["fit", files["first"], files["t"], "--unlabelled", files["more"], "--label", "y"]
    result = CliRunner().invoke(app, [*map(str, words), "-o", str(tmp_path / "model")])
    assert result.exit_code == 0, result.exception
    assert "complete rows have none" in result.output
    assert "teachers label" in result.output
    assert (halfseen.load(tmp_path / "model").predict_proba(target) == expected).all()
    estimator = HalfSeenClassifier(random_state=0).fit(
        first.drop(columns="y"), first["y"], X_target=target, X_unlabelled=more
    )
    assert (estimator.predict_proba(target) == expected).all()
    whole = halfseen.fit(source, target, "y", report=False).predict_proba(target)
    numbers = source["y"].map({"yes": 1, "no": 0}).fillna(-1).astype(int)
    estimator.fit(source.drop(columns="y"), numbers, X_target=target)
    assert estimator.classes_.tolist() == [0, 1]
    np.testing.assert_allclose(estimator.predict_proba(target), whole, atol=1e-9)
    assert known.sum() == 40


def test_amounts_too():
    source, target, _ = problem(labels=60)
    amounts = np.where(source["y"].notna(), source["test"], np.nan)
    model = HalfSeenRegressor(random_state=0)
    model.fit(source.drop(columns="y"), amounts, X_target=target)
    assert model.model_.metrics["few_labels"]["unlabelled"] == 540
    alone = source["y"].notna()
    other = HalfSeenRegressor(random_state=0)
    other.fit(source[alone].drop(columns="y"), amounts[alone], X_target=target)
    truth = target.sum(axis=1)
    errors = [np.square(m.predict(target) - truth).mean() for m in (model, other)]
    assert errors[0] < errors[1]


def test_two_rows_of_a_class_are_enough_and_one_is_said():
    source, target, truth = problem()
    yes = np.flatnonzero(source["y"] == "yes")
    source.loc[yes[2:], "y"] = None
    model = halfseen.fit(source, target, "y", report=True)
    assert auc(model, target, truth) > 0.6
    assert "held_out_source" not in model.metrics
    source.loc[yes[1], "y"] = None
    with pytest.raises(
        InputError, match="Class 'yes' of label 'y' has one row; at least 2 are needed"
    ):
        halfseen.fit(source, target, "y", report=False)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s.assign(y=None), "is empty in every row"),
        (lambda s: s.assign(y=np.where(s["y"].notna(), "yes", None)), "has one value, 'yes'"),
    ],
)
def test_labels_that_teach_nothing_are_refused(change, words):
    source, target, _ = problem()
    with pytest.raises(InputError, match=words):
        halfseen.fit(change(source), target, "y", report=False)


def test_unlabelled_rows_must_be_complete_and_alike():
    source, target, _ = problem()
    rows = source[:50].drop(columns="y")
    with pytest.raises(InputError, match=r"lacks column 'test': its rows teach only if they are"):
        halfseen.fit(source, target, "y", unlabelled=rows.drop(columns="test"), report=False)
    with pytest.raises(InputError, match="'test'"):
        halfseen.fit(source, target, "y", unlabelled=rows.assign(test="high"), report=False)
    estimator = HalfSeenClassifier()
    X, y = source.drop(columns="y"), source["y"]
    with pytest.raises(InputError, match="lack column 'test'"):
        estimator.fit(X, y, X_target=target, X_unlabelled=rows.drop(columns="test"))
    with pytest.raises(InputError, match="columns of other kinds"):
        estimator.fit(X, y, X_target=target, X_unlabelled=rows.assign(test="high"))


def test_rows_without_a_label_are_left_out_where_they_are_a_handful():
    source, target, _ = problem(labels=590)
    with pytest.warns(UserWarning, match="10 complete rows have none: so few that they are left"):
        model = halfseen.fit(source, target, "y", report=False)
    assert "few_labels" not in model.metrics
    assert set(model.metrics["weights"]) == {"boosted_trees", "forest", "regression"}


def test_what_taught_is_said_with_its_controls():
    source, target, _ = problem(labels=60)
    model = halfseen.fit(source, target, "y", report=False)
    few = model.metrics["few_labels"]
    for gain in (few["labels_alone"], few["half_the_labels"], model.metrics["teaching"]):
        assert gain["rows"] == 60
        assert gain["standard_error"] > 0.0
    said = " ".join(told(model.metrics))
    assert "60 rows have a label and teachers label 540 more" in said
    assert f"labels {few['half_the_labels']['gain']:+.3f}" in said
    assert "What the missing columns brought: " not in said


def test_an_estimator_of_ones_own_may_teach():
    source, target, truth = problem(labels=40)
    asked = []

    class Told(LinearDiscriminantAnalysis):
        def predict_proba(self, X):
            asked.append(X.shape[1])
            return super().predict_proba(X)

    X, y = source.drop(columns="y"), source["y"]
    plain = HalfSeenClassifier(random_state=0).fit(X, y, X_target=target)
    model = HalfSeenClassifier(random_state=0, teachers=[Told()]).fit(X, y, X_target=target)
    assert set(asked) == {1, 3, 4}  # x2 alone, x1 alone, both
    assert (model.predict_proba(target) != plain.predict_proba(target)).any()
    assert auc(model.model_, target, truth) > 0.6
    whole = source.assign(y=np.where(source["test"] > 0, "yes", "no"))
    asked.clear()
    halfseen.fit(whole, target, "y", teachers=[Told()], report=False)
    assert set(asked) == {3, 4}
    with pytest.raises(halfseen.OptionError, match="The teacher LinearSVC has no predict_proba"):
        halfseen.fit(source, target, "y", teachers=[LinearSVC()], report=False)


def test_networks_learn_from_all_complete_rows_too():
    source, target, truth = problem(labels=30)
    steps = {"training.joint_epochs": 3}
    few = AdaptationImputationClassifier(options=steps, random_state=0)
    few.fit(source.drop(columns="y"), source["y"], X_target=target)
    assert few.model_.metrics["few_labels"]["unlabelled"] == 570
    known = source[source["y"].notna()]
    alone = AdaptationImputationClassifier(options=steps, random_state=0)
    alone.fit(known.drop(columns="y"), known["y"], X_target=target)
    assert auc(few, target, truth) > auc(alone, target, truth)


@pytest.mark.parametrize("rows", [2, 3, 4])
def test_a_rare_class_does_not_stop_a_fit_of_labelled_rows(rows):
    source, target, truth = problem(labels=200)
    source = source[source["y"].notna()].reset_index(drop=True)
    rare = np.flatnonzero(source["y"] == "yes")[rows:]
    source = source.drop(index=rare).reset_index(drop=True)
    model = halfseen.fit(source, target, "y", report=False)
    assert auc(model, target, truth) > 0.6
    assert ("held_out_source" in model.metrics) == (rows > 3)
    said = " ".join(told(model.metrics))
    assert ("Class 'yes' has too few labelled rows to measure on" in said) == (rows <= 3)


def test_an_unlabelled_row_that_is_a_target_row_is_said():
    source, target, _ = problem()
    more = target[:30].assign(test=target[:30].sum(axis=1))
    with pytest.warns(halfseen.AlarmWarning, match="30 complete rows without a label are rows of"):
        halfseen.fit(source, target, "y", unlabelled=more, report=False)
