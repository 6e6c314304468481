"""Python and the command line are two faces of one model: the same rows, settings and seed give
the same answers, and the same mistake gets the same sentence.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import halfseen
from halfseen import HalfSeenClassifier
from halfseen.cli.app import app
from halfseen.errors import HalfseenError
from halfseen.fitting import prepared_rows
from tiny import TINY

ROWS = 120


def mixed(rows: int = ROWS) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame]:
    """Return tables as people have them: texts, categories, booleans, counts, dates, gaps."""
    random = np.random.default_rng(0)
    age, dose = random.normal(50, 10, rows), random.exponential(size=rows)
    frame = pd.DataFrame(
        {
            "age": np.where(random.random(rows) < 0.1, np.nan, age),
            "visits": random.poisson(np.exp(random.normal(1, 1, rows))),
            "city": pd.Categorical(random.choice(["Oslo", "Rome", "São Tomé, east"], rows)),
            "shop": random.choice(np.array(["a", "b", None], dtype=object), rows),
            "grade": random.choice([1, 2, 5], rows),
            "smoker": random.random(rows) < 0.5,
            "insured": random.choice(np.array([True, False, None], dtype=object), rows),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 99, rows), "D"),
            "dose": np.where(random.random(rows) < 0.1, np.nan, dose),
            "taste": random.choice(np.array(["sweet", "sour", None], dtype=object), rows),
        }
    )
    labels = np.where(age + 10 * dose + 3 * frame["smoker"] > 58, "sick", "well")
    target = frame.drop(columns=["dose", "taste"]).assign(age=frame["age"] + 3)
    target.loc[:5, "shop"] = "never seen before"
    target.loc[3:9, "visits"] = None
    return frame, labels, target


def write(frame: pd.DataFrame, path: Path) -> Path:
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        pa.parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), path)
    return path


def fit_files(folder: Path, source, labels, target, *options: str, suffix: str = "parquet"):
    """Run `halfseen fit`; return how it ended."""
    paths = [
        write(source.assign(label=labels), folder / f"source.{suffix}"),
        write(target, folder / f"target.{suffix}"),
    ]
    settings = [f"--set={name}={json.dumps(value)}" for name, value in TINY.items()]
    given = ["--label", "label", "--report-data", "none", "-o", folder / "model"]
    return CliRunner().invoke(app, list(map(str, ["fit", *paths, *given, *settings, *options])))


@pytest.fixture(autouse=True)
def one_fold(monkeypatch):
    """Hold out one part, as with many rows: two trainings instead of six."""
    monkeypatch.setattr(prepared_rows, "SMALL", 0)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize("members", [["networks", "regression"], ["networks"]], ids="+".join)
def test_a_frame_and_two_files_give_the_same_model(members, suffix, tmp_path):
    source, labels, target = mixed()
    options = ["--seed", "3", "--members", ",".join(members), "--drop", "day"]
    done = fit_files(
        tmp_path, source, labels, target, *options, "--categorical", "grade", suffix=suffix
    )
    assert done.exit_code == 0, done.output
    by_files = halfseen.load(tmp_path / "model")
    model = HalfSeenClassifier(
        options=TINY, random_state=3, members=members, drop=["day"], categorical=["grade"]
    ).fit(source, labels, X_target=target)
    kinds = {column.name: column.kind for column in model.model_.schema.columns}
    assert kinds == {
        "age": "numeric",
        "visits": "count",
        "city": "categorical",
        "shop": "categorical",
        "grade": "categorical",
        "smoker": "boolean",
        "insured": "boolean",
        "dose": "numeric",
        "taste": "categorical",
    }
    assert model.model_.schema.columns == by_files.schema.columns
    assert model.model_.weights == by_files.weights
    assert [member.kind for member in by_files.members] == members
    expected = model.predict_proba(target)
    assert expected.std(0).min() > 1e-3  # the rows do differ
    np.testing.assert_array_equal(by_files.predict_proba(target), expected)
    scores = tmp_path / f"scores.{suffix}"
    new = tmp_path / f"target.{suffix}"
    arguments = ["predict", tmp_path / "model", new, "-o", scores]
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert done.exit_code == 0, done.output
    read = pd.read_csv if suffix == "csv" else pd.read_parquet
    written = read(scores)
    np.testing.assert_allclose(written[["p_sick", "p_well"]], expected, rtol=0, atol=1e-6)
    assert written["prediction"].tolist() == model.predict(target).tolist()


def changed(column: str, values, *, both: bool = True):
    """Return the tables with other values in one column."""
    source, labels, target = mixed()
    source[column] = values
    if both and column in target:
        target[column] = values
    return source, labels, target


def without_day(**given):
    return {"drop": ["day"]} | given


SENTENCES = {
    "dates": (mixed, {}, "Column 'day' of {source} holds dates or times (timestamp["),
    "free text": (
        lambda: changed("shop", [f"no {row}" for row in range(ROWS)]),
        without_day(),
        "Column 'shop' has 120 different texts in 120 rows: is it an identifier",
    ),
    "an infinite number": (
        lambda: changed("age", [np.inf] + [1.0, 2.0] * 59 + [3.0]),
        without_day(),
        "Column 'age' of {source} holds an infinite value in row {first}; replace it",
    ),
    "a number too large": (
        lambda: changed("age", [1e300, -1e300] * 60),
        without_day(),
        "Column 'age' of {source} holds numbers up to 1e+300, too large to be scaled; rescale it",
    ),
    "numbers here and texts there": (
        lambda: (*mixed()[:2], mixed()[2].assign(age=["old", "7"] * 60)),
        without_day(),
        "Column 'age' holds numbers in the source and texts such as 'old' (row {first}) in "
        "{target}.",
    ),
    "other categories": (
        lambda: (*mixed()[:2], mixed()[2].assign(city=["Bern", "Lima"] * 60)),
        without_day(),
        "No value of column 'city' of {target} occurs in the source: the target has Bern, Lima",
    ),
    "nothing missing": (
        lambda: (*mixed()[:2], mixed()[0]),
        without_day(),
        " has a value for every column of {source} (n_features=9), so nothing is missing there",
    ),
    "a column that looks unmeasured": (
        lambda: (*mixed()[:2], mixed()[2].assign(age=0.0)),
        without_day(),
        "Was it measured on the target? Column 'age' is 0 in every target row, and varies in the",
    ),
    "few target rows": (
        lambda: (*mixed()[:2], mixed()[2].head(9)),
        without_day(keep=["visits", "shop"]),
        "has 9 rows; at least 10 are needed to adapt to it.",
    ),
    "a rare class": (
        lambda: (mixed()[0], np.array(["rare"] + ["well"] * 60 + ["sick"] * 59), mixed()[2]),
        without_day(),
        "Class 'rare' of label 'label' has one row; at least 2 are needed: label another",
    ),
    "an unknown column": (
        mixed,
        without_day(keep=["agee"]),
        "keep names column 'agee', which the source",
    ),
    "two spec": (mixed, {"drop": ["age"], "keep": ["age"]}, "Column 'age' is given to both "),
    "an unknown option": (
        mixed,
        without_day(options={"training.speed": 1}),
        "There is no option 'training.speed'.",
    ),
    "a wrong value": (
        mixed,
        without_day(options={"training.learning_rate": -1}),
        "training.learning_rate=-1: Input should be greater than 0.",
    ),
    "an unknown member": (
        mixed,
        without_day(members=["networks", "trees"]),
        "members=['networks', 'trees'] must name one or more of ['networks', 'regression'",
    ),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_both_faces_say_the_same(name, tmp_path):
    make, given, sentence = SENTENCES[name]
    source, labels, target = make()
    settings = {"options": TINY, "random_state": 0} | given
    with pytest.raises(HalfseenError) as caught:
        HalfSeenClassifier(**settings).fit(source, labels, X_target=target)
    words = {"source": "the source", "target": "the target", "first": 0}
    assert sentence.format_map(words) in str(caught.value)
    options = [f"--set={option}={value}" for option, value in given.get("options", {}).items()]
    columns = {option: values for option, values in given.items() if option != "options"}
    options += [f"--{option}={','.join(values)}" for option, values in columns.items()]
    done = fit_files(tmp_path, source, labels, target, *options)
    assert isinstance(done.exception, HalfseenError), done.output
    paths = {key: str(tmp_path / f"{key}.parquet") for key in ("source", "target")}
    assert sentence.format_map(paths | {"first": 1}) in str(done.exception)
    assert not (tmp_path / "model").exists()
    for error in (str(caught.value), str(done.exception)):
        assert "\n" not in error
