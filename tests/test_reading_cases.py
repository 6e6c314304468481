"""Tables that were once read wrongly in silence, each through fit and predict as users do it."""

import json
import re
import shutil
import unicodedata
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import halfseen
from halfseen.cli.app import app
from halfseen.errors import AlarmWarning, HalfseenError
from halfseen.saving import _seal

ROWS, OTHERS = 240, 60
IDS = re.split(
    " ", "1E2 10E1 100 5E400 1.10 1.1 02.01.2024 10:01 0x1 1% +1 1,001 NA True 001 é e\u0301"
)


def made_from(**pools):
    """Return a source whose first column tells the label, and a target that lacks `hidden`."""
    random = np.random.default_rng(0)
    columns = {name: random.choice(pool, ROWS + OTHERS) for name, pool in pools.items()}
    whole = pd.DataFrame(columns | {"x": random.normal(size=ROWS + OTHERS)})
    first = next(iter(pools))
    source = whole[:ROWS].assign(hidden=random.normal(size=ROWS))
    told = source[first] == pools[first][0]
    source["y"] = np.where(told ^ (random.random(ROWS) < 0.1), "yes", "no")
    return source, whole[ROWS:].reset_index(drop=True)


def fitted(source, target, **said):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return halfseen.fit(source, target, "y", effort="quick", report=False, **said)


def refused(source, target, words, **said):
    with pytest.raises(HalfseenError, match=words):
        fitted(source, target, **said)


def command(*words):
    """Run the command line; return its result."""
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def scored(tmp_path):
    """Give a function that writes rows as a file, scores it, and returns what comes out."""

    def score(model, rows, name="rows.csv"):
        if not (tmp_path / "model").exists():
            model.save(tmp_path / "model")
        path = tmp_path / name
        rows.to_parquet(path) if name.endswith("parquet") else rows.to_csv(path, index=False)
        result = command("predict", tmp_path / "model", path, "-o", tmp_path / "p.csv", "--force")
        assert result.exit_code == 0, result
        return pd.read_csv(tmp_path / "p.csv", dtype=str, keep_default_na=False)

    return score


def test_ids_return_byte_for_byte(scored, tmp_path):
    source, target = made_from(shop=["a", "b"])
    target["key"] = [
        IDS[row % len(IDS)] + ("" if row < len(IDS) else f"-{row}") for row in range(60)
    ]
    target.to_csv(tmp_path / "target.csv", index=False)
    with warnings.catch_warnings(record=True) as told:
        how = {"effort": "quick", "report": False, "id": ["key"]}
        model = halfseen.fit(source, tmp_path / "target.csv", "y", **how)
    assert [str(note.message) for note in told if "key" in str(note.message)] == []
    assert scored(model, target)["key"].tolist() == target["key"].tolist()


@pytest.mark.parametrize(
    "pool",
    [["1.10", "1.0", "2.0.1"], ["1E5", "12E3", "A7"], ["10:30", "11:45", "noon"],
     ["None", "NA", "NULL", "nan", "ok"], ["True", "False", "maybe"], ["01", "1", "2"],
     ["café", "cafe\u0301s", "x"]],
)  # fmt: skip
def test_rows_of_one_category_alone_have_their_own_answer(scored, tmp_path, pool):
    source, target = made_from(code=pool)
    source.to_csv(tmp_path / "source.csv", index=False)
    target.to_csv(tmp_path / "target.csv", index=False)
    for model in (
        fitted(source, target),
        fitted(tmp_path / "source.csv", tmp_path / "target.csv"),
    ):
        shutil.rmtree(tmp_path / "model", ignore_errors=True)
        whole = scored(model, target)["p_yes"]
        assert whole.astype(float).tolist() == model.predict_proba(target)[:, 1].tolist()
        alone = target["code"] == pool[0]
        assert whole[alone].astype(float).mean() > 0.6 > 0.4 > whole[~alone].astype(float).mean()
        assert scored(model, target[alone])["p_yes"].tolist() == whole[alone].tolist()


