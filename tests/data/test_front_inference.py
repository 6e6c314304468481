"""What is understood of two tables: kinds, spec, preparation, doubts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from halfseen.data.column_spec import ColumnSpec
from halfseen.data.column_types import SAMPLE, ColumnSummary
from halfseen.data.preprocessing import transform
from halfseen.data.schema_inference import InferredTables, infer_schema
from halfseen.data.table_files import TableFiles, open_table
from halfseen.data.table_summary import summarize_source

ROWS = 200
RANDOM = np.random.default_rng(0)
SOURCE = {
    "amount": RANDOM.normal(10, 3, ROWS),
    "visits": RANDOM.poisson(4, ROWS),
    "views": np.floor(np.exp(RANDOM.normal(2, 2, ROWS))).astype(int),
    "flag": RANDOM.integers(0, 2, ROWS),
    "member": RANDOM.random(ROWS) < 0.5,
    "shop": RANDOM.choice(["a", "b", "c"], ROWS),
    "code": RANDOM.integers(1, 4, ROWS),
    "extra": RANDOM.normal(size=ROWS),
    "y": np.arange(ROWS) % 2,
}
TARGET = {name: values[:100] for name, values in SOURCE.items() if name not in ("extra", "y")}


@pytest.fixture
def tables(tmp_path: Path):
    def opened(source: dict | None = None, target: dict | None = None) -> list[TableFiles]:
        for name, columns in (
            ("source", SOURCE | (source or {})),
            ("target", TARGET | (target or {})),
        ):
            kept = {n: v for n, v in columns.items() if v is not None}
            pa.parquet.write_table(pa.table(kept), tmp_path / f"{name}.parquet")
        return [open_table(tmp_path / f"{name}.parquet") for name in ("source", "target")]

    return opened


def understood(tables: list[TableFiles], **spec: object) -> InferredTables:
    found = infer_schema(*tables, ColumnSpec("y", **spec))
    assert isinstance(found, InferredTables), found
    return found


def column(found: InferredTables, name: str):
    return next(c for c in found.schema.columns if c.name == name)


def test_kinds_are_found(tables):
    found = understood(tables(), categorical=("code",))
    kinds = {c.name: c.kind for c in found.schema.columns}
    assert kinds == {
        "amount": "numeric",
        "visits": "count",
        "views": "count",
        "flag": "boolean",
        "member": "boolean",
        "shop": "categorical",
        "code": "categorical",
        "extra": "numeric",
    }
    assert column(found, "views").log
    assert not column(found, "visits").log
    assert column(found, "code").categories == ("1", "2", "3")
    assert column(found, "code").values == "number"
    assert found.schema.classes == (0, 1)


def test_what_the_target_lacks_or_has_empty_is_missing(tables):
    found = understood(tables(target={"amount": pa.nulls(100), "visits": [np.nan] * 100}))
    assert [c.name for c in found.schema.missing] == ["amount", "visits", "extra"]
    hidden = found.schema.blocks.names_of(found.schema.blocks.missing)
    assert hidden == ["amount", "visits", "extra"]


def test_named_columns_join_what_is_found(tables):
    found = understood(tables(), missing=("shop",))
    assert [c.name for c in found.schema.missing] == ["shop", "extra"]
    blocks = found.schema.blocks
    assert blocks.names_of(blocks.missing) == ["shop=a", "shop=b", "shop=c", "extra"]


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("amount", [0.0] * 100, "is 0 in every target row"),
        ("visits", [-1] * 100, "is -1 in every target row"),
        ("amount", [None] * 60 + [1.0, 2.0] * 20, "empty in 60% of the target's rows, and in 0%"),
    ],
)
def test_a_column_that_looks_unmeasured_is_asked_about(name, values, reason, tables):
    opened = tables(target={name: values})
    (doubt,) = infer_schema(*opened, ColumnSpec("y"))
    assert doubt.name == name
    assert reason in doubt.reason
    assert name in [c.name for c in understood(opened, missing=(name,)).schema.missing]
    assert name in [c.name for c in understood(opened, keep=(name,)).schema.observed]


def test_a_constant_that_chance_explains_is_not_asked_about(tables):
    rare = np.zeros(ROWS, int)
    rare[:2] = 1
    found = understood(tables({"flag": rare}, {"flag": [0] * 100}))
    assert column(found, "flag").role == "observed"


@pytest.mark.parametrize(("name", "value"), [("shop", "a"), ("member", False)])
def test_a_constant_that_many_source_rows_have_is_measured(name, value, tables):
    found = understood(tables(target={name: [value] * 100}))
    assert column(found, name).role == "observed"


def test_columns_that_say_nothing_are_dropped_and_named(tables):
    found = understood(tables({"visits": [3] * ROWS, "amount": pa.nulls(ROWS)}), drop=("code",))
    assert found.schema.dropped == ("code", "amount", "visits")
    assert any("no value" in note for note in found.notes)
    assert any("one value" in note for note in found.notes)


def test_gaps_get_the_median_and_an_indicator_where_the_source_has_some(tables):
    gaps = SOURCE["amount"].copy()
    gaps[:5] = np.nan
    found = understood(tables({"amount": gaps}, {"visits": [None] * 3 + [2, 3] * 48 + [1]}))
    amount, visits = column(found, "amount"), column(found, "visits")
    assert amount.indicator
    assert amount.fill == pytest.approx(np.nanmedian(gaps))
    assert not visits.indicator
    assert any("visits has 3 gaps" in note for note in found.notes)


def test_rare_and_unseen_categories_share_a_bucket(tables):
    shops = np.array(["a"] * 100 + ["b"] * 97 + ["rare", "rarer", "rarest"])
    found = understood(tables({"shop": shops}, {"shop": ["a", "new"] * 50}))
    shop = column(found, "shop")
    assert shop.categories == ("a", "b")
    assert shop.other
    assert any("new (50 rows)" in note for note in found.notes)
    rows = transform(found.schema, pa.table({**TARGET, "shop": ["new", "rare"] * 50}))
    bucket = found.schema.inputs.index("shop is other")
    assert rows[:, bucket].all()


def test_the_statistics_are_those_of_numpy(tables):
    found = understood(tables())
    views = column(found, "views")
    logged = np.log1p(SOURCE["views"])
    assert views.mean == pytest.approx(logged.mean())
    assert views.scale == pytest.approx(logged.std())
    assert views.fill == np.median(SOURCE["views"])
    inputs = transform(found.schema, pa.table(SOURCE), complete=True)
    at = found.schema.inputs.index("amount")
    expected = (SOURCE["amount"] - SOURCE["amount"].mean()) / SOURCE["amount"].std()
    np.testing.assert_allclose(inputs[:, at], expected, rtol=1e-5)


def test_positive_goes_last(tables):
    label = np.where(np.arange(ROWS) % 4 == 0, "click", "none")
    found = understood(tables({"y": label}), positive="click")
    assert found.schema.classes == ("none", "click")
    assert found.schema.positive == "click"
    assert found.class_counts == (150, 50)


def test_a_column_said_to_be_missing_is_not_read(tables):
    found = understood(tables(target={"amount": [[1]] * 100}), missing=("amount",))
    assert column(found, "amount").role == "missing"


def test_the_scale_of_a_long_table_is_that_of_an_even_sample():
    summary = ColumnSummary("x")
    values = RANDOM.normal(size=5 * SAMPLE)
    for part in np.array_split(values, 40):
        summary.add_numbers(part)
    assert sum(map(len, summary._sample)) <= SAMPLE
    assert summary.median == pytest.approx(np.median(values), abs=0.02)
    assert summary.moments().mean == pytest.approx(values.mean(), abs=0.02)
    assert summary.moments().spread == pytest.approx(values.std(), rel=0.02)


def test_one_pass_counts_rows_gaps_and_labels(tables):
    summary = summarize_source(tables()[0], ["shop", "amount"], dates={}, label="y")
    assert summary.rows == summary.labelled == ROWS
    assert summary.labels == {0: 100, 1: 100}
    assert summary.columns["shop"].counts == {
        shop: int((SOURCE["shop"] == shop).sum()) for shop in "abc"
    }
