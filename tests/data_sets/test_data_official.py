from __future__ import annotations

import bz2
import gzip
import hashlib

import pytest

from halfseen.errors import HalfseenError, InputError
from halfseen.outputs import atomic_write
from halfseen_bench.data import amazon, bank, criteo, digits, gas, heart, shoppers
from halfseen_bench.data.official import (
    content,
    content_sha256,
    locate,
)

TEXT = b"some content\n" * 1000


@pytest.mark.parametrize(
    ("name", "pack"), [("a", bytes), ("a.gz", gzip.compress), ("a.bz2", bz2.compress)]
)
def test_content_is_the_same_packed_or_not(tmp_path, name, pack):
    path = tmp_path / name
    path.write_bytes(pack(TEXT))
    assert content(path) == TEXT
    assert content_sha256(path) == hashlib.sha256(TEXT).hexdigest()


@pytest.mark.parametrize(("name", "pack"), [("a.gz", gzip.compress), ("a.bz2", bz2.compress)])
def test_packed_files_that_end_early(tmp_path, name, pack):
    path = tmp_path / name
    path.write_bytes(pack(TEXT)[:-5])
    with pytest.raises(InputError, match=rf"{name} is truncated"):
        content(path)


@pytest.mark.parametrize("name", ["a.gz", "a.bz2"])
def test_packed_files_that_are_not(tmp_path, name):
    (tmp_path / name).write_bytes(TEXT)
    with pytest.raises(InputError, match=rf"{name} cannot be read"):
        content(tmp_path / name)


def test_content_has_a_limit(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(bytes(3_000_000)))
    assert len(content(tmp_path / "a.gz")) == 3_000_000
    with pytest.raises(InputError, match=r"a\.gz unpacks to more than 2,000,000 bytes"):
        content(tmp_path / "a.gz", limit=2_000_000)


def test_locate_takes_the_first_that_exists_in_any_packing(tmp_path):
    (tmp_path / "b.gz").touch()
    (tmp_path / "c").touch()
    assert locate(tmp_path, "a", "b", "c").name == "b.gz"
    assert locate(tmp_path, "c.gz").name == "c"
    with pytest.raises(InputError, match="'a' or 'd' is not in the data folder"):
        locate(tmp_path, "a", "d")


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "folder/file"
    with atomic_write(path) as partial:
        partial.write_text("first")
        assert not path.exists()

    def stopped() -> None:
        with atomic_write(path) as partial:
            partial.write_text("sec")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert path.read_text() == "first"
    assert list(path.parent.iterdir()) == [path]


def test_no_space_is_a_sentence(tmp_path):
    with (
        pytest.raises(HalfseenError, match=r"file could not be written: .*No space left"),
        atomic_write(tmp_path / "file"),
    ):
        raise OSError(28, "No space left on device")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("family", [digits, amazon, criteo, heart, gas, bank, shoppers])
def test_every_family_has_the_same_entry(family, tmp_path):
    assert len(family.DOMAINS) == len(set(family.DOMAINS)) > 1
    assert all(f.sha256 is None or len(f.sha256) == 64 for f in family.FILES)
    with pytest.raises(InputError, match="is not in the data folder"):
        family.load_pair(tmp_path, family.DOMAINS[0], family.DOMAINS[1])