def test_a_leading_zero_late_in_a_folder_makes_a_code(tmp_path):
    source, target = made_from(zip=["01", "1", "2", "3"])
    plain = source[source["zip"] != "01"]
    (tmp_path / "source").mkdir()
    plain.to_csv(tmp_path / "source" / "a.csv", index=False)
    source.to_csv(tmp_path / "source" / "b.csv", index=False)
    target.to_csv(tmp_path / "target.csv", index=False)
    model = fitted(tmp_path / "source", tmp_path / "target.csv")
    assert {"01", "1"} <= set(model.schema.observed[0].categories)


def test_the_hour_of_zoned_times_is_the_same_in_every_format(scored):
    hours = pd.date_range("2024-03-01", periods=24, freq="h", tz="America/New_York")
    source, target = made_from(shop=["a", "b"])
    source["at"] = hours[np.arange(ROWS) % 24]
    source["y"] = np.where(source["at"].dt.hour >= 12, "yes", "no")
    target["at"] = hours[np.arange(OTHERS) % 24]
    model = fitted(source, target, dates={"at": ["hour"]})
    expected = model.predict_proba(target)[:, 1]
    assert ((expected > 0.5) == (target["at"].dt.hour >= 12)).mean() > 0.95
    for name in ("rows.csv", "rows.parquet"):
        assert scored(model, target, name)["p_yes"].astype(float).tolist() == expected.tolist()


def test_mixed_zones_are_mentioned(tmp_path):
    source, target = made_from(shop=["a", "b"])
    zones = ["+01:00", "+02:00"]
    for rows, name in ((source, "source"), (target, "target")):
        at = [
            f"2024-05-{1 + row % 28:02d} {row % 24:02d}:00:00{zones[row % 2]}" for row in rows.index
        ]
        rows.assign(at=at).to_csv(tmp_path / f"{name}.csv", index=False)
    with pytest.warns(UserWarning, match=r"at has times of several zones \(\+01:00, \+02:00\)"):
        halfseen.fit(
            tmp_path / "source.csv", tmp_path / "target.csv", "y", dates={"at": ["hour"]},
            effort="quick", report=False,
        )  # fmt: skip


def test_a_class_called_na_is_a_class(tmp_path):
    source, target = made_from(shop=["a", "b"])
    source["y"] = source["y"].map({"yes": "NA", "no": "fine"})
    source.to_csv(tmp_path / "source.csv", index=False)
    model = fitted(tmp_path / "source.csv", target)
    assert model.classes_.tolist() == ["NA", "fine"]
    source["y"] = source["y"].map({"NA": "True", "fine": "False"}).astype(object)
    source.to_csv(tmp_path / "source.csv", index=False)
    assert fitted(tmp_path / "source.csv", target).classes_.tolist() == ["False", "True"]


def test_names_and_classes_are_compared_in_one_form():
    composed, decomposed = "café", unicodedata.normalize("NFD", "café")
    source, target = made_from(shop=["a", "b"])
    source[composed], target[decomposed] = source["x"], target["x"]
    source["y"] = ["né" if row % 2 else unicodedata.normalize("NFD", "né") for row in range(ROWS)]
    source.loc[source["x"] > 0, "y"] = "oui"
    model = fitted(source, target)
    assert [column.name for column in model.schema.missing] == ["hidden"]
    assert model.classes_.tolist() == ["né", "oui"]


@pytest.mark.parametrize(
    ("twin", "shown"),
    [("\ufeffage", r"'\\ufeffage'"), ("age\u200b", r"'age\\u200b'"), ("ａge", r"'\\uff41ge'")],
)
def test_names_that_look_the_same_stop_the_fit(twin, shown):
    source, target = made_from(shop=["a", "b"])
    source["age"], target[twin] = source["x"], target["x"]
    refused(source, target, shown)


