from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from halfseen.errors import InputError, OptionError
from halfseen_bench.data import heart
from halfseen_bench.data.official import content_sha256

#            age sex cp bps chol fbs ecg thalach exang oldpeak slope ca thal
COMPLETE = "{age},1,4,140,{chol},0,2,150,0,1.5,2,{ca},7,{label}"
LACKING = "{age},0,3,{bps},0,1,0,140,1,0,?,?,3,{label}"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Cleveland complete but for one gap; VA without chol, slope and ca, with one gap."""
    (tmp_path / "heart").mkdir()
    source = [
        COMPLETE.format(age=40 + i, chol=200 + i, ca="?" if i == 3 else i % 4, label=i % 5)
        for i in range(20)
    ]
    target = [LACKING.format(age=50 + i, bps="?" if i == 2 else 120, label=i % 2) for i in range(9)]
    target.append("70,0,3,0,210,1,0,140,1,0,3,2,3,1")
    (tmp_path / "heart/processed.cleveland.data").write_text("\n".join(source) + "\n")
    (tmp_path / "heart/processed.va.data").write_text("\n".join(target) + "\n")
    return tmp_path


def test_what_most_rows_lack_is_missing(root):
    pair = heart.load_pair(root, "cleveland", "va")
    assert pair.blocks.names == heart.COLUMNS
    assert pair.blocks.names_of(pair.blocks.missing) == ["chol", "slope", "ca"]
    assert pair.complete_target is None
    hidden = pair.blocks.flat(pair.target_train, "missing")
    assert (hidden == 0).all()  # also where one row had a value
    assert len(pair.source_train) + len(pair.source_test) == 20
    assert pair.target_train.shape == pair.target_test.shape == (10, 13)


def test_labels_are_healthy_or_not(root):
    _, labels = heart.read_hospital(root, "cleveland")
    assert labels.tolist() == [0, 1, 1, 1, 1] * 4


def test_categories_are_ordinal_codes(root):
    table, _ = heart.read_hospital(root, "va")
    row = dict(zip(heart.COLUMNS, table[9].tolist(), strict=True))
    assert (row["cp"], row["slope"], row["thal"], row["restecg"]) == (2, 2, 0, 0)
    assert np.isnan(row["trestbps"])  # written as 0


def test_gaps_are_filled_with_the_source(root):
    filled = heart.load_pair(root, "cleveland", "va")
    pressure = heart.COLUMNS.index("trestbps")
    assert not np.isnan(filled.source_train.inputs).any()
    assert filled.target_train[2, pressure] == filled.target_train[9, pressure] == 140


def test_split_keeps_adapted_and_predicted_rows_apart(root):
    pair = heart.load_pair(root, "cleveland", "va", evaluation="split")
    adapted, predicted = set(pair.target_train[:, 0]), set(pair.target_test[:, 0])
    assert len(adapted) == len(predicted) == 5
    assert not adapted & predicted


class TestBadFiles:
    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("63,1,1,145", "va.data, line 11, column 'num': '' is not one of"),
            ("63,1,1,high,233,1,2,150,0,2.3,3,0,6,0", "line 11, column 'trestbps': 'high'"),
            ("63,1,9,145,233,1,2,150,0,2.3,3,0,6,0", r"'cp': '9.0' is not one of 1, 2"),
            ("63,1,1,145,233,1,2,150,0,2.3,3,0,6,?", r"column 'num': '\?' is not one of 0, 1"),
        ],
    )
    def test_bad_line(self, root, line, message):
        with (root / "heart/processed.va.data").open("a") as file:
            file.write(line + "\n")
        with pytest.raises(InputError, match=message):
            heart.load_pair(root, "cleveland", "va")

    def test_empty_hospital(self, root):
        (root / "heart/processed.va.data").write_text("\n")
        with pytest.raises(InputError, match=r"va.data (holds no rows|cannot be read)"):
            heart.load_pair(root, "cleveland", "va")

    def test_target_that_lacks_nothing(self, root):
        with pytest.raises(InputError, match="cleveland lacks no column that va has"):
            heart.load_pair(root, "va", "cleveland")

    def test_options(self, root):
        with pytest.raises(OptionError, match="evaluation='all' is unknown"):
            heart.load_pair(root, "cleveland", "va", evaluation="all")


@pytest.mark.data("heart")
class TestRealFiles:
    @pytest.mark.parametrize("file", heart.FILES, ids=lambda f: f.path)
    def test_hashes(self, data_root, file):
        assert content_sha256(data_root / file.path) == file.sha256

    def test_published_sizes(self, data_root):
        labels = {d: heart.read_hospital(data_root, d)[1] for d in heart.DOMAINS}
        assert [len(labels[d]) for d in heart.DOMAINS] == [303, 294, 123, 200]
        assert [int((labels[d] == 0).sum()) for d in heart.DOMAINS] == [164, 188, 8, 51]

    @pytest.mark.parametrize(
        ("target", "missing"),
        [
            ("hungarian", ["slope", "ca", "thal"]),
            ("switzerland", ["chol", "fbs", "ca"]),
            ("va", ["slope", "ca", "thal"]),
        ],
    )
    def test_missing_blocks_as_they_occur(self, data_root, target, missing):
        pair = heart.load_pair(data_root, "cleveland", target)
        assert pair.blocks.names_of(pair.blocks.missing) == missing

    def test_pairs_that_exist(self, data_root):
        pairs = []
        for source, target in permutations(heart.DOMAINS, 2):
            try:
                pairs.append(heart.load_pair(data_root, source, target).name)
            except InputError as error:
                assert "lacks no column" in str(error)  # noqa: PT017
        assert pairs == [
            "cleveland->hungarian",
            "cleveland->switzerland",
            "cleveland->va",
            "hungarian->switzerland",
            "switzerland->hungarian",
            "switzerland->va",
            "va->switzerland",
        ]
