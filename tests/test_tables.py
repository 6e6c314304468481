"""``halfseen.fit``: everything that the command does, from data frames."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import halfseen
from halfseen.errors import InputError, OptionError

QUICK = {"members": ["regression"], "report": False, "id": ["user"]}


def tables() -> tuple[pa.Table, pa.Table]:
    random = np.random.default_rng(0)
    age, pulse, test = random.normal(size=(3, 120))
    source = pa.table(
        {
            "user": np.arange(120),
            "age": pa.array([None if k % 9 == 0 else v for k, v in enumerate(age)]),
            "pulse": 70 + 9 * pulse,
            "town": random.choice(["north", "south"], 120),
            "test": test,
            "sick": np.where(age + test > 0, "yes", "no"),
        }
    )
    target = source.drop_columns(["test", "sick"]).slice(0, 60)
    return source, target


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    source, target = tables()
    model = halfseen.fit(source, target, label="sick", **QUICK)
    assert model.metrics["held_out_source"]["without_missing_block"]["rows"] == 120
    assert model.alarms == []
    return model.predict_proba(target)


@pytest.mark.parametrize("kind", ["pandas", "polars", "file"])
def test_every_kind_of_table_gives_the_same_model(kind, expected, tmp_path):
    source, target = tables()
    if kind == "file":
        pa.parquet.write_table(source, tmp_path / "source.parquet")
        given = tmp_path / "source.parquet", target
    else:
        made = {"pandas": pa.Table.to_pandas, "polars": pl.from_arrow}[kind]
        given = made(source), made(target)
    model = halfseen.fit(*given, label="sick", **QUICK)
    np.testing.assert_allclose(model.predict_proba(given[1]), expected, atol=1e-6)
    model.save(tmp_path / "model")
    assert halfseen.load(tmp_path / "model").schema.id == ("user",)


def test_alarms_are_warnings_or_errors():
    source, target = tables()
    grams = target.set_column(2, "pulse", pa.array(target["pulse"].to_numpy() * 1000))
    with pytest.warns(UserWarning, match="pulse on the target is about 1,000 times the source's"):
        model = halfseen.fit(source, grams, "sick", **QUICK)
    assert model.alarms[0].kind == "unit"
    with pytest.raises(InputError, match="refused as asked: pulse on the target"):
        halfseen.fit(source, grams, "sick", strict=True, **QUICK)


def test_what_it_cannot_do_is_refused():
    source, target = tables()
    with pytest.raises(OptionError, match="There is no setting 'epochs'; there are label"):
        halfseen.fit(source, target, "sick", epochs=3)
    with pytest.raises(InputError, match="The source has no column names: give data frames"):
        halfseen.fit(np.zeros((9, 2)), target, "sick")
    constant = target.set_column(2, "pulse", pa.array(np.zeros(60)))
    with pytest.raises(InputError, match=r"Say missing=\['pulse'\] if not, keep=\['pulse'\]"):
        halfseen.fit(source, constant, "sick", **QUICK)


def test_what_the_report_shows_is_kept():
    source, target = tables()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        settings = QUICK | {"report": True}
        model = halfseen.fit(source, target, "sick", **settings)
    assert model.report is not None