def test_python_warns_as_the_command_line_does_from_the_first_row_on():
    source, target = made_from(city=["rome", "oslo"])
    model = fitted(source, target)
    strange = target.assign(city=target["city"].str.upper(), x=target["x"] * 1000 + 5000)
    for rows in (strange, strange[:1]):
        with pytest.warns(AlarmWarning) as told:
            model.predict_proba(rows)
        assert {"x", "city"} <= {str(warning.message).split()[0] for warning in told}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict_proba(target)


def test_a_sealed_lie_about_outputs_is_refused(tmp_path):
    source, target = made_from(shop=["a", "b"])
    fitted(source, target).save(tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    described = json.loads(path.read_text())
    described["members"][0]["outputs"] = True
    described["seal"] = _seal(described)
    path.write_text(json.dumps(described))
    with pytest.raises(HalfseenError, match="its trees have True outputs"):
        halfseen.load(tmp_path / "model")


def test_a_decimal_comma_is_told_by_what_the_source_has(tmp_path):
    source, target = made_from(shop=["a", "b"])
    source["gas"], target["gas"] = source["x"].round(3) + 26, target["x"].round(3) + 26
    model = fitted(source, target)
    ambiguous = target[:1].assign(gas="26,249")
    with pytest.warns(AlarmWarning, match="'26,249' in row 0: read with the other decimal sign"):
        found = model.predict_proba(ambiguous)
    assert found.tolist() == model.predict_proba(target[:1].assign(gas=26.249)).tolist()


@pytest.mark.parametrize("scale", [1e298, 1e-300])
def test_amounts_without_squares_are_refused(scale):
    source, target = made_from(shop=["a", "b"])
    source["y"] = source["x"] * scale
    refused(source, target, "errors are squared: give it in a unit", task="regression")


def test_frames_of_uncommon_columns():
    source, target = made_from(shop=["a", "b"])
    several = source.copy()
    several.columns = pd.MultiIndex.from_tuples([("a", name) for name in source.columns])
    estimator = halfseen.HalfSeenClassifier(effort="quick")
    estimator.fit(several.iloc[:, :3], source["y"], X_target=several.iloc[:60, :2])
    sparse = source.assign(x=pd.arrays.SparseArray(source["x"]))
    expected = fitted(source, target).predict_proba(target)
    assert (fitted(sparse, target).predict_proba(target) == expected).all()
    spans = pd.to_timedelta(np.arange(ROWS), unit="h")
    refused(source.assign(z=spans), target, r"'z' of the source holds lengths of time: .*seconds")
    days = pd.period_range("2020", periods=ROWS, freq="D")
    refused(source.assign(z=days), target, r"'z' of the source holds periods: .*to_timestamp")


def test_what_used_to_raise_no_alarm():
    source, target = made_from(shop=["a", "b"])
    third = {"x": lambda rows: np.where(rows.index % 3 == 0, -999.0, rows["x"])}
    model = fitted(source.assign(**third), target.assign(**third))
    assert "sentinel" in {alarm.kind for alarm in model.alarms}
    tiny = {"x": lambda rows: rows["x"] * 1e-310}
    model = fitted(source.assign(**tiny), target.assign(**tiny))
    assert "scale" in {alarm.kind for alarm in model.alarms}
    amounts = source.assign(y=np.where(source.index == 3, 1e30, source["x"]))
    model = fitted(amounts, target, task="regression")
    assert "outlier" in {alarm.kind for alarm in model.alarms}


def test_numbers_in_brackets_are_negative_and_short_years_are_no_dates(tmp_path):
    source, target = made_from(shop=["a", "b"])
    for rows, name in ((source, "source"), (target, "target")):
        owed = [f"({-value:.4f})" if value < 0 else f"{value:.4f}" for value in rows["x"]]
        rows.assign(x=owed).to_csv(tmp_path / f"{name}.csv", index=False)
    model = fitted(tmp_path / "source.csv", tmp_path / "target.csv")
    (column,) = (c for c in model.schema.observed if c.name == "x")
    assert column.kind == "numeric"
    assert column.mean == pytest.approx(source["x"].mean(), abs=1e-3)
    short = {"at": lambda rows: [f"{1 + k % 28:02d}.05.15" for k in range(len(rows))]}
    words = "'01.05.15' in row 0 where dates are needed"
    refused(source.assign(**short), target.assign(**short), words, dates={"at": ["month"]})


def test_a_weight_of_zero_is_leaving_the_row_out():
    source, target = made_from(shop=["a", "b"])
    weighed = source.assign(w=np.where(source.index % 3 == 0, 0.0, 1.0 + source.index % 2))
    found, expected = (
        fitted(rows, target, weight="w").predict_proba(target)
        for rows in (weighed, weighed[weighed["w"] > 0])
    )
    assert (found == expected).all()


def test_what_contradicts_the_tables_is_refused():
    source, target = made_from(shop=["a", "b"])
    refused(source, target, "must be positive numbers", class_weight={"yes": 0})
    refused(source, target, r"keep=\['hidden'\] says that it is measured", keep=["hidden"])
    both = {"when": lambda rows: pd.Timestamp("2024-01-01"), "at": lambda rows: rows["when"]}
    several, target = source.assign(**both), target.assign(**both)
    with pytest.raises(HalfseenError, match="2 things are wrong:\n- ") as told:
        fitted(several, target)
    assert "'when'" in str(told.value)
    assert "'at'" in str(told.value)


def test_minus_one_may_be_a_class():
    source, target = made_from(shop=["a", "b"])
    labels = np.where(source["y"] == "yes", 1, -1)
    known = np.where(target["shop"] == "a", 1, -1)
    estimator = halfseen.HalfSeenClassifier(effort="quick", random_state=0)
    estimator.fit(source.drop(columns="y"), labels, X_target=target, y_target=known)
    assert estimator.classes_.tolist() == [-1, 1]


def test_the_command_line_says_what_went_wrong_as_json_too(tmp_path, monkeypatch, capsys):
    import sys

    from halfseen.cli.app import main

    monkeypatch.setattr(sys, "argv", ["halfseen", "inspect", str(tmp_path / "none"), "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert json.loads(capsys.readouterr().out)["error"].startswith("There is no model folder")


def test_scores_go_to_standard_output(tmp_path):
    source, target = made_from(shop=["a", "b"])
    model = fitted(source, target)
    model.save(tmp_path / "model")
    target.to_csv(tmp_path / "rows.csv", index=False)
    printed = command("predict", tmp_path / "model", tmp_path / "rows.csv", "-o", "-")
    command("predict", tmp_path / "model", tmp_path / "rows.csv", "-o", tmp_path / "p.csv")
    assert printed.stdout == (tmp_path / "p.csv").read_text()
    assert command("predict", tmp_path / "model", tmp_path / "rows.csv").stdout == printed.stdout
    refused = command("predict", tmp_path / "model", tmp_path / "rows.csv", "-o", "-", "--json")
    assert isinstance(refused.exception, HalfseenError)


def test_a_model_is_shown_in_a_line():
    source, target = made_from(shop=["a", "b"])
    assert len(repr(fitted(source, target))) < 120


def test_nothing_kept_is_not_told_as_going_on(tmp_path, capsys):
    from halfseen.cli.fit_config import going_on
    from halfseen.cli.terminal import Terminal

    def interrupted(keeps):
        with going_on(tmp_path / "model", Terminal()) as kept:
            if keeps:
                kept.mkdir()
                (kept / "a.safetensors").touch()
            raise KeyboardInterrupt

    def stop(keeps):
        with pytest.raises(KeyboardInterrupt):
            interrupted(keeps)
        return capsys.readouterr().err

    assert "Nothing was kept" in stop(False)
    assert "goes on from the last finished epoch" in stop(True)


def test_single_precision_means_what_is_written():
    assert pa.array([0.1], pa.float32()).cast(pa.string()).to_pylist() == ["0.1"]
    source, target = made_from(shop=["a", "b"])
    source["x"], target["x"] = source["x"].round(1), target["x"].round(1)
    model = fitted(source, target)
    narrow = target.assign(x=target["x"].astype(np.float32))
    assert (model.predict_proba(narrow) == model.predict_proba(target)).all()
