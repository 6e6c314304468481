from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from halfseen.errors import InputError, OptionError
from halfseen_bench.data import shoppers
from halfseen_bench.data.catalog import DATA_SETS
from halfseen_bench.data.check import check
from halfseen_bench.data.export import pair_tables

HEADER = ",".join(shoppers.CODES)
ROW = "0,0,0,0,{pages},64.5,0.02,0.1,{value},0.4,{month},2,13,9,20,{visitor},TRUE,{bought}"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Twenty visits of returning visitors, ten of new ones, one of another kind."""
    kinds = ["Returning_Visitor"] * 20 + ["New_Visitor"] * 10 + ["Other"]
    lines = [
        ROW.format(
            pages=i,
            value=i / 2,
            month=("Feb", "June")[i % 2],
            visitor=kind,
            bought=("FALSE", "TRUE")[i % 2],
        )
        for i, kind in enumerate(kinds)
    ]
    (tmp_path / "shoppers").mkdir()
    path = tmp_path / "shoppers/online_shoppers_intention.csv"
    path.write_text("\n".join([HEADER, *lines]) + "\n", newline="\r\n")  # as it is published
    return tmp_path


def test_analytics_are_missing_on_new_visitors(root):
    pair = shoppers.load_pair(root, "returning", "new")
    assert pair.blocks.names_of(pair.blocks.missing) == ["BounceRates", "ExitRates", "PageValues"]
    assert not {"VisitorType", "Revenue"} & set(pair.blocks.names)
    assert (pair.blocks.flat(pair.target_test, "missing") == 0).all()
    assert pair.card.counts == {"returning": 20, "new": 10}
    assert pair.target_test_labels.open("test").tolist() == [0, 1] * 5
    _, complete = pair.complete_target.open("test")  # measured, and hidden by hand
    assert pair.blocks.flat(complete, "missing")[:, 2].tolist() == [i / 2 for i in range(20, 30)]


def test_exported_tables_hold_words(root):
    tables = {}
    for name, table in pair_tables(shoppers.load_pair(root)):
        tables.setdefault(name, table)
    assert set(tables["source"]["Month"].to_pylist()) == {"Feb", "June"}
    assert set(tables["target"]["Browser"].to_pylist()) == {"13"}
    assert "PageValues" in tables["source"].column_names
    assert "PageValues" not in tables["target"].column_names


def test_split_keeps_adapted_and_predicted_rows_apart(root):
    pair = shoppers.load_pair(root, evaluation="split")
    adapted, predicted = set(pair.target_train[:, 4]), set(pair.target_test[:, 4])
    assert len(adapted) == len(predicted) == 5
    assert not adapted & predicted


def test_bad_line_and_direction(root):
    with (root / "shoppers/online_shoppers_intention.csv").open("a") as file:
        file.write(ROW.format(pages=1, value=1, month="Mai", visitor="Other", bought="TRUE"))
    with pytest.raises(InputError, match=r"line 33, column 'Month': 'Mai' is not one of Jan, Feb"):
        shoppers.load_pair(root)
    with pytest.raises(OptionError, match="cannot be the source"):
        shoppers.load_pair(root, "new", "returning")


@pytest.mark.data("shoppers")
def test_published_sizes(data_root):
    pair = shoppers.load_pair(data_root)
    assert pair.card.counts == {"returning": 10_551, "new": 1_694}
    assert pair.source_train.labels.sum() + pair.source_test.labels.sum() == 1_470
    assert pair.target_test_labels.open("test").sum() == 422
    assert np.isfinite(pair.source_train.inputs).all()
    (finding,) = check(data_root, DATA_SETS["shoppers"])
    assert finding.is_good
