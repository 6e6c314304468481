"""Raw values to network inputs."""

from __future__ import annotations

import decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfseen.data import CategoryColumn, NumberColumn, TableSchema, transform
from halfseen.data.preprocessing import read_rows
from halfseen.data.values import Noted, as_categories, as_numbers
from halfseen.errors import InputError


def number(name: str, **changes: object) -> NumberColumn:
    fields = {
        "kind": "numeric", "role": "observed", "fill": 2.0, "indicator": False, "log": False,
        "mean": 1.0, "scale": 2.0,
    }  # fmt: skip
    return NumberColumn(name=name, **fields | changes)


def category(name: str, **changes: object) -> CategoryColumn:
    fields = {
        "kind": "categorical", "role": "observed", "fill": "a", "indicator": False,
        "categories": ("a", "b"), "other": False, "values": "text",
    }  # fmt: skip
    return CategoryColumn(name=name, **fields | changes)


def schema(*columns: NumberColumn | CategoryColumn) -> TableSchema:
    return TableSchema(columns=columns, label="y", classes=(0, 1))


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, None, 3], pa.int8()),
        pa.array([1, None, 3], pa.uint64()),
        pa.array([1.0, np.nan, 3.0], pa.float32()),
        pa.array([1.0, None, 3.0], pa.float16()),
        pa.array([decimal.Decimal("1"), None, decimal.Decimal("3")]),
        pa.array(["1", None, "3.0"]),
        pa.array(["1", None, "3"]).dictionary_encode(),
        pa.array(["1", None, "3"], pa.large_string()),
        pa.chunked_array([[1], [None, 3]]),
    ],
    ids=lambda values: str(values.type),
)
def test_any_kind_of_number_is_a_number(values):
    np.testing.assert_array_equal(as_numbers(values, "x", where="here"), [1, np.nan, 3])


def test_booleans_and_nothing_are_numbers_too():
    np.testing.assert_array_equal(
        as_numbers(pa.array([True, False, None]), "x", where="here"), [1, 0, np.nan]
    )
    assert np.isnan(as_numbers(pa.nulls(2), "x", where="here")).all()


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([3, None, -1], ["3", None, "-1"]),
        ([3.0, None, 0.5], ["3", None, "0.5"]),
        ([float("nan"), 1e300], [None, "1e+300"]),
        ([True, None], ["true", None]),
        ([decimal.Decimal("2.0")], ["2"]),
    ],
)
def test_numbers_become_the_same_category_however_they_are_stored(values, texts):
    found = as_categories(pa.array(values, from_pandas=False), "x", where="here").to_pylist()
    assert found == texts


@settings(max_examples=50, deadline=None)
@given(st.lists(st.one_of(st.none(), st.floats(-1e12, 1e12)), min_size=1, max_size=20))
def test_numbers_by_the_sentence_of_the_schema(values):
    of = schema(number("x", log=True, indicator=True))
    rows = transform(of, pa.table({"x": pa.array(values, pa.float64())}))
    for value, (scaled, mark) in zip(values, rows, strict=True):
        filled = 2.0 if value is None else value
        logged = np.sign(filled) * np.log(1 + abs(filled))
        assert scaled == pytest.approx(np.clip((logged - 1.0) / 2.0, -20, 20), rel=1e-6)
        assert mark == (value is None)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.one_of(st.none(), st.sampled_from(["a", "b", "c", ""])), min_size=1, max_size=20),
    st.booleans(),
)
def test_categories_by_the_sentence_of_the_schema(values, other):
    of = schema(category("x", other=other, indicator=True))
    rows = transform(of, pa.table({"x": pa.array(values, pa.string())}))
    for value, row in zip(values, rows, strict=True):
        gap = value in (None, "")
        filled = "a" if gap else value
        expected = [filled == "a", filled == "b"]
        expected += [filled not in ("a", "b")] if other else []
        assert row.tolist() == [*map(float, expected), float(gap)]


def test_extreme_values_are_clipped_and_finite():
    rows = transform(schema(number("x")), pa.table({"x": [1e308, -1e308, 2.0**62]}))
    assert rows.ravel().tolist() == [20.0, -20.0, 20.0]


def test_the_missing_block_is_zero_unless_asked_for():
    of = schema(number("x"), category("z", role="missing"))
    table = pa.table({"x": [3.0], "z": ["b"]})
    assert transform(of, table).tolist() == [[1.0, 0.0, 0.0]]
    assert transform(of, table, complete=True).tolist() == [[1.0, 0.0, 1.0]]
    assert transform(of, table.drop_columns("z")).tolist() == [[1.0, 0.0, 0.0]]
    with pytest.raises(InputError, match="'z', which the model needs"):
        transform(of, table.drop_columns("z"), complete=True)


def test_a_column_that_is_there_twice_is_refused():
    table = pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0])], names=["x", "x"])
    with pytest.raises(InputError, match="2 times"):
        transform(schema(number("x")), table)


def test_messages_count_rows_from_the_first_of_the_file():
    with pytest.raises(InputError, match="row 102"):
        transform(schema(number("x")), pa.table({"x": [1.0, np.inf]}), first_row=101)
    read = read_rows(schema(number("x")), pa.table({"x": ["1", "zz", "q"]}), first_row=101)
    assert read.unread.gaps == {"x": Noted(2, "zz", 102)}
    assert np.isnan(read.columns["x"][1:]).all()


def test_no_rows_are_no_rows():
    assert transform(schema(number("x")), pa.table({"x": pa.array([], pa.float64())})).shape == (
        0,
        1,
    )
