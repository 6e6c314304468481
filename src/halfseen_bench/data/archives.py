"""Unpack a downloaded archive within a stated size, whatever it claims to hold."""

from __future__ import annotations

import gzip
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

Member = tuple[str, int, Iterator[bytes]]
"""A file's name in the archive, its size, and its bytes in chunks."""

_CHUNK = 1 << 20
# What the libraries raise on a damaged or unsupported archive; BadGzipFile is an OSError, and
# LookupError that of an encoding that does not exist, or of a name without a letter.
_DAMAGE = (
    *(OSError, EOFError, zlib.error, tarfile.TarError, zipfile.BadZipFile),
    *(NotImplementedError, RuntimeError, LookupError, ValueError),
)


class ArchiveError(Exception):
    """The archive is damaged, or holds more than its limit."""


def members(archive: Path, limit: int) -> Iterator[Member]:
    """Yield the plain files of a zip or a gzipped tar, which unpacks to at most `limit` bytes.

    The chunks of a member must be taken before the next member is. What is passed over counts as
    well: it must be decompressed all the same. ArchiveError is raised before too much is unpacked.
    """
    try:
        yield from (_zip if archive.suffix == ".zip" else _tar)(archive, limit)
    except _DAMAGE as error:
        raise ArchiveError(str(error)) from None


def _zip(archive: Path, limit: int) -> Iterator[Member]:
    with zipfile.ZipFile(archive) as packed:
        # A member is never read beyond the size that the directory states.
        _check(sum(info.file_size for info in packed.infolist()), limit)
        for info in packed.infolist():
            if not info.is_dir():
                with packed.open(info) as stream:
                    yield info.filename, info.file_size, _chunks(stream)


def _tar(archive: Path, limit: int) -> Iterator[Member]:
    total = 0
    with _BoundedGzip(archive, limit) as stream, tarfile.open(fileobj=stream, mode="r:") as tar:
        for member in tar:
            total += member.size  # a sparse file is larger than its place in the stream
            _check(total, limit)
            content = tar.extractfile(member) if member.isfile() else None
            if content is not None:
                yield member.name, member.size, _chunks(content)
        for _ in _chunks(stream):
            pass  # to the end of the compression, where its own checksum is


class _BoundedGzip(gzip.GzipFile):
    """A stream that is never decompressed beyond its limit, nor read in one huge piece.

    tarfile takes the size of a long name or an extended header from the archive and reads it whole.
    """

    def __init__(self, path: Path, limit: int) -> None:
        self.limit = limit
        super().__init__(path, "rb")

    def seek(self, offset: int, whence: int = 0) -> int:
        _check(offset, self.limit)
        return super().seek(offset, whence)

    def read(self, size: int | None = -1) -> bytes:
        if size is None or not 0 <= size <= 16 * _CHUNK:
            raise ArchiveError(f"one of its headers claims to have {size:,} bytes")
        _check(self.tell(), self.limit)
        return super().read(size)


def _chunks(stream: IO[bytes] | Any) -> Iterator[bytes]:
    try:
        yield from iter(lambda: stream.read(_CHUNK), b"")
    except _DAMAGE as error:
        raise ArchiveError(str(error)) from None


def _check(size: int, limit: int) -> None:
    if size > limit:
        raise ArchiveError(f"it unpacks to more than the {limit:,} bytes allowed for it")
