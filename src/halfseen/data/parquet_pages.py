"""What the pages of a Parquet file unpack to, read from their headers before any is unpacked.

A page of a few bytes can stand for a great many, and so can a row that names a text of the
dictionary. Headers and footer are in Thrift's compact protocol, and the numbers of fields are
those of ``parquet.thrift``; pyarrow does not show pages, and ends the process at some damaged
footers whose columns it is asked about.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from halfseen.errors import InputError

_BYTE_ARRAY, _DATA, _DATA_2 = 6, 0, 3
CODED, REPEATING = {2, 8}, 7
"""Encodings that name texts of the dictionary, and one whose texts repeat the one before."""
_DEEPEST = 12
LARGEST_PAGE = 2**28
"""Bytes that a page may unpack to: whoever writes Parquet makes pages of some megabytes."""


@dataclass(frozen=True)
class ColumnPages:
    """The pages of one column in one row group."""

    pages: tuple[tuple[int, int], ...]
    """Values and unpacked bytes of each page of data."""
    encodings: tuple[int, ...]
    """How the texts of each are written."""
    largest_page: int = 0
    """Unpacked bytes of the largest page, be it a dictionary."""

    def largest(self, rows: int) -> int:
        """Return what the pages that so many rows in sequence lie in unpack to, at most."""
        most = first = values = size = 0
        for count, unpacked in self.pages:
            values, size = values + count, size + unpacked
            most = max(most, size)
            # A page is left behind once the rows that end here can begin after it.
            while values - self.pages[first][0] >= rows:
                values, size = values - self.pages[first][0], size - self.pages[first][1]
                first += 1
        return most


def text_pages(path: Path, group: int) -> dict[str, ColumnPages]:
    """Return the pages of each column of texts in a row group.

    Headers that lead nowhere and pages that are too large are refused in every column: pyarrow
    makes room for a page before it looks whether the file holds it.
    """
    try:
        facts = path.stat()
        with path.open("rb") as file, _mapped(file.fileno()) as content:
            chunks = _chunks(path, facts.st_size, facts.st_mtime_ns)[group]
            found = {name: _pages(content, chunk) for name, chunk in chunks.items()}
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, struct.error):
        raise InputError(
            f"{path} cannot be read as Parquet: the headers of its pages lead nowhere."
        ) from None
    for name, pages in found.items():
        if pages.largest_page > LARGEST_PAGE and not chunks[name].is_text:
            raise InputError(
                f"Column {name!r} of {path} has a page that unpacks to {pages.largest_page:,} "
                f"bytes; at most {LARGEST_PAGE:,} are read at once: write it with smaller pages."
            )
    return {name: pages for name, pages in found.items() if chunks[name].is_text}


class _Chunk(NamedTuple):
    """A column in a row group: where it lies, how many values it has, whether they are texts."""

    begin: int
    end: int
    values: int
    is_text: bool


@lru_cache(maxsize=8)
def _chunks(path: Path, size: int, changed: int) -> list[dict[str, _Chunk]]:
    """Return the columns of each row group."""
    with path.open("rb") as file, _mapped(file.fileno()) as content:
        length = struct.unpack_from("<I", content, len(content) - 8)[0]
        if content[-4:] != b"PAR1" or not 0 < length < len(content) - 8:
            raise ValueError
        footer = _Thrift(content, len(content) - 8 - length).struct()
    groups = []
    for group in footer[4]:
        found = {}
        for column in (chunk[3] for chunk in group[1]):
            begin = min(column[9], column.get(11) or column[9])
            chunk = _Chunk(begin, begin + column[7], column[5], column[1] == _BYTE_ARRAY)
            found[b".".join(column[3]).decode()] = chunk
        groups.append(found)
    return groups


def _mapped(handle: int) -> mmap.mmap:
    return mmap.mmap(handle, 0, access=mmap.ACCESS_READ)


def _pages(content: mmap.mmap, chunk: _Chunk) -> ColumnPages:
    pages, encodings, largest = [], [], 0
    thrift, values = _Thrift(content, chunk.begin), chunk.values
    while thrift.place < chunk.end and values > 0:
        header = thrift.struct()
        if header[1] in (_DATA, _DATA_2):
            about = header[5 if header[1] == _DATA else 8]
            pages.append((about[1], header[2]))
            encodings.append(about[2 if header[1] == _DATA else 4])
            values -= about[1]
        thrift.place += header[3]
        largest = max(largest, header[2])
        sizes = (header[2], header[3], *(size for size, _ in pages[-1:]))
        if min(sizes) < 0 or thrift.place > len(content):
            raise ValueError
    return ColumnPages(tuple(pages), tuple(encodings), largest)


class _Thrift:
    """Reads the little of Thrift's compact protocol that is needed, one value after another."""

    def __init__(self, content: mmap.mmap, place: int) -> None:
        self.content, self.place = content, place

    def byte(self) -> int:
        self.place += 1
        return self.content[self.place - 1]

    def count(self) -> int:
        """Return a number of seven bits in each byte, the last ones first."""
        number = 0
        for shift in range(0, 70, 7):
            byte = self.byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
        raise ValueError

    def value(self, kind: int, depth: int = 0) -> Any:
        if kind in (1, 2):
            return kind == 1
        if kind == 3:
            return self.byte()
        if kind in (4, 5, 6):
            number = self.count()
            return number >> 1 ^ -(number & 1)
        if kind in (7, 8):
            length = 8 if kind == 7 else self.count()
            self.place += length
            if self.place > len(self.content):
                raise ValueError
            return self.content[self.place - length : self.place]
        if kind in (9, 10):
            head = self.byte()
            length = self.count() if head >> 4 == 15 else head >> 4
            # In a list, unlike in a field, a boolean has a byte.
            inner = 3 if head & 15 in (1, 2) else head & 15
            return [self.value(inner, depth + 1) for _ in range(length)]
        if kind == 12 and depth <= _DEEPEST:
            return self.struct(depth + 1)
        raise ValueError

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Return the fields of a struct by number."""
        found: dict[int, Any] = {}
        number = 0
        while head := self.byte():
            number = number + (head >> 4) if head >> 4 else self.value(4)
            found[number] = self.value(head & 15, depth)
        return found
