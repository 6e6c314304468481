"""Parquet and Arrow that anybody may have written, read within bounds.

A few bytes can stand for a great many: a page that unpacks, a text that every row repeats. What
would be written out is known here before it is. Nothing asks pyarrow for the
metadata of a column chunk: where they are damaged it does not raise but ends the process.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from halfseen.data.arrow_columns import LARGEST_BATCH, check_text_bytes, decoded, is_text
from halfseen.errors import InputError

# --- Parquet: rows --------------------------------------------------------------------------

FEW_TEXTS = LARGEST_BATCH // 4
"""Bytes of texts beyond which fewer rows are read at once: pyarrow holds them more than once."""
LARGEST_PAGE = 2**28
"""Bytes that a page may unpack to: whoever writes Parquet makes pages of some megabytes."""
CODED, REPEATING = {2, 8}, 7
"""Encodings that name texts of the dictionary, and one whose texts repeat the one before."""


def read_parquet(path: Path, columns: Sequence[str], rows: int) -> Iterator[Any]:
    """Yield record batches of at most so many rows, with plain UTF-8 texts."""
    groups, schema = pa.parquet.read_metadata(path).num_row_groups, pa.parquet.read_schema(path)
    for name in columns:
        kind = schema.field(name).type
        if pa.types.is_nested(kind):  # refused before a row that is a very long list is read
            decoded(pa.array([], kind), name, str(path))
    row = 1
    for group in range(groups):
        for batch in _batches(path, group, columns, *reading_plan(path, group, columns, rows)):
            named = zip(batch.schema.names, batch.columns, strict=True)
            plain = [_plain(values, name, path, row) for name, values in named]
            yield pa.record_batch(plain, names=batch.schema.names)
            row += batch.num_rows


def reading_plan(
    path: Path, group: int, columns: Sequence[str], rows: int
) -> tuple[int, list[str]]:
    """Return how many rows are read at once, and which texts as a dictionary.

    A dictionary holds a repeated text once, and is slow where most texts differ: there the writer
    gave it up, after a first page that shows how long its texts are.
    """
    dictionaries = []
    for name, pages in text_pages(path, group).items():
        if name not in columns:
            continue
        unpacked = sum(size for _, size in pages.pages)
        if CODED & set(pages.encodings):
            is_plain = bool(set(pages.encodings) - CODED)
            longest = LARGEST_BATCH
            if is_plain and pages.encodings[0] in CODED:
                texts = next(_batches(path, group, [name], 1, [name])).column(0).dictionary
                longest = pc.max(pc.binary_length(texts.cast(pa.large_binary()))).as_py() or 0
            if longest * rows + pages.largest(rows) > LARGEST_BATCH:
                if is_plain and unpacked > LARGEST_BATCH:
                    raise _too_large(name, path, unpacked)
                dictionaries.append(name)
                continue
        elif REPEATING in pages.encodings:
            rows = min(rows, max(1, LARGEST_BATCH // max(1, unpacked)))
        while rows > 1 and pages.largest(rows) > FEW_TEXTS:
            rows //= 2
        if pages.largest(rows) > LARGEST_BATCH:
            raise _too_large(name, path, pages.largest(rows))
    return rows, dictionaries


def _too_large(name: str, path: Path, size: int) -> InputError:
    return InputError(
        f"Column {name!r} of {path} holds texts that unpack to {size:,} bytes; at most "
        f"{LARGEST_BATCH:,} are read at once. Texts must be short names of categories."
    )


def _batches(
    path: Path, group: int, columns: Sequence[str], rows: int, dictionaries: Sequence[str]
) -> Iterator[Any]:
    # Through a small buffer: otherwise whole column chunks are held.
    options = {"pre_buffer": False, "buffer_size": 2**20, "read_dictionary": list(dictionaries)}
    with pa.parquet.ParquetFile(path, **options) as file:
        yield from file.iter_batches(
            rows, row_groups=[group], columns=list(columns), use_threads=False
        )


def _plain(values: Any, name: str, path: Path, first_row: int) -> Any:
    """Return a column without a dictionary; Parquet does not check that its texts are UTF-8."""
    is_coded = pa.types.is_dictionary(values.type)
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        if not is_text(values.type.value_type if is_coded else values.type):
            raise
        for row in range(len(values)):
            try:
                values[row].as_py()
            except UnicodeDecodeError:
                raise InputError(
                    f"Column {name!r} of {path} holds a text in row {row + first_row} that is not "
                    "UTF-8; write the file anew with texts in UTF-8."
                ) from None
        raise
    if is_coded:
        check_text_bytes(values, name, str(path))
    return values.dictionary_decode() if is_coded else values


# --- Parquet: what its pages unpack to, by their headers in Thrift's compact protocol ---------


class ColumnPages(NamedTuple):
    """The pages of one column in one row group: values and unpacked bytes of each one of data."""

    pages: tuple[tuple[int, int], ...]
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


class _Chunk(NamedTuple):
    """A column in a row group: where it lies, how many values it has, whether they are texts."""

    begin: int
    end: int
    values: int
    is_text: bool


def text_pages(path: Path, group: int) -> dict[str, ColumnPages]:
    """Return the pages of each column of texts in a row group.

    Headers that lead nowhere and pages that are too large are refused in every column: pyarrow
    makes room for a page before it looks whether the file holds it.
    """
    try:
        facts = path.stat()
        chunks = _chunks(path, facts.st_size, facts.st_mtime_ns)[group]
        with path.open("rb") as file, _mapped(file.fileno()) as content:
            pages_of = {name: _pages(content, chunk) for name, chunk in chunks.items()}
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, struct.error):
        raise InputError(
            f"{path} cannot be read as Parquet: the headers of its pages lead nowhere."
        ) from None
    for name, pages in pages_of.items():
        if pages.largest_page > LARGEST_PAGE and not chunks[name].is_text:
            raise InputError(
                f"Column {name!r} of {path} has a page that unpacks to {pages.largest_page:,} "
                f"bytes; at most {LARGEST_PAGE:,} are read at once: write it with smaller pages."
            )
    return {name: pages for name, pages in pages_of.items() if chunks[name].is_text}


@lru_cache(maxsize=8)
def _chunks(path: Path, size: int, changed: int) -> list[dict[str, _Chunk]]:
    """Return the columns of each row group; fields have the numbers of ``parquet.thrift``."""
    with path.open("rb") as file, _mapped(file.fileno()) as content:
        length = struct.unpack_from("<I", content, len(content) - 8)[0]
        if content[-4:] != b"PAR1" or not 0 < length < len(content) - 8:
            raise ValueError
        footer = _Thrift(content, len(content) - 8 - length).struct()
    groups = []
    for group in footer[4]:
        chunks = {}
        for about in (chunk[3] for chunk in group[1]):
            begin = min(about[9], about.get(11) or about[9])
            chunk = _Chunk(begin, begin + about[7], about[5], about[1] == 6)  # BYTE_ARRAY
            chunks[b".".join(about[3]).decode()] = chunk
        groups.append(chunks)
    return groups


def _mapped(handle: int) -> mmap.mmap:
    return mmap.mmap(handle, 0, access=mmap.ACCESS_READ)


def _pages(content: mmap.mmap, chunk: _Chunk) -> ColumnPages:
    pages, encodings, largest = [], [], 0
    thrift, values = _Thrift(content, chunk.begin), chunk.values
    while thrift.place < chunk.end and values > 0:
        header = thrift.struct()
        if header[1] in (0, 3):  # data, of the first or the second version
            about, encoding = (header[5], 2) if header[1] == 0 else (header[8], 4)
            pages.append((about[1], header[2]))
            encodings.append(about[encoding])
            values -= about[1]
        thrift.place += header[3]
        largest = max(largest, header[2])
        if min(header[2], header[3], *(count for count, _ in pages[-1:])) < 0:
            raise ValueError
        if thrift.place > len(content):
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

    def value(self, kind: int, depth: int) -> Any:
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
        if kind == 12 and depth <= 12:
            return self.struct(depth + 1)
        raise ValueError

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Return the fields of a struct by number."""
        fields: dict[int, Any] = {}
        number = 0
        while head := self.byte():
            number = number + (head >> 4) if head >> 4 else self.value(4, depth)
            fields[number] = self.value(head & 15, depth)
        return fields


