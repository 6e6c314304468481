from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from halfseen.errors import HalfseenError, InputError, OptionError
from halfseen_bench.data import criteo, criteo_parquet
from halfseen_bench.data.criteo_file import CATEGORICAL, FIELDS, NUMERIC, line_blocks, parsed
from halfseen_bench.data.criteo_parquet import convert, finished_conversion, read_batches

TARGET = "2005abd1"
SMALL = {"block_bytes": 4000, "part_bytes": 20000, "progress": False}


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


def table_of(folder: Path) -> pyarrow.Table:
    return pyarrow.concat_tables(read_batches(folder, FIELDS))


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


@pytest.mark.parametrize(("most", "source", "target"), [(None, 320, 80), (100, 100, 80)])
def test_all_rows_are_used_where_asked_for(root, most, source, target):
    pair = criteo.load_pair(root, sizes="all", max_rows=most)
    counts = pair.card.counts
    assert counts["retargeting train"] + counts["retargeting test"] == source
    assert counts["prospecting train"] + counts["prospecting test"] == target
    assert "neither is cut to the other's size" in " ".join(pair.card.notes)
    with pytest.raises(OptionError, match="sizes='some'"):
        criteo.load_pair(root, sizes="some")


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
    pair = criteo.load_pair(root, categorical="hash")
    rows = [r.tobytes() for p in (pair.source_train, pair.source_test) for r in p.inputs]
    assert len(set(rows)) == len(rows) == 80


def test_the_seed_fixes_the_rows(root):
    first, again, other = (criteo.load_pair(root, seed=s, max_rows=30) for s in (1, 1, 2))
    np.testing.assert_array_equal(first.source_train.inputs, again.source_train.inputs)
    assert not np.array_equal(first.source_train.inputs, other.source_train.inputs)
    assert len(first.target_train) + len(first.target_test) == 30


def test_hashed_categories_follow_from_the_value_alone(root, lines):
    pair = criteo.load_pair(root, categorical="hash", buckets=7)
    names = [n for n in CATEGORICAL if n != "C17"]
    assert pair.blocks.names == (*NUMERIC, *names)
    possible = {0.0} | {(v * 0x1F000001) % 7 + 1 for v in range(1, 6)}
    assert set(pair.source_train.inputs[:, 13:].ravel()) == possible


def test_frequent_categories_come_first(root):
    pair = criteo.load_pair(root, categorical="frequency", domain_column=True)
    assert pair.blocks.names == (*NUMERIC, *CATEGORICAL)
    inputs = np.concatenate([pair.source_train.inputs, pair.target_train])
    domain = inputs[:, 13 + 16]
    assert set(domain) == {2, 3}  # C17 itself: two values, equally frequent
    for column in inputs[:, 13:].T:
        counts = np.bincount(column.astype(int), minlength=3)[2:]
        assert (np.diff(counts) <= 0).all()


def test_rare_categories_share_a_number():
    codes = np.array([5.0] * 20 + [9.0] * 12 + [7.0] * 3 + [np.nan] * 2)
    numbers = criteo._numbered(codes, np.arange(len(codes)), "frequency", 100)
    assert numbers.tolist() == [2] * 20 + [3] * 12 + [1] * 3 + [0] * 2
    capped = criteo._numbered(codes, np.arange(len(codes)), "frequency", 2)
    assert capped.tolist() == [2] * 20 + [1] * 15 + [0] * 2


@pytest.mark.parametrize("size", [1, 50, 1000, 1 << 20])
def test_blocks_hold_whole_lines(root, lines, size):
    path = root / "criteo/train.txt"
    blocks = list(line_blocks(path, size=size))
    assert b"".join(block.data for block in blocks) == path.read_bytes()
    assert sum(block.lines for block in blocks) == len(lines)
    for block in blocks:
        assert block.data.decode().split("\n")[0] == lines[block.first_line - 1]
    assert blocks[-1].end == path.stat().st_size


