"""Tables as people export them: what would mislead in silence is said."""

import datetime
import gzip

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import halfseen
from halfseen.data.table_files import open_table
from halfseen.data.table_summary import summarize_source
from halfseen.errors import InputError

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
        (["17.05.2024", "1.2.2023", ""], "dates"),
        (["17.05.2024 13:45", "01.02.2023 00:00"], "dates"),
        (["17.05.2024", "soon"], "text"),
        (["17.5", "1.2"], "number"),
    ],
)
def test_dates_with_points_are_dates(texts, kind, tmp_path):
    (tmp_path / "a.csv").write_text("\n".join(["x;visit", *(f"1;{text}" for text in texts)]))
    seen = summarize_source(open_table(tmp_path / "a.csv"), ["visit"], dates={})
    if kind == "dates":
        assert "'visit' of" in seen.problems[0]
        assert "holds dates or times, which a model cannot" in seen.problems[0]
    else:
        assert seen.columns["visit"].values == kind


# --- files ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("a,b,,\n1,x,,\n2,y,,\n", {"a": [1, 2], "b": 2}),
        ("a|b\n1|x\n", {"a": [1], "b": 1}),
        ('a,b\n"1,5",2\n"12,25",3\n', {"a": [1.5, 12.25], "b": [2, 3]}),
        ('a,b\n"1,500",2\n"12,250",3\n', {"a": [1500.0, 12250.0], "b": [2, 3]}),
        ("a\n<NA>\n3\nn/a\n", {"a": [3]}),
        (f"a\n{10**24 + 1}\n{10**24 + 2}\n", {"a": 2}),
    ],
    ids=["separators at the end", "bars", "commas", "thousands", "gaps", "many digits"],
)
def test_what_other_programs_write_is_read(text, rows, tmp_path):
    (tmp_path / "a.csv").write_text(text)
    table = open_table(tmp_path / "a.csv")
    seen = summarize_source(table, table.names, dates={})
    assert {
        name: len(column.counts) if column.values == "text" else column.sample.tolist()
        for name, column in seen.columns.items()
    } == rows


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"Patients of May,,\nage,bmi,sick\n5,6,7\n", "Column 2 of .* has no name: the first line"),
        (gzip.compress(b"a,b\n1,2\n"), r"is no text but packed: should its name end in \.csv\.gz"),
        (b"PK\x03\x04 and so on", r"is no text but packed: should its name end in \.xlsx"),
    ],
    ids=["a title", "gzip", "a workbook"],
)
def test_what_is_no_table_is_refused_with_its_cause(content, says, tmp_path):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(InputError, match=says):
        open_table(tmp_path / "a.csv")


@pytest.mark.parametrize("form", ["5/{}/24", "{} May 2024", "May {}, 2024", "{}-05-2024"])
def test_dates_as_texts_are_no_categories(form):
    def dates(table, rows):
        return [form.format(1 + k % 28) for k in range(rows)]

    with pytest.raises(InputError, match="Column 'visit' holds dates as texts such as"):
        halfseen.fit(*pair(visit=dates), "sick", **QUICK)
    halfseen.fit(*pair(visit=dates), "sick", categorical="visit", **QUICK)


def test_makes_and_years_are_no_dates():
    def makes(table, rows):
        return [("Audi Quattro 2010", "Fiat Panda 1999", "Jan 5")[k % 3] for k in range(rows)]

    model = halfseen.fit(*pair(car=makes), "sick", **QUICK)
    assert {c.name: c.kind for c in model.schema.columns}["car"] == "categorical"


def test_of_a_time_the_hour_is_read():
    source, target = pair(at=lambda t, rows: [datetime.time(k % 24) for k in range(rows)])
    with pytest.raises(InputError, match="--dates at=hour; in Python dates="):
        halfseen.fit(source, target, "sick", **QUICK)
    model = halfseen.fit(source, target, "sick", dates={"at": ["hour"]}, **QUICK)
    assert "at hour" in [column.name for column in model.schema.columns]


