"""Several sources and targets: pooled tables, missing patterns, and one model for them."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import halfseen
from halfseen.data.column_spec import ColumnSpec
from halfseen.data.frames import read_frame
from halfseen.data.schema_inference import infer_schema, infer_tables
from halfseen.data.table_summary import summarize_source
from halfseen.data.tables import PooledTable, empty_columns, parts_of, pooled
from halfseen.errors import AlarmWarning, InputError

QUICK = {"members": ["regression"], "report": False}
ROLES = ColumnSpec("sick", in_python=True)


def site(seed: int, rows: int = 90) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    y = random.random(rows) < 0.5
    numbers = {name: random.normal(size=rows) + y for name in ("a", "b", "c")}
    town = random.choice(["u", "v"], rows)
    return pd.DataFrame({**numbers, "town": town, "sick": np.where(y, "yes", "no")})


def sources() -> dict[str, pd.DataFrame]:
    return {"one": site(0), "two": site(1).drop(columns="town")}


def several(tables: dict[str, pd.DataFrame]) -> list[pd.DataFrame]:
    return list(tables.values())


def target(seed: int, *lacking: str) -> pd.DataFrame:
    return site(seed).drop(columns=[*lacking, "sick"])


def read(tables: dict[str, pd.DataFrame]) -> list[object]:
    return [read_frame(table, name) for name, table in tables.items()]


@pytest.fixture(scope="module")
def model():
    targets = {"x": target(2, "c"), "y": target(3, "b", "c"), "z": target(4, "c")}
    return halfseen.fit(several(sources()), several(targets), "sick", **QUICK)


# --- pooled tables ---------------------------------------------------------------------------


def test_a_pooled_table_is_all_rows_with_gaps_where_a_site_lacks_a_column():
    table = pooled(read(sources()))
    assert isinstance(table, PooledTable)
    assert table.names == ("a", "b", "c", "town", "sick")
    whole = pa.Table.from_batches(list(pa.concat_tables([pa.Table.from_batches([b])
        for b in table.batches()], promote_options="permissive").to_batches()))  # fmt: skip
    expected = pd.concat(sources().values(), ignore_index=True)
    assert whole["a"].to_pylist() == expected["a"].tolist()
    assert whole["town"].null_count == 90
    assert table.notes == ("Gaps in all rows of two: town.",)
    _, alone = parts_of(table)
    assert sum(batch.num_rows for batch in alone.batches(["town"])) == 90


def test_one_table_is_left_as_it_is():
    table = read_frame(site(0), "the source")
    assert pooled([table]) is table


def test_messages_name_the_row_of_the_site(tmp_path):
    wrong = site(1)
    wrong.loc[7, "a"] = np.inf
    found = summarize_source(pooled(read({"one": site(0), "two": wrong})), ["a"], dates={})
    assert found.problems[0].startswith("Column 'a' of two holds an infinite value in row 7;")


def test_columns_without_a_value_are_found():
    table = read_frame(
        pa.table(
            {
                "full": [1.0, None],
                "none": pa.nulls(2),
                "nan": [float("nan"), None],
                "blank": ["", None],
                "text": ["", "x"],
                "flag": [False, None],
                "coded": pa.array([None, None], pa.string()).dictionary_encode(),
            }
        ),
        "t",
    )
    assert empty_columns(table, table.names) == ["none", "nan", "blank", "coded"]


# --- what is understood ----------------------------------------------------------------------


def test_targets_of_one_pattern_are_pooled():
    targets = {"x": target(2, "c"), "y": target(3, "b", "c"), "z": target(5, "c")}
    first, second = infer_tables(read(sources()), read(targets), ROLES)
    assert [c.name for c in first.schema.missing] == ["c"]
    assert [c.name for c in second.schema.missing] == ["b", "c"]
    assert (first.target.rows, second.target.rows) == (180, 90)
    with pytest.raises(InputError, match="whole has a value for every column"):
        infer_tables(read(sources()), read(targets | {"whole": target(6)}), ROLES)


def test_a_column_that_is_entirely_empty_is_lacking_like_one_that_is_absent():
    empty = target(3).assign(c=np.nan)
    (found,) = infer_tables(read(sources()), read({"x": target(2, "c"), "y": empty}), ROLES)
    assert [c.name for c in found.schema.missing] == ["c"]
    assert found.target.rows == 180


def test_labels_that_one_target_has_are_counted_among_all():
    known = site(2).drop(columns="c")
    targets = {"x": known, "y": target(3, "c")}
    (found,) = infer_tables(read(sources()), read(targets), ROLES)
    assert found.labelled == 90
    assert any("90 of the target's 180 rows have a label" in note for note in found.notes)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda s, t: s["two"].pop("sick"), "The source two has no column 'sick'"),
        (
            lambda s, t: s.update(two=s["two"].rename(columns={"a": "A"})),
            "One table has a column 'a' and another 'A'",
        ),
        (lambda s, t: t.update(x=target(2)), "has a value for every column of one and two"),
        (
            lambda s, t: s.update(two=s["two"].assign(sick=np.arange(90) % 2)),
            "holds numbers in one table and texts in another",
        ),
        (
            lambda s, t: s.update(two=s["two"].assign(a="word")),
            "Column 'a' of one and two holds numbers in one table and texts in another",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_together_is_refused(change, says):
    tables, targets = sources(), {"x": target(2, "c")}
    change(tables, targets)
    with pytest.raises(InputError) as caught:
        infer_tables(read(tables), read(targets), ROLES)
    assert says in str(caught.value)


def test_two_tables_are_understood_as_ever():
    tables = read({"s": site(0)}), read({"t": target(2, "c")})
    (found,) = infer_tables(*tables, ROLES)
    same = infer_schema(tables[0][0], tables[1][0], ROLES)
    assert found.schema == same.schema
    assert found.notes == same.notes


# --- the model -------------------------------------------------------------------------------


def test_each_table_is_scored_by_the_part_for_its_columns(model):
    assert model.patterns == [("c",), ("b", "c")]
    one, two = target(7, "c"), target(7, "b", "c")
    np.testing.assert_array_equal(model.predict_proba(one), model.parts[0].predict_proba(one))
    np.testing.assert_array_equal(model.predict_proba(two), model.parts[1].predict_proba(two))
    # Entirely empty is the same as absent, and more than is needed does no harm.
    emptied = target(7, "c").assign(b=np.nan)
    np.testing.assert_array_equal(model.predict_proba(emptied), model.predict_proba(two))
    np.testing.assert_array_equal(model.predict_proba(target(7)), model.predict_proba(one))
    assert model.classes_.tolist() == ["no", "yes"]
    assert set(model.predict(two)) <= {"no", "yes"}
    assert model.evaluate(two, site(7).sick)["rows"] == 90


def test_other_patterns_are_filled(model):
    with pytest.warns(AlarmWarning, match="a is not there or empty throughout"):
        model.predict_proba(target(7, "a"))
    with pytest.raises(InputError, match=r"X lacks a, b, .*: every column of the model"):
        model.predict_proba(target(7)[[]].assign(other=1.0))
    with pytest.raises(InputError, match="X has no column names"):
        model.predict_proba(np.zeros((3, 4)))


def test_of_overlapping_patterns_the_better_one_scores_what_has_both():
    targets = {"x": target(2, "b"), "y": target(3, "c")}
    found = halfseen.fit([site(0), site(1)], list(targets.values()), "sick", **QUICK)
    assert found.patterns == [("b",), ("c",)]
    losses = [
        part.metrics["held_out_source"]["without_missing_block"]["cross_entropy"]
        for part in found.parts
    ]
    table = read_frame(target(7), "X")
    assert found.part_for(table) == int(np.argmin(losses))
    with pytest.warns(AlarmWarning, match="[bc] is not there or empty throughout"):
        found.predict_proba(target(7, "b", "c"))


def test_a_folder_of_parts_is_read_back_and_watched(model, tmp_path):
    folder = tmp_path / "model"
    model.save(folder)
    model.save(folder)  # an older model is replaced
    loaded = halfseen.load(folder)
    rows = target(7, "b", "c")
    np.testing.assert_array_equal(loaded.predict_proba(rows), model.predict_proba(rows))
    # A part is a model of its own.
    part = halfseen.load(folder / "part-2")
    np.testing.assert_array_equal(part.predict_proba(rows), model.predict_proba(rows))
    listed = json.loads((folder / "patterns.json").read_text())
    assert [entry["lacks"] for entry in listed["parts"]] == [["c"], ["b", "c"]]
    (folder / "part-1").rename(folder / "other")
    (folder / "part-2").rename(folder / "part-1")
    (folder / "other").rename(folder / "part-2")
    with pytest.raises(InputError, match=r"part-1 is not the part that patterns.json names"):
        halfseen.load(folder)
    (folder / "patterns.json").write_text("{}")
    with pytest.raises(InputError, match="does not name the parts of a model"):
        halfseen.load(folder)
    (folder / "part-1" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"holds other things \(part-1\)"):
        model.save(folder)


def test_one_pattern_is_an_ordinary_model_and_may_replace_parts(model, tmp_path):
    model.save(tmp_path / "model")
    single = halfseen.fit(several(sources()), target(2, "c"), "sick", **QUICK)
    assert isinstance(single, type(model.parts[0]))
    names = [file["name"] for file in single.training_data["source"]["files"]]
    assert names == ["the source 1", "the source 2"]
    single.save(tmp_path / "model")
    assert not (tmp_path / "model" / "patterns.json").exists()
    rows = target(7, "c")
    same = halfseen.load(tmp_path / "model").predict_proba(rows)
    np.testing.assert_array_equal(same, single.predict_proba(rows))


def test_several_files_are_named_as_they_are(tmp_path):
    for name, table in sources().items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    paths = [tmp_path / "one.csv", tmp_path / "two.csv"]
    fitted = halfseen.fit(paths, target(2, "c"), "sick", **QUICK)
    names = [file["name"] for file in fitted.training_data["source"]["files"]]
    assert names == ["one.csv", "two.csv"]
    with pytest.raises(InputError, match="No source was given"):
        halfseen.fit([], target(2, "c"), "sick", **QUICK)
