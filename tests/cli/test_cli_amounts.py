"""Amounts from end to end: commands, Python, folders, graphs, the server, the report."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from sklearn.metrics import r2_score
from tables_cli import halfseen as command

import halfseen
from halfseen.errors import InputError, OptionError
from halfseen.model.summaries import told
from halfseen.settings import TREES_AND_REGRESSION
from halfseen.targets import IntervalReach
from halfseen_serve.openapi import described_model, output_names
from halfseen_serve.scorer import open_scorers

QUICK = {"effort": "quick", "report": False, "members": ["boosted_trees", "regression"]}


def tables(rows=160, *, whole=False):
    """Return a source with prices, a target without two columns, and the target's prices."""
    random = np.random.default_rng(0)
    size, rooms, garden = random.normal(size=(3, 2 * rows))
    town = random.choice(["north", "south"], 2 * rows)
    price = 200 + 40 * size + 15 * rooms + 10 * garden + 20 * (town == "south")
    price = price + 5 * random.normal(size=2 * rows)
    price = np.rint(price) if whole else price
    columns = {"size": size, "rooms": rooms + 0.3 * (np.arange(2 * rows) >= rows), "town": town}
    table = pa.table(columns | {"garden": garden, "price": price})
    return table.slice(0, rows), table.slice(rows).drop_columns(["garden", "price"]), price[rows:]


