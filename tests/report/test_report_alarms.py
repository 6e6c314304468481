"""Alarms on the page: counted before any number, each beside what it speaks of."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import halfseen
from halfseen.alarms import Alarm
from halfseen.errors import InputError
from halfseen.report.html import rendered_page
from halfseen.report.model_page import alarm_tiles, model_page, read_subject


def people(rows: int, seed: int, *, factor: float = 1.0) -> pa.Table:
    random = np.random.default_rng(seed)
    weight, age = random.normal(75, 12, rows), random.normal(50, 9, rows)
    test = weight / 12 + random.normal(0, 1, rows)
    return pa.table(
        {
            "weight": weight * factor,
            "age": age,
            "test": test,
            "sick": test + (age - 50) / 9 > 6.25,
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of kilograms, whose target was in grams."""
    source = people(200, 0)
    target = people(120, 1, factor=1000.0).drop_columns(["test", "sick"])
    with pytest.warns(UserWarning, match="about 1,000 times"):
        model = halfseen.fit(source, target, "sick", effort="quick", members=["regression"])
    saved = tmp_path_factory.mktemp("grams") / "model"
    model.save(saved)
    return saved


def section(page, name):
    return next(section for section in page.sections if section.name == name)


def test_kilograms_and_grams_are_on_the_first_screen_and_no_accuracy_is(folder):
    """Before, the page's largest number was "expected accuracy 72% to 98%", and no alarm."""
    page = model_page(read_subject(folder))
    first, second, *_ = page.tiles
    assert first.bad
    assert first.title == "Looks wrong"
    assert "unit: weight" in first.words
    assert (second.title, second.value) == ("Expected accuracy on the target", "Cannot be told")
    warning, _, grid = section(page, "shifted").parts
    assert "weight on the target is about 1,000 times the source's" in warning.text
    assert warning.warning
    assert grid.heads[1].title == "alarm"
    assert {row[0].text: row[1].text for row in grid.rows} == {"weight": "unit", "age": ""}
    html = rendered_page(page)
    assert '<p class="warning">Source rows do not cover it' in html
    assert "no unlabelled row can tell" in html
    assert html.index("Looks wrong") < html.index("Cannot be told")


def test_alarms_about_rows_stand_above_the_expectation(folder):
    subject = read_subject(folder)
    told = [{"kind": "one class", "says": "All 50 rows are predicted to be 'no'."}]
    subject.description.metrics["alarms"] = told
    assert "All 50 rows" in section(model_page(subject), "expected").parts[0].text
    subject.description.metrics["alarms"] = [{"kind": "unit"}]
    with pytest.raises(InputError, match=r"alarms in model\.json cannot be understood: fit again"):
        model_page(subject)


def test_many_alarms_are_counted():
    (tile,) = alarm_tiles([Alarm("range", "x", (f"c{k}",)) for k in range(9)])
    assert (tile.value, tile.words) == ("9 alarms", "range: c0; range: c1; range: c2 and 6 more")