# --- Arrow: the length that a compressed buffer begins with is allocated on trust -------------

SMALLEST_VALUE = 8
"""Bytes that one row of one column is reckoned to take at least."""


class Declared(NamedTuple):
    """What the header of a message says: rows of a record batch, and bytes that it takes."""

    rows: int
    bytes: int


def open_arrow(path: Path) -> Any:
    """Return a reader of a file of the random-access format, or of a stream."""
    content = pa.memory_map(str(path)).read_buffer()
    return pa.ipc.open_file(content) if _is_file(content) else pa.ipc.open_stream(content)


def arrow_batches(path: Path) -> Iterator[Any]:
    reader = open_arrow(path)
    count = getattr(reader, "num_record_batches", None)  # a stream does not tell
    yield from reader if count is None else map(reader.get_batch, range(count))


def _is_file(content: Any) -> bool:
    return bytes(memoryview(content)[:6]) == b"ARROW1"


def check_arrow(path: Path) -> None:
    """Refuse a file in which a record batch or a dictionary unpacks to too many bytes."""
    content = pa.memory_map(str(path)).read_buffer()
    declared = _of_footer(memoryview(content)) if _is_file(content) else declared_batches(content)
    try:
        largest = max((each.bytes for each in declared), default=0)
    except (struct.error, IndexError, ValueError, OverflowError):
        raise InputError(
            f"{path} is not a whole Arrow file: its headers point outside of it."
        ) from None
    if largest > LARGEST_BATCH:
        raise InputError(
            f"{path} holds a record batch that unpacks to {largest:,} bytes; at most "
            f"{LARGEST_BATCH:,} are read at once. Write it in smaller batches, or as Parquet."
        )