def run(*words, code=0):
    result = command(*words)
    assert result.code == code, result.err
    return result.out if code == 0 else result.err


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with tables, and a model of amounts that the command fitted."""
    place = tmp_path_factory.mktemp("amounts")
    source, target, prices = tables()
    pa.csv.write_csv(source, place / "source.csv")
    pa.csv.write_csv(target, place / "target.csv")
    pa.csv.write_csv(target.append_column("price", pa.array(prices)), place / "labelled.csv")
    said = run(
        "fit", place / "source.csv", place / "target.csv", "--label", "price", "--effort", "quick",
        "--members", "boosted_trees,regression", "-o", place / "model",
    )  # fmt: skip
    (place / "said.txt").write_text(said)
    return place


def test_fit_says_what_the_label_is_and_how_good_it_was(folder):
    said = " ".join((folder / "said.txt").read_text().split())
    assert "Label: price, an amount from" in said
    assert "Members: boosted_trees, regression" in said
    for words in ("RMSE", "mean absolute error", "R²", "ridge regression"):
        assert words in said
    assert "see classes" not in said
    shown = run("inspect", folder / "model")
    assert "Predicts price: an amount from" in " ".join(shown.split())


def test_predictions_have_an_amount_and_an_interval(folder):
    run("predict", folder / "model", folder / "target.csv", "-o", folder / "scores.parquet")
    scores = pa.parquet.read_table(folder / "scores.parquet")
    assert scores.column_names == ["amount", "low", "high"]
    amount, low, high = (column.to_numpy() for column in scores.columns)
    *_, prices = tables()
    assert r2_score(prices, amount) > 0.7
    assert (low <= amount).all()
    assert (amount <= high).all()
    assert ((low <= prices) & (prices <= high)).mean() > 0.8
    # Scores are known as such, and may be written over.
    run("predict", folder / "model", folder / "target.csv", "-o", folder / "scores.parquet")
    refused = run(
        "predict", folder / "model", folder / "target.csv", "-o", folder / "other.csv",
        "--class-share", "a=0.1", code=2,
    )  # fmt: skip
    assert "this model predicts amounts" in " ".join(refused.split())


def test_evaluate_measures_amounts_beside_simpler_ones(folder):
    said = " ".join(run("evaluate", folder / "model", folder / "labelled.csv").split())
    assert "Better than the source's mean: the model's mean squared error is" in said
    assert "share in the 90% interval" in said
    assert "these rows' own mean" in said
    found = json.loads(run("evaluate", folder / "model", folder / "labelled.csv", "--json"))
    model = halfseen.load(folder / "model")
    _, target, prices = tables()
    error = np.sqrt(np.mean((model.predict(target) - prices) ** 2))
    assert found["metrics"]["rmse"]["value"] == pytest.approx(error)
    assert set(found["others"]) == {
        "these rows' own mean", "gradient-boosted trees", "ridge regression",
    }  # fmt: skip


def test_python_gives_the_same_model_and_says_what_it_has_not(folder):
    source, target, _ = tables()
    loaded = halfseen.load(folder / "model")
    model = halfseen.fit(source, target, "price", **QUICK)
    np.testing.assert_allclose(model.predict(target), loaded.predict(target), rtol=1e-6)
    assert model.metrics["task"] == "regression"
    assert model.predict_interval(target).shape == (160, 2)
    with pytest.raises(InputError, match="predicts amounts, which have no probabilities"):
        model.predict_proba(target)
    with pytest.raises(InputError, match="Class proportions correct probabilities"):
        model.predictions(target, target_prior=[0.5, 0.5])
    with pytest.raises(InputError, match="not all finite numbers"):
        model.evaluate(target, ["much"] * 160)


def test_graph_and_server_answer_as_the_model(folder):
    run("export", folder / "model", "--onnx", folder / "model.onnx")
    scorers = open_scorers(folder / "model.onnx")
    _, target, _ = tables()
    ((shown, amounts, _),) = scorers.parts[0].answer([target], lambda: False)
    expected = halfseen.load(folder / "model").predictions(target)
    np.testing.assert_allclose(shown, expected, rtol=1e-4)
    np.testing.assert_allclose(amounts, expected[:, 0], rtol=1e-4)
    assert output_names(scorers.schema) == ["amount", "low", "high"]
    assert described_model(scorers)["task"] == "regression"


def test_explanations_add_up_to_the_amount(folder):
    _, target, _ = tables()
    model = halfseen.load(folder / "model")
    found = model.explain(target.slice(0, 30))
    total = found.base + found.contributions.sum(1)
    np.testing.assert_allclose(total, model.predict(target)[:30], rtol=1e-6)
    assert next(iter(found.importance)) == "size"
    assert found.told(0)[0].startswith("The amount is ")
    shown = run("explain", folder / "model", folder / "target.csv", "--rows", 30)
    assert "moves the amount by, on average" in shown


def test_the_report_says_what_to_expect(folder):
    run("report", folder / "model", "-o", folder / "report.html")
    page = (folder / "report.html").read_text()
    assert "Expected mean absolute error on the target" in page
    assert "RMSE expected on the target" in page


@pytest.mark.parametrize("option", [[], ["--task", "classification"]])
def test_whole_numbers_of_many_values_are_asked_about(option, tmp_path):
    source, target, _ = tables(whole=True)
    pa.csv.write_csv(source, tmp_path / "source.csv")
    pa.csv.write_csv(target, tmp_path / "target.csv")
    given = ["fit", tmp_path / "source.csv", tmp_path / "target.csv", "--label", "price"]
    refused = " ".join(run(*given, *option, "--dry-run", code=2).split())
    assert "as an amount has: predict it as one with --task regression" in refused
    said = run(*given, "--task", "regression", "--dry-run")
    assert "an amount from" in said


def test_what_is_no_amount_is_refused():
    source, target, _ = tables()
    with pytest.raises(InputError, match=r"holds '(north|south)', which is no amount"):
        halfseen.fit(source, target.drop_columns("town"), "town", task="regression")
    with pytest.raises(OptionError, match="task='price' is unknown"):
        halfseen.fit(source, target, "price", task="price")
    with pytest.raises(OptionError, match="Networks learn classes"):
        halfseen.fit(source, target, "price", members=["networks"])
    with pytest.raises(InputError, match="positive='3' names a class"):
        halfseen.fit(source, target, "price", positive="3")
    few = source.slice(0, 9)
    with pytest.raises(InputError, match="regression needs at least 10 rows"):
        halfseen.fit(few, target, "price", task="regression")


def test_labelled_target_rows_correct_amounts():
    source, target, prices = tables()
    moved = pa.array([p + 60.0 if k < 50 else None for k, p in enumerate(prices)])
    model = halfseen.fit(source, target.append_column("price", moved), "price", **QUICK)
    found = model.metrics["target_labels"]
    assert found["used_for"] in ("weights", "training")
    errors = model.predict(target)[50:] - prices[50:] - 60.0
    assert abs(errors.mean()) < 25


@pytest.mark.parametrize(("times", "offset"), [(5.0, 0.0), (0.2, 0.0), (1.0, 90.0)])
def test_labelled_target_rows_make_intervals_hold_what_they_say(times, offset):
    source, target, prices = tables(400)
    errors = np.random.default_rng(1).normal(0, 15, 400)
    prices = prices + offset + np.sqrt(abs(times**2 - 1)) * errors
    if times < 1:  # the source's prices are the ones that nobody can tell
        noise = pa.array(np.add(source["price"], 5 * errors))
        source = source.set_column(4, "price", noise)
        prices = prices - np.sqrt(abs(times**2 - 1)) * errors
    labels = pa.array([price if k < 100 else None for k, price in enumerate(prices)])
    held = []
    for known in (target, target.append_column("price", labels)):
        model = halfseen.fit(source, known, "price", **QUICK)
        low, high = model.predict_interval(target)[100:].T
        held.append(((low <= prices[100:]) & (prices[100:] <= high)).mean())
    without, with_labels = held
    assert abs(without - 0.9) > 0.08
    assert 0.83 <= with_labels <= 0.97
    assert f"{model.metrics['interval_scale']:.2f} times as wide" in " ".join(told(model.metrics))
    measured = model.metrics["target_labels"]["measured"]["metrics"]["coverage"]["value"]
    assert abs(measured - with_labels) < 0.1


def test_a_few_labels_never_make_intervals_narrower():
    reach = IntervalReach((0.0, 1.0), (2.0, 0.0), (2.0, 1.0))
    amounts = np.linspace(0, 1, 50)
    assert reach.scale_for(amounts[:10], amounts[:10]) == 1.0
    assert reach.scale_for(amounts, amounts) == 0.0
    assert reach.times(3.0).around(np.array([1.0])).tolist() == [[0.7, 4.0]]
    assert IntervalReach((0.0,), (0.0,), (0.0,)).scale_for(np.zeros(50), np.full(50, 4.0)) == 4.0


def test_drifted_columns_are_told_and_not_mapped():
    random = np.random.default_rng(0)
    a, b, c, d = random.normal(size=(4, 200))
    source = pa.table({"a": a, "b": b, "c": c, "d": d, "y": a + 2 * b + 3 * c + d})
    target = pa.table({"a": a + 9.0, "b": b + 9.0, "c": c + 9.0})
    with pytest.warns(UserWarning, match="times as far from source rows"):
        model = halfseen.fit(source, target, "y", **QUICK)
    assert "alignment" not in model.metrics


def test_the_best_effort_has_no_networks_of_amounts():
    source, target, _ = tables(60)
    model = halfseen.fit(source, target, "price", effort="best", report=False)
    assert {member.kind for member in model.members} == set(TREES_AND_REGRESSION)


def test_several_missing_patterns_have_a_part_each(folder, tmp_path):
    _, target, prices = tables()
    pa.csv.write_csv(target.drop_columns("rooms"), tmp_path / "poor.csv")
    run(
        "fit", "--source", folder / "source.csv", "--target", folder / "target.csv",
        "--target", tmp_path / "poor.csv", "--label", "price", "--effort", "quick",
        "--members", "regression", "-o", tmp_path / "model",
    )  # fmt: skip
    rmse = {}
    for name, part in (("target", "garden"), ("poor", "rooms, garden")):
        data = folder / "target.csv" if name == "target" else tmp_path / "poor.csv"
        said = run("predict", tmp_path / "model", data, "-o", tmp_path / "scores.parquet")
        assert f"which does without {part}." in said
        scores = pa.parquet.read_table(tmp_path / "scores.parquet").to_pandas()
        assert (scores.low <= scores.amount).all()
        assert (scores.amount <= scores.high).all()
        rmse[name] = float(np.square(scores.amount - prices).mean() ** 0.5)
    assert rmse["target"] < rmse["poor"] < 30
    run("evaluate", tmp_path / "model", folder / "labelled.csv")
    run("report", tmp_path / "model", "-o", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Part 2: Expected mean absolute error" in page
    assert "accuracy" not in page
    scorers = open_scorers(tmp_path / "model")
    scorer = scorers.choose(lambda name: name != "rooms")
    assert [column.name for column in scorer.columns] == ["size", "town"]
    lacking = tmp_path / "lacking.csv"
    pa.csv.write_csv(target.drop_columns("size"), lacking)
    said = run(
        "predict", tmp_path / "model", lacking, "-o", tmp_path / "no.csv", "--strict", code=2
    )
    assert "size is not there or empty throughout" in said
