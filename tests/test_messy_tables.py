"""Tables as people export them: what would mislead in silence is said."""

import numpy as np
import pyarrow as pa
import pytest

import halfseen
from halfseen.errors import InputError
from halfseen.front.files import open_table

QUICK = {"effort": "quick", "members": ["regression"], "report": False}


def patients(rows, seed):
    random = np.random.default_rng(seed)
    age, bmi, test = random.normal((50, 26, 5), (12, 4, 1.5), (rows, 3)).T
    sick = np.where((age - 50) / 12 + test - 5 + random.normal(0, 0.7, rows) > 0, "yes", "no")
    return {"age": age, "bmi": bmi, "test": test, "sick": sick}


def pair(**changes):
    """Return a source and a target, columns of either changed or added."""
    source, target = patients(120, 0), patients(60, 1)
    for name, change in changes.items():
        source[name], target[name] = change(source, 120), change(target, 60)
    return pa.table(source), pa.table(target).drop_columns(["test", "sick"])


def alarms(source, target):
    return {
        alarm.kind: alarm.says for alarm in halfseen.fit(source, target, "sick", **QUICK).alarms
    }


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_copies_of_rows_are_told_and_rows_of_categories_are_none():
    source, target = pair()
    assert "copies" not in alarms(source, target)
    assert alarms(pa.concat_tables([source] * 3), target)["copies"].startswith("67% of the source")
    flags = pair(**dict.fromkeys(("age", "bmi"), lambda t, rows: (t["age"] > 50).astype(int)))
    assert "copies" not in alarms(*flags)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_single_slip_of_a_huge_number_is_told():
    said = alarms(*pair(age=lambda t, rows: np.r_[5e12, t["age"][1:]]))["outlier"]
    assert said.startswith("age is 5e+12 in 0.8% of the source's rows, and ")
    assert "outlier" not in alarms(*pair(age=lambda t, rows: np.r_[500, t["age"][1:]]))


@pytest.mark.parametrize("other", [" yes", "YES", "yes  "])
def test_classes_that_differ_in_spelling_alone_are_refused(other):
    def respelled(table, rows):
        return [other if k % 5 == 0 and v == "yes" else v for k, v in enumerate(table["sick"])]

    with pytest.raises(InputError, match="differ in capitals or spaces alone: spell them alike"):
        halfseen.fit(*pair(sick=respelled), "sick", **QUICK)


def test_all_names_that_are_spelled_otherwise_are_named_at_once():
    source, target = pair()
    with pytest.raises(InputError, match="has 'Age', 'BMI', and the source 'age', 'bmi'"):
        halfseen.fit(source, target.rename_columns(["Age", "BMI"]), "sick", **QUICK)


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["17.05.2024", "1.2.2023", ""], "timestamp[s]"),
        (["17.05.2024 13:45", "01.02.2023 00:00"], "timestamp[s]"),
        (["17.05.2024", "soon"], "string"),
        (["17.5", "1.2"], "double"),
    ],
)
def test_dates_with_points_are_dates(texts, kind, tmp_path):
    (tmp_path / "a.csv").write_text("\n".join(["x;visit", *(f"1;{text}" for text in texts)]))
    (batch,) = open_table(tmp_path / "a.csv").batches(["visit"])
    assert str(batch.schema.field("visit").type) == kind