def test_last_line_may_lack_its_newline(tmp_path, lines):
    path = tmp_path / "train.txt"
    path.write_text("\n".join(lines[:3]))
    assert [parsed(b, path).num_rows for b in line_blocks(path)] == [2, 1]
    assert [b.lines for b in line_blocks(path)] == [2, 1]


class TestConversion:
    def test_every_value_arrives(self, root, lines, tmp_path):
        state = convert(root / "criteo/train.txt", tmp_path / "out", **SMALL)
        assert state.rows == 400
        assert len(state.parts) > 3
        table = table_of(tmp_path / "out")
        assert table.column_names == list(FIELDS)
        for row, text in zip(table.to_pylist(), lines, strict=True):
            values = ["" if v is None else str(v) for v in row.values()]
            assert values == text.split("\t")

    def test_packed_text_gives_the_same(self, root, tmp_path):
        plain = root / "criteo/train.txt"
        packed = tmp_path / "train.txt.gz"
        packed.write_bytes(gzip.compress(plain.read_bytes()))
        convert(plain, tmp_path / "a", **SMALL)
        convert(packed, tmp_path / "b", **SMALL)
        assert table_of(tmp_path / "a").equals(table_of(tmp_path / "b"))

    @pytest.mark.parametrize("suffix", ["", ".gz"])
    def test_goes_on_where_it_stopped(self, root, tmp_path, monkeypatch, suffix):
        path = tmp_path / f"train.txt{suffix}"
        data = (root / "criteo/train.txt").read_bytes()
        path.write_bytes(gzip.compress(data) if suffix else data)
        blocks = []

        def stopping(block, *rest):
            blocks.append(block.first_line)
            if len(blocks) == 13:
                raise KeyboardInterrupt
            return parsed(block, *rest)

        monkeypatch.setattr(criteo_parquet, "parsed", stopping)
        with pytest.raises(KeyboardInterrupt):
            convert(path, tmp_path / "out", **SMALL)
        left = sorted(p.name for p in (tmp_path / "out").iterdir())
        assert left == ["conversion.json", "part-00000.parquet", "part-00001.parquet"]
        with pytest.raises(InputError, match=r"stopped after \d+ rows; run convert\(\) again"):
            finished_conversion(tmp_path / "out")
        with pytest.raises(InputError, match="stopped after"):
            criteo.load_pair(root, parquet=tmp_path / "out")
        before = (tmp_path / "out/part-00000.parquet").stat().st_mtime_ns
        convert(path, tmp_path / "out", **SMALL)
        assert (tmp_path / "out/part-00000.parquet").stat().st_mtime_ns == before
        assert blocks[13] > 1  # the first blocks were not parsed again
        convert(path, tmp_path / "whole", **SMALL)
        assert table_of(tmp_path / "out").equals(table_of(tmp_path / "whole"))

    def test_a_finished_folder_is_left_alone(self, root, tmp_path, monkeypatch):
        path = root / "criteo/train.txt"
        first = convert(path, tmp_path / "out", **SMALL)
        monkeypatch.setattr(criteo_parquet, "parsed", lambda *_: pytest.fail("parsed again"))
        assert convert(path, tmp_path / "out", **SMALL) == first

    def test_a_pair_is_the_same_from_text_and_from_parquet(self, root):
        text = criteo.load_pair(root, categorical="frequency")
        convert(root / "criteo/train.txt", root / "criteo/parquet", **SMALL)
        (root / "criteo/train.txt").unlink()
        parquet = criteo.load_pair(root, categorical="frequency")
        np.testing.assert_array_equal(text.source_train.inputs, parquet.source_train.inputs)
        np.testing.assert_array_equal(text.target_test, parquet.target_test)
        assert text.card == parquet.card

    def test_another_file_is_refused(self, root, tmp_path, lines):
        convert(root / "criteo/train.txt", tmp_path / "out", **SMALL)
        other = tmp_path / "other.txt"
        other.write_text("\n".join(lines[:7]))
        with pytest.raises(InputError, match="holds a conversion of another file"):
            convert(other, tmp_path / "out", **SMALL)

    def test_a_lost_part_is_noticed(self, root, tmp_path):
        state = convert(root / "criteo/train.txt", tmp_path / "out", **SMALL)
        (tmp_path / "out" / state.parts[1]).unlink()
        with pytest.raises(InputError, match=r"has lost part-00001.parquet"):
            convert(root / "criteo/train.txt", tmp_path / "out", **SMALL)

    def test_a_damaged_part_is_named(self, root, tmp_path):
        convert(root / "criteo/train.txt", tmp_path / "out", **SMALL)
        path = tmp_path / "out/part-00001.parquet"
        path.write_bytes(path.read_bytes()[:-20])
        with pytest.raises(InputError, match=r"part-00001.parquet cannot be read"):
            table_of(tmp_path / "out")

    def test_a_damaged_manifest_is_named(self, root, tmp_path):
        convert(root / "criteo/train.txt", tmp_path / "out", **SMALL)
        (tmp_path / "out/conversion.json").write_text(json.dumps({"what": 1}))
        with pytest.raises(InputError, match=r"conversion.json cannot be read"):
            finished_conversion(tmp_path / "out")

    def test_a_folder_that_cannot_be_written(self, root, tmp_path):
        (tmp_path / "file").write_text("not a folder")
        with pytest.raises(HalfseenError, match=r"could not be written"):
            convert(root / "criteo/train.txt", tmp_path / "file/out", **SMALL)

    def test_a_bad_line_is_numbered_in_the_whole_file(self, root, tmp_path, lines):
        path = tmp_path / "train.txt"
        path.write_text("\n".join([*lines[:301], "1\t2\t3", *lines[301:]]))
        with pytest.raises(InputError, match=r"train.txt, line 302 has 3 fields"):
            convert(path, tmp_path / "out", **SMALL)
        with pytest.raises(InputError, match=r"train.txt, line 302 has 3 fields"):
            convert(path, tmp_path / "out", **SMALL)  # also when it goes on

    def test_empty_file(self, tmp_path):
        (tmp_path / "train.txt").write_text("")
        with pytest.raises(InputError, match=r"train.txt holds no rows"):
            convert(tmp_path / "train.txt", tmp_path / "out", progress=False)


