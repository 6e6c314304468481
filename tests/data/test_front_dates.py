"""Dates by the parts that somebody names, and rows without a label."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest

import halfseen
from halfseen.data.column_spec import ColumnSpec
from halfseen.data.dates import date_parts, read_dates
from halfseen.data.schema_inference import InferredTables, infer_schema
from halfseen.data.table_files import open_table
from halfseen.errors import InputError, OptionError

DAYS = [datetime.date(2024, 1, 1) + datetime.timedelta(days=7 * k) for k in range(50)]


def visits(rows=100, seed=0):
    random = np.random.default_rng(seed)
    day = [DAYS[k] for k in random.integers(0, 50, rows)]
    late = np.array([d.month > 6 for d in day])
    test = late + random.normal(0, 0.5, rows)
    return pa.table({"visit": day, "age": random.normal(50, 9, rows), "test": test,
                     "sick": test + random.normal(0, 0.5, rows) > 0.5})  # fmt: skip


def test_parts_of_a_date_are_those_of_the_calendar():
    day = datetime.datetime(2024, 2, 29, 13, 45)
    of = read_dates(["a=year,month,day,weekday,hour,days"])["a"]
    typed, texts = pa.array([day, None]), pa.array(["29.02.2024 13:45", ""])
    for column in (typed, texts, pa.array(["2024-02-29T13:45:10.5", "n/a"])):
        found = date_parts(column, "a", of, where="x")
        assert [found[part][0] for part in ("year", "month", "day", "weekday", "hour")] == [
            2024, 2, 29, day.weekday(), 13
        ]  # fmt: skip
        assert found["days"][0] == (day.date() - datetime.date(1970, 1, 1)).days
        assert np.isnan(found["month"][1])


def test_a_model_reads_the_same_parts_wherever_rows_come_from(tmp_path):
    source, target = visits(), visits(60, 1).select(["visit", "age"])
    for name, table in (("source", source), ("target", target)):
        pa.csv.write_csv(table, tmp_path / f"{name}.csv")
    dates = {"visit": ["month", "weekday"]}
    model = halfseen.fit(source, target, "sick", dates=dates, members=["regression"], report=False)
    assert model.schema.dates["visit"].parts == ("month", "weekday")
    assert [c.name for c in model.schema.observed] == ["age", "visit month"], "all are Mondays"
    model.save(tmp_path / "model")
    loaded = halfseen.load(tmp_path / "model")
    files = open_table(tmp_path / "target.csv")
    answers = [loaded.predict_proba(target), loaded.predict_proba(target.to_pandas())]
    answers.append(np.concatenate([loaded.predict_proba(batch) for batch in files.batches()]))
    for answer in answers[1:]:
        assert answer == pytest.approx(answers[0])
    assert loaded.explain(target.slice(0, 3)).importance["visit month"] > 0.1


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["visit=moon"], "dates visit: 'moon' is no part of a date; write COLUMN=PART,PART with"),
        (["visit"], "dates visit: it names no part"),
    ],
)
def test_parts_that_are_none_are_refused(given, says):
    with pytest.raises(OptionError, match=says):
        read_dates(given)


def test_what_is_no_date_is_refused():
    month, hour = (read_dates([f"a={part}"])["a"] for part in ("month", "hour"))
    with pytest.raises(InputError, match="Column 'a' of x holds '1' in row 1 where dates are"):
        date_parts(pa.array([1]), "a", month, where="x")
    for without in (pa.array([DAYS[0]]), pa.array(["2024-01-01"])):
        with pytest.raises(InputError, match="'2024-01-01' in row 1 where dates with times are"):
            date_parts(without, "a", hour, where="x")
    for strange in ("17.05.15", "2024-02-31", "noon", "5/17/24"):
        with pytest.raises(InputError, match=f"holds '{strange}' in row 1 where dates are needed"):
            date_parts(pa.array([strange]), "a", month, where="x")
    with pytest.raises(InputError, match=r"name the parts .* \(--dates visit=month,weekday; in Py"):
        halfseen.fit(visits(), visits(60).select(["visit", "age"]), "sick")


# --- labels with empty cells ------------------------------------------------------------------


def labelled(labels):
    random = np.random.default_rng(0)
    rows = len(labels)
    source = {"age": random.normal(size=rows), "test": random.normal(size=rows), "sick": labels}
    return pa.table(source), pa.table({"age": random.normal(size=30)})


def test_rows_without_a_label_are_counted(tmp_path):
    """Before, the first empty cell ended the fit."""
    source, target = labelled(["yes", "no", None, "no"] * 10)
    for name, table in (("source", source), ("target", target)):
        pa.csv.write_csv(table, tmp_path / f"{name}.csv")
    found = infer_schema(*(open_table(tmp_path / f"{n}.csv") for n in ("source", "target")),
                       ColumnSpec("sick"))  # fmt: skip
    assert isinstance(found, InferredTables)
    assert found.source.rows == 30
    assert any(note.startswith("30 source rows have a label; 10 complete") for note in found.notes)
    assert found.unlabelled == 10
    assert found.class_counts == (20, 10)
    quick = {"members": ["regression"], "effort": "quick"}  # no teachers
    model = halfseen.fit(source, target, "sick", **quick)
    kept = source.filter(pa.compute.is_valid(source["sick"]))
    same = halfseen.fit(kept, target, "sick", **quick)
    assert model.predict_proba(target) == pytest.approx(same.predict_proba(target), abs=0.05)


def test_a_source_without_any_label_is_refused():
    source, target = labelled(pa.nulls(20, pa.string()))
    with pytest.raises(InputError, match="The label 'sick' of the source is empty in every row"):
        halfseen.fit(source, target, "sick")
