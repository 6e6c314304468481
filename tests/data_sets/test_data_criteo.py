from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from halfseen.errors import InputError, OptionError
from halfseen_bench.data import criteo
from halfseen_bench.data.criteo import NUMERIC

TARGET = "2005abd1"


def line(generator: np.random.Generator, target: bool) -> str:
    counts = [str(v) if v < 40 else "" for v in generator.integers(0, 50, 13)]
    counts[1] = str(generator.integers(-2, 30))
    if target:
        counts[4] = ""
    categories = [f"{v:08x}" if v else "" for v in generator.integers(0, 6, 26) * 0x1F000001]
    categories[16] = TARGET if target else "e5ba7672"
    return "\t".join([str(generator.integers(0, 2)), *counts, *categories])


@pytest.fixture
def lines() -> list[str]:
    generator = np.random.default_rng(0)
    return [line(generator, target=i % 5 == 0) for i in range(400)]


@pytest.fixture
def root(tmp_path: Path, lines: list[str]) -> Path:
    (tmp_path / "criteo").mkdir()
    (tmp_path / "criteo/train.txt").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_both_domains_have_equal_sizes(root):
    pair = criteo.load_pair(root)
    assert pair.card.counts == {
        "retargeting train": 64,
        "retargeting test": 16,
        "prospecting train": 64,
        "prospecting test": 16,
    }
    assert pair.blocks.names == NUMERIC
    assert pair.blocks.names_of(pair.blocks.missing) == ["I1", "I5", "I6", "I7", "I11", "I12"]
    assert pair.complete_target is None
    assert (pair.blocks.flat(pair.target_train, "missing") == 0).all()
    assert (pair.blocks.flat(pair.source_train.inputs, "missing") > 0).any()


def test_rows_keep_their_values_and_labels(root, lines):
    pair = criteo.load_pair(root, transform="floor_log_squared")
    expected = set()
    for text in lines:
        fields = text.split("\t")
        counts = [max(int(v or 0), 0) for v in fields[1:14]]
        features = tuple(float(np.floor(np.log(v + 1) ** 2)) for v in counts)
        if fields[1 + 13 + 16] != TARGET:
            expected.add((*features, int(fields[0])))
    for part in (pair.source_train, pair.source_test):
        for features, label in zip(part.inputs.tolist(), part.labels.tolist(), strict=True):
            assert (*features, label) in expected


def test_train_and_test_are_apart(root):
    pair = criteo.load_pair(root)
    rows = [r.tobytes() for p in (pair.source_train, pair.source_test) for r in p.inputs]
    assert len(set(rows)) == len(rows) == 80


def test_the_seed_fixes_the_rows(root):
    first, again, other = (criteo.load_pair(root, seed=s, max_rows=30) for s in (1, 1, 2))
    np.testing.assert_array_equal(first.source_train.inputs, again.source_train.inputs)
    assert not np.array_equal(first.source_train.inputs, other.source_train.inputs)
    assert len(first.target_train) + len(first.target_test) == 30


class TestBadFiles:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda t: t.rsplit("\t", 1)[0], r"Row #4: Expected 40 columns, got 39"),
            (lambda t: t + "\tmore", r"Row #4: Expected 40 columns, got 41"),
            (lambda t: "", r"line 4: the label is neither"),
            (lambda t: "2" + t[1:], r"line 4: the label is neither 0 nor 1"),
            (lambda t: t[1:], r"line 4: the label is neither 0 nor 1"),
            (lambda t: t.replace("\t", "\tmany", 1), r"Row #4: .*invalid value 'many"),
            (
                lambda t: t[0] + "\t99999999999" + t[t.index("\t", 2) :],
                r"Row #4: .*'99999999999'",
            ),
        ],
    )
    def test_bad_line(self, root, lines, change, message):
        lines[3] = change(lines[3])
        (root / "criteo/train.txt").write_text("\n".join(lines))
        with pytest.raises(InputError, match=message):
            criteo.load_pair(root)

    def test_truncated_gzip(self, root):
        path = root / "criteo/train.txt"
        packed = gzip.compress(path.read_bytes())
        path.unlink()
        (root / "criteo/train.txt.gz").write_bytes(packed[:-50])
        with pytest.raises(InputError, match=r"train.txt.gz cannot be read"):
            criteo.load_pair(root)

    @pytest.mark.parametrize(
        ("kept", "message"),
        [
            (lambda t: TARGET not in t, "The domain 'prospecting' is empty"),
            (lambda t: TARGET in t, "The domain 'retargeting' is empty.*other than 2005abd1"),
        ],
    )
    def test_empty_domain(self, root, lines, kept, message):
        (root / "criteo/train.txt").write_text("\n".join(filter(kept, lines)))
        with pytest.raises(InputError, match=message):
            criteo.load_pair(root)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"transform": "log"}, "transform='log' is unknown"),
            ({"source": "prospecting", "target": "retargeting"}, "cannot be the source"),
        ],
    )
    def test_options(self, root, options, message):
        with pytest.raises(OptionError, match=message):
            criteo.load_pair(root, **options)


@pytest.mark.data("criteo")
class TestRealFiles:
    def test_sample(self, data_root):
        pair = criteo.load_pair(data_root)
        labels = pair.target_test_labels.open("test")
        assert set(pair.source_train.labels) == set(labels) == {0, 1}
        assert pair.source_train.inputs.min() >= 0

    def test_squared_logarithms_fit_the_paper_and_plain_ones_do_not(self, data_root):
        # The paper's means on the source: feature 5 61.09, feature 9 14.32.
        for transform, close in (("floor_log_squared", True), ("floor_log", False)):
            means = criteo.load_pair(data_root, transform=transform).source_train.inputs.mean(
                axis=0
            )
            assert bool(abs(means[4] / 61.09 - 1) < 0.15) is close
            assert bool(abs(means[8] / 14.32 - 1) < 0.25) is close
