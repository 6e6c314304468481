"""The small parts of the preprocessor, one example each."""

from __future__ import annotations

import datetime
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from halfseen.data import CategoryColumn, NumberColumn, TableSchema, transform
from halfseen.data.column_spec import ColumnSpec
from halfseen.data.column_types import ColumnSummary
from halfseen.data.dates import date_names, date_parts, expanded, read_dates
from halfseen.data.frames import read_frame, target_label_column
from halfseen.data.label_column import checked_weights, ordered_classes
from halfseen.data.preprocessors import side_blocks
from halfseen.data.schema import signed_log
from halfseen.data.values import as_numbers
from halfseen.errors import InputError


def test_a_row_becomes_inputs_in_the_order_of_the_schema():
    visits = NumberColumn(
        kind="count", name="visits", role="observed", fill=1.0, indicator=True, log=False,
        mean=2.0, scale=2.0,
    )  # fmt: skip
    shop = CategoryColumn(
        kind="categorical", name="shop", role="observed", fill="a", indicator=False,
        categories=("a", "b"), other=True, values="text",
    )  # fmt: skip
    schema = TableSchema(columns=(visits, shop), label="click", classes=(False, True))
    batch = pa.record_batch({"shop": ["b", "z", None], "visits": [4, None, 2]})
    assert transform(schema, batch).tolist() == [
        [1.0, 0.0, 0.0, 1.0, 0.0],
        [-0.5, 1.0, 0.0, 0.0, 1.0],
        [0.0, 0.0, 1.0, 0.0, 0.0],
    ]


def test_a_schema_names_its_inputs_and_survives_json():
    age = NumberColumn(
        kind="numeric", name="age", role="observed", fill=50.0, indicator=True, log=False,
        mean=52.0, scale=9.0,
    )  # fmt: skip
    thal = CategoryColumn(
        kind="categorical", name="thal", role="missing", fill="normal", indicator=False,
        categories=("fixed", "normal"), other=True, values="text",
    )  # fmt: skip
    schema = TableSchema(columns=(age, thal), label="sick", classes=(0, 1))
    assert schema.inputs == ("age", "age is missing", "thal=fixed", "thal=normal", "thal is other")
    assert schema.blocks.missing == (2, 3, 4)
    assert TableSchema.model_validate_json(schema.model_dump_json()) == schema


def test_a_text_among_numbers_is_named_with_its_row():
    with pytest.raises(InputError, match=r"Column 'age' of a.csv holds '\?x' in row 3, where a nu"):
        as_numbers(pa.array(["63", None, "?x"]), "age", where="a.csv")


def test_logarithms_keep_their_sign():
    assert signed_log(np.array([-1.0, 0.0, 99.0])).round(3).tolist() == [-0.693, 0.0, 4.605]


def test_moments_of_a_column():
    column = ColumnSummary("x")
    column.add_numbers(np.array([0.0, 0.0, 0.0, 4.0]))
    assert np.round(column.moments(), 4).tolist() == [1.0, 1.7321, 1.1547]


def test_labels_and_weights():
    labels = Counter({"yes": 40, "no": 60})
    assert ordered_classes(labels, ColumnSpec("click", positive="no")) == ("yes", "no")
    assert checked_weights([1, 3], 2).tolist() == [0.5, 1.5]
    assert target_label_column([1, None, float("nan")], 3).to_pylist() == [1, None, None]


def test_parts_of_dates():
    dates = read_dates(["visit=month,weekday@Europe/Berlin"])
    assert dates["visit"].zone == "Europe/Berlin"
    assert date_names(dates)["visit month"] == "visit"
    assert expanded(["visit", "age"], dates) == ("age", "visit month", "visit weekday")
    column = pa.array([datetime.date(2024, 5, 17), None])
    made = date_parts(column, "visit", dates["visit"], where="a.csv")
    assert {name: values[0] for name, values in made.items()} == {"month": 5, "weekday": 4}


def test_names():
    assert read_frame(np.zeros((3, 2)), "the source").names == ("x0", "x1")
    for in_python, drop, task in [
        (False, "--drop age", "--task auto"),
        (True, "drop=['age']", "task='auto'"),
    ]:
        spec = ColumnSpec("y", in_python=in_python)
        assert spec.option("drop", "age") == drop
        assert spec.said("task", "auto") == task


def test_a_side_of_images():
    assert side_blocks((1, 4, 4), "left:0.25").mask[0].tolist() == [True, False, False, False]
    assert side_blocks((3, 4, 2), "top").missing == (0, 1)
    assert side_blocks((1, 28, 28), "bottom:0.3").missing == tuple(range(19, 28))
    assert side_blocks((1, 10, 10), "top:0.1").missing == (0,)