def _of_footer(content: memoryview) -> Iterator[Declared]:
    """Yield what every batch that a file's footer names declares; fields are as in ``File.fbs``."""
    end = len(content) - 10
    footer = content[end - struct.unpack_from("<i", content, end)[0] : end]
    table: int = struct.unpack_from("<I", footer)[0]
    for field in (2, 3):  # dictionaries, record batches
        start, count = _vector(footer, table, field)
        for place in range(start, start + 24 * count, 24):
            offset, metadata, body = struct.unpack_from("<qi4xq", footer, place)
            if min(offset, metadata, body) < 0 or offset + metadata + body > len(content):
                raise ValueError
            header = content[offset : offset + metadata]
            header = header[8 if bytes(header[:4]) == b"\xff\xff\xff\xff" else 4 :]
            yield _declared(header, content[offset + metadata : offset + metadata + body])


def declared_batches(content: Any) -> Iterator[Declared]:
    """Yield what each message of a stream declares, without unpacking any.

    Raises ValueError, IndexError, OverflowError or struct.error where it is no whole stream.
    """
    reader: Any = pa.ipc.MessageReader.open_stream(pa.py_buffer(content))
    while True:
        try:
            message = reader.read_next_message()
        except StopIteration:
            return
        except (pa.ArrowException, OSError):
            raise ValueError from None
        yield _declared(memoryview(message.metadata), memoryview(message.body or b""))


def _declared(header: memoryview, body: memoryview) -> Declared:
    """Add up the buffers of a message; its fields have the numbers of ``Message.fbs``."""
    message: int = struct.unpack_from("<I", header)[0]
    kind = _scalar(header, message, 1, "<B")
    if kind not in (2, 3):  # a dictionary batch, a record batch
        return Declared(0, 0)
    batch = _child(header, message, 2)
    batch = _child(header, batch, 1) if kind == 2 else batch
    rows = _scalar(header, batch, 0, "<q")
    start, count = _vector(header, batch, 2)
    buffers = np.frombuffer(header, "<i8", 2 * count, start).reshape(-1, 2).tolist()
    if min([rows, *(number for buffer in buffers for number in buffer)]) < 0:
        raise ValueError
    total = sum(length for _, length in buffers)
    if _field(header, batch, 3) is not None:  # compressed
        unpacked = [
            (length, struct.unpack_from("<q", body, offset)[0])
            for offset, length in buffers
            if length >= 8
        ]
        # -1 says that this one is not.
        total += sum(size - length for length, size in unpacked if size >= 0)
    return Declared(rows if kind == 3 else 0, max(total, rows * SMALLEST_VALUE))


def _field(buffer: memoryview, table: int, number: int) -> int | None:
    """Return where a field of a FlatBuffers table is, or None where it has its default."""
    virtual = table - struct.unpack_from("<i", buffer, table)[0]
    if 4 + 2 * number >= struct.unpack_from("<H", buffer, virtual)[0]:
        return None
    offset = struct.unpack_from("<H", buffer, virtual + 4 + 2 * number)[0]
    return table + offset if offset else None


def _scalar(buffer: memoryview, table: int, number: int, code: str) -> int:
    place = _field(buffer, table, number)
    return 0 if place is None else struct.unpack_from(code, buffer, place)[0]


def _child(buffer: memoryview, table: int, number: int) -> int:
    place = _field(buffer, table, number)
    if place is None:
        raise ValueError
    return place + int(struct.unpack_from("<I", buffer, place)[0])


def _vector(buffer: memoryview, table: int, number: int) -> tuple[int, int]:
    """Return where a vector's first element is, and how many there are."""
    if _field(buffer, table, number) is None:
        return 0, 0
    start = _child(buffer, table, number)
    return start + 4, struct.unpack_from("<I", buffer, start)[0]