def test_a_row_of_totals_is_told(tmp_path):
    source, target = pair()
    totals = {"age": ["Total"], "bmi": [""], "test": [""], "sick": [""]}
    texts = {name: [*map(str, source[name].to_pylist()), *totals[name]] for name in totals}
    lines = [",".join(texts), *(",".join(row) for row in zip(*texts.values(), strict=True))]
    (tmp_path / "source.csv").write_text("\n".join(lines))
    with pytest.raises(InputError, match=r"'age' looks like numbers except for 'Total' in 1 row:"):
        halfseen.fit(tmp_path / "source.csv", target, "sick", **QUICK)


# --- frames -----------------------------------------------------------------------------------


def test_categories_of_numbers_are_categories():
    def codes(table, rows):
        return pa.array([k % 4 for k in range(rows)]).dictionary_encode()

    source, target = pair(ward=codes)
    model = halfseen.fit(source, target, "sick", **QUICK)
    assert {c.name: c.kind for c in model.schema.columns}["ward"] == "categorical"
    assert halfseen.fit(source, target, "ward", task="regression", **QUICK).schema.amounts
    plain = target.set_column(2, "ward", target["ward"].cast(pa.int64()))
    np.testing.assert_array_equal(model.predict_proba(plain), model.predict_proba(target))


def test_frames_that_wait_are_collected():
    source, target = (pl.from_arrow(table).lazy() for table in pair())
    model = halfseen.fit(source, target, "sick", **QUICK)
    assert len(model.predict(target)) == 60


def test_one_name_is_a_name():
    model = halfseen.fit(*pair(), "sick", drop="bmi", **QUICK | {"members": "regression"})
    assert model.schema.dropped == ("bmi",)


@pytest.mark.parametrize("given", [{"age": [1, 2]}, [{"age": 1}], "records"])
def test_what_is_no_frame_is_a_sentence(given):
    source, target = pair()
    given = source.to_pylist() if given == "records" else given
    with pytest.raises(InputError, match="has no column names: give data frames"):
        halfseen.fit(given, target, "sick", **QUICK)


def test_labels_that_are_not_used_are_told():
    source, _ = pair()
    everywhere = pa.table(patients(60, 1)).drop_columns("test")
    with pytest.warns(UserWarning, match="All 60 target rows have a label: they are not used"):
        halfseen.fit(source, everywhere, "sick", **QUICK)
    other = everywhere.rename_columns({"sick": "Sick"})
    with pytest.warns(UserWarning, match="'Sick' of the target looks like the label 'sick'"):
        halfseen.fit(source, other, "sick", **QUICK)


def test_a_column_that_rows_lack_is_looked_for_under_another_name():
    source, target = pair()
    model = halfseen.fit(source, target, "sick", **QUICK)
    with pytest.raises(InputError, match=r"lacks column 'age'.*did you mean 'AGE'"):
        model.predict(target.rename_columns(["AGE", "bmi"]).to_pandas())


# --- alarms -----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_row_number_is_told():
    said = alarms(*pair(id=lambda t, rows: np.arange(1, rows + 1)))
    assert said["row number"].startswith("id numbers the source's rows from 1 to 120")
    assert "row number" not in alarms(*pair(id=lambda t, rows: np.arange(rows) * 3))
    assert "row number" not in alarms(*pair(id=lambda t, rows: np.arange(rows) / rows))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_column_that_tells_the_label_is_told():
    leaks = {
        "code": lambda t, rows: np.where(t["sick"] == "yes", "Y", "N"),
        "id": lambda t, rows: np.argsort(np.argsort(t["sick"], kind="stable")) * 7 + 3,
    }
    for name, leak in leaks.items():
        assert alarms(*pair(**{name: leak}))["leak"].startswith(
            f"{name} alone tells the class of 1"
        )
    assert "leak" not in alarms(*pair())


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_column_that_mostly_tells_the_label_is_none():
    def code(table, rows):
        return np.where(np.arange(rows) % 12 == 0, "Y", np.where(table["sick"] == "yes", "Y", "N"))

    assert "leak" not in alarms(*pair(code=code))
