from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from halfseen.errors import InputError, OptionError
from halfseen_bench.data import bank
from halfseen_bench.data.export import pair_tables
from halfseen_bench.data.official import content_sha256

HEADER = ";".join(f'"{name}"' for name in bank.CODES)
ROW = (
    '{age};"management";"married";"tertiary";"no";-7;"yes";"no";"unknown";5;"may";261;1;'
    '{pdays};{previous};"{poutcome}";"{label}"'
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Twenty customers with a history and ten without."""
    known = [
        ROW.format(
            age=20 + i,
            pdays=90 + i,
            previous=i + 1,
            poutcome=("failure", "success")[i % 2],
            label=("no", "yes")[i % 2],
        )
        for i in range(20)
    ]
    new = [
        ROW.format(age=60 + i, pdays=-1, previous=0, poutcome="unknown", label="no")
        for i in range(10)
    ]
    write(tmp_path, [HEADER, *known, *new])
    return tmp_path


def write(root: Path, lines: list[str]) -> None:
    (root / "bank").mkdir(exist_ok=True)
    (root / "bank/bank-full.csv").write_text("\n".join(lines) + "\n")


def test_history_is_missing_on_customers_without_one(root):
    pair = bank.load_pair(root, "contacted", "never")
    assert pair.blocks.names == bank.COLUMNS
    assert pair.blocks.names_of(pair.blocks.missing) == ["pdays", "previous", "poutcome"]
    assert "duration" not in pair.blocks.names
    assert pair.complete_target is None  # nature never measured it
    assert (pair.blocks.flat(pair.target_test, "missing") == 0).all()
    assert (len(pair.source_train), len(pair.source_test)) == (16, 4)
    assert sorted(pair.target_test[:, 0].tolist()) == [60.0 + i for i in range(10)]
    assert pair.target_test_labels.open("test").tolist() == [0] * 10


def test_categories_are_codes(root):
    row = bank.CUSTOMERS.read(root).iloc[1]
    assert (row["job"], row["education"], row["month"]) == (3, 3, 4)
    assert (row["balance"], row["pdays"], row["poutcome"], row["y"]) == (-7, 91, 3, 1)


def test_exported_tables_hold_words_and_no_missing_column(root):
    tables = {}
    for name, table in pair_tables(bank.load_pair(root)):
        tables.setdefault(name, table)
    assert set(tables["source"]["job"].to_pylist()) == {"management"}
    assert set(tables["source"]["poutcome"].to_pylist()) == {"failure", "success"}
    assert tables["target"].column_names == [
        c for c in bank.COLUMNS if c not in ("pdays", "previous", "poutcome")
    ]


def test_rows_are_limited_by_a_seeded_choice(root):
    pair = bank.load_pair(root, max_rows=5, seed=1)
    assert pair.card.counts == {"contacted": 5, "never": 5}
    again = bank.load_pair(root, max_rows=5, seed=1)
    np.testing.assert_array_equal(pair.target_test, again.target_test)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1;2", r"bank-full.csv, line 32, column 'job': '2' is not one of admin"),
        (
            ROW.format(age="old", pdays=1, previous=1, poutcome="other", label="no"),
            "line 32, column 'age': 'old' is not a number",
        ),
        (
            ROW.format(age="inf", pdays=1, previous=1, poutcome="other", label="no"),
            "line 32, column 'age': 'inf' is not a number",
        ),
        (
            ROW.format(age=1, pdays=1, previous=1, poutcome="won", label="no"),
            "line 32, column 'poutcome': 'won' is not one of unknown, other, failure, success",
        ),
    ],
)
def test_bad_line(root, line, message):
    with (root / "bank/bank-full.csv").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(InputError, match=message):
        bank.load_pair(root)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "No columns to parse"),
        ([HEADER.replace('"age"', '"years"')], "line 1: the columns are not age, job"),
        ([HEADER + ';"zone"'], "line 1: the columns are not age, job"),
        ([";".join(reversed(HEADER.split(";")))], "line 1: the columns are not age, job"),
        ([HEADER], "bank-full.csv holds no rows"),
        (
            [HEADER, ROW.format(age=1, pdays=5, previous=1, poutcome="other", label="no")],
            "The domain 'never' is empty",
        ),
    ],
)
def test_bad_file(tmp_path, lines, message):
    write(tmp_path, lines)
    with pytest.raises(InputError, match=message):
        bank.load_pair(tmp_path)


def test_the_other_direction_is_refused(root):
    with pytest.raises(OptionError, match="cannot be the source"):
        bank.load_pair(root, "never", "contacted")


@pytest.mark.data("bank")
class TestRealFile:
    def test_hash(self, data_root):
        (file,) = bank.FILES
        assert content_sha256(data_root / file.path) == file.sha256

    def test_published_sizes(self, data_root):
        pair = bank.load_pair(data_root)
        assert pair.card.counts == {"contacted": 8_257, "never": 36_954}
        target = pair.target_test_labels.open("test").sum()
        assert pair.source_train.labels.sum() + pair.source_test.labels.sum() + target == 5_289
        assert target == 3_384
        assert np.isfinite(pair.source_train.inputs).all()
