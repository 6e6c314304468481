"""Archives within a stated size: bombs of every kind that the formats allow, and damage."""

from __future__ import annotations

import gzip
import io
import tarfile
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from halfseen_bench.data.archives import ArchiveError, members

LIMIT = 1_000_000


def unpacked(path: Path, limit: int = LIMIT) -> dict[str, bytes]:
    return {name: b"".join(chunks) for name, _, chunks in members(path, limit)}


def tar_of(path: Path, *entries: tuple[str, int], tail: int = 0) -> Path:
    """Files of zeros, and zeros behind the end of the archive."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, size in entries:
            member = tarfile.TarInfo(name)
            member.size = size
            tar.addfile(member, io.BytesIO(bytes(size)))
    path.write_bytes(gzip.compress(stream.getvalue() + bytes(tail)))
    return path


def zip_of(path: Path, *entries: tuple[str, int]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, size in entries:
            packed.writestr(name, bytes(size))
    return path


@pytest.mark.parametrize(("make", "name"), [(tar_of, "a.tar.gz"), (zip_of, "a.zip")])
class TestBothKinds:
    def test_files_come_whole(self, tmp_path, make, name):
        path = make(tmp_path / name, ("a", 10), ("folder/b", 900_000))
        found = unpacked(path)
        assert {n: len(data) for n, data in found.items()} == {"a": 10, "folder/b": 900_000}

    def test_one_large_file(self, tmp_path, make, name):
        path = make(tmp_path / name, ("a", 50_000_000))
        assert path.stat().st_size < 100_000
        tracemalloc.start()
        with pytest.raises(ArchiveError, match="more than the 1,000,000 bytes allowed"):
            unpacked(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 5_000_000

    def test_many_files(self, tmp_path, make, name):
        path = make(tmp_path / name, *((f"f{n}", 300_000) for n in range(5)))
        with pytest.raises(ArchiveError, match="more than the 1,000,000 bytes allowed"):
            unpacked(path)

    def test_damage(self, tmp_path, make, name):
        path = make(tmp_path / name, ("a", 100_000))
        whole = path.read_bytes()
        for damaged in (b"no archive", whole[: len(whole) // 2], b""):
            path.write_bytes(damaged)
            with pytest.raises(ArchiveError):
                unpacked(path)


def test_a_huge_tail_behind_a_tar(tmp_path):
    path = tar_of(tmp_path / "a.tar.gz", ("a", 10), tail=20_000_000)
    with pytest.raises(ArchiveError, match="more than the 1,000,000 bytes allowed"):
        unpacked(path)


def test_a_header_that_claims_gigabytes(tmp_path):
    header = tarfile.TarInfo("long name")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 4 << 30
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(header.tobuf() + bytes(1 << 20)))
    with pytest.raises(ArchiveError, match="one of its headers claims to have 4,294,967,296 bytes"):
        unpacked(tmp_path / "a.tar.gz", limit=16 << 30)


def test_a_sparse_file_of_nothing(tmp_path):
    header = tarfile.TarInfo("sparse")
    header.type = tarfile.GNUTYPE_SPARSE
    raw = bytearray(header.tobuf(tarfile.GNU_FORMAT))
    raw[483:495] = b"%011o\0" % (5 << 30)  # its real size; no byte of it is stored
    raw[148:156] = b"%06o\0 " % (sum(raw[:148]) + sum(raw[156:]) + 8 * 32)
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(bytes(raw) + bytes(1024)))
    with pytest.raises(ArchiveError, match="more than the 1,000,000 bytes allowed"):
        unpacked(tmp_path / "a.tar.gz")


def test_links_and_folders_are_passed_over(tmp_path):
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as tar:
        for name, kind in (("link", tarfile.SYMTYPE), ("folder", tarfile.DIRTYPE)):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/hostname"
            tar.addfile(member)
    assert unpacked(tmp_path / "a.tar.gz") == {}


def test_a_file_without_a_name_is_damage(tmp_path):
    """zipfile asks for the last letter of every name."""
    path = zip_of(tmp_path / "a.zip", ("a", 10))
    content = bytearray(path.read_bytes())
    directory = content.index(b"PK\x01\x02")
    content[directory + 28 : directory + 30] = b"\0\0"  # the length of the name
    content[directory + 30 : directory + 32] = b"\1\0"  # which is an extra field now
    path.write_bytes(content)
    with pytest.raises(ArchiveError):
        unpacked(path)