class TestBadFiles:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda t: t.rsplit("\t", 1)[0], r"line 4 has 39 fields; a label, 13 counts and 26"),
            (lambda t: t + "\tmore", r"line 4 has 41 fields"),
            (lambda t: "", r"line 4 has 1 fields"),
            (lambda t: "2" + t[1:], r"line 4: the label '2' is neither 0 nor 1"),
            (lambda t: t[1:], r"line 4: the label '' is neither 0 nor 1"),
            (lambda t: t.replace("\t", "\tmany", 1), r"line 4, column 'I1': 'many.*' is not"),
            (
                lambda t: t[0] + "\t99999999999" + t[t.index("\t", 2) :],
                r"column 'I1': '99999999999",
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
        with pytest.raises(InputError, match=r"train.txt.gz is truncated"):
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

    def test_category_that_is_no_hash(self, root, lines):
        lines[0] = lines[0].rsplit("\t", 1)[0] + "\tshoes"
        (root / "criteo/train.txt").write_text("\n".join(lines))
        with pytest.raises(InputError, match="not a hexadecimal number"):
            criteo.load_pair(root, categorical="hash")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"transform": "log"}, "transform='log' is unknown"),
            ({"categorical": "onehot"}, "categorical='onehot' is unknown"),
            ({"source": "prospecting", "target": "retargeting"}, "cannot be the source"),
            ({"categorical": "hash", "buckets": 1}, "buckets=1 leaves nothing"),
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

    def test_conversion(self, data_root, tmp_path):
        (path,) = (data_root / "criteo").glob("train.txt*")
        state = convert(path, tmp_path, block_bytes=1 << 20, part_bytes=1 << 20, progress=False)
        rows = sum(pyarrow.parquet.read_metadata(tmp_path / p).num_rows for p in state.parts)
        assert rows == state.rows >= 10_000
