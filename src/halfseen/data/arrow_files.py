"""How large the batches of an Arrow file become, read from its headers before any is unpacked.

A compressed buffer begins with the length it unpacks to, and Arrow allocates that much on trust.
So a file of a few kilobytes can ask for all memory; here the lengths are added up first. The
layout is that of Arrow's ``Message.fbs`` and ``File.fbs``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from halfseen.errors import InputError

LARGEST_BATCH = 512 * 2**20
"""Bytes that one record batch may unpack to."""

_MAGIC = b"ARROW1"
_SMALLEST_VALUE = 8  # bytes that one row of one column is reckoned to take at least


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Give a reader of a file of the random-access format, or of a stream."""
    with pa.memory_map(str(path)) as mapped:
        is_file = mapped.read(len(_MAGIC)) == _MAGIC
        mapped.seek(0)
        yield pa.ipc.open_file(mapped) if is_file else pa.ipc.open_stream(mapped)


def check_batches(path: Path) -> None:
    """Refuse a file in which a record batch or a dictionary unpacks to too many bytes."""
    with pa.memory_map(str(path)) as mapped:
        content = memoryview(mapped.read_buffer())
        is_file = bytes(content[: len(_MAGIC)]) == _MAGIC
        try:
            blocks = _file_blocks(content) if is_file else _stream_blocks(content)
            largest = max((_declared(*block).bytes for block in blocks), default=0)
        except (struct.error, IndexError, ValueError, OverflowError):
            raise InputError(
                f"{path} is not a whole Arrow file: its headers point outside of it."
            ) from None
    if largest > LARGEST_BATCH:
        raise InputError(
            f"{path} holds a record batch that unpacks to {largest:,} bytes; at most "
            f"{LARGEST_BATCH:,} are read at once. Write it in smaller batches, or as Parquet."
        )


class Declared(NamedTuple):
    """What the header of a message says of it."""

    rows: int
    """Of a record batch; 0 for a dictionary or a schema."""
    bytes: int
    """That it takes in memory at least."""


def declared_batches(content: memoryview) -> Iterator[Declared]:
    """Yield what each message of a stream declares, without unpacking any.

    Raises ValueError, IndexError, OverflowError or struct.error where it is no whole stream.
    """
    return (_declared(*block) for block in _stream_blocks(content))


def _declared(header: memoryview, body: memoryview) -> Declared:
    message: int = struct.unpack_from("<I", header)[0]
    kind = _scalar(header, message, 1, "<B")
    if kind not in (2, 3):  # a dictionary batch, a record batch
        return Declared(0, 0)
    batch = _child(header, message, 2)
    if kind == 2:
        batch = _child(header, batch, 1)
    rows = _scalar(header, batch, 0, "<q")
    if rows < 0:
        raise ValueError
    start, count = _vector(header, batch, 2)
    buffers = np.frombuffer(header, dtype="<i8", count=2 * count, offset=start).reshape(-1, 2)
    is_compressed = _field(header, batch, 3) is not None
    total = 0
    for offset, length in buffers.tolist():
        if offset < 0 or length < 0:
            raise ValueError
        size = length
        if is_compressed and length >= 8:
            unpacked: int = struct.unpack_from("<q", body, offset)[0]
            size = length if unpacked < 0 else unpacked  # -1: this one is not compressed
        total += size
    return Declared(rows if kind == 3 else 0, max(total, rows * _SMALLEST_VALUE))


def _file_blocks(content: memoryview) -> Iterator[tuple[memoryview, memoryview]]:
    """Yield header and body of every batch that the footer names."""
    length = struct.unpack_from("<i", content, len(content) - 10)[0]
    footer = content[len(content) - 10 - length : len(content) - 10]
    table: int = struct.unpack_from("<I", footer)[0]
    for field in (2, 3):  # dictionaries, record batches
        start, count = _vector(footer, table, field)
        for index in range(count):
            offset, metadata, body = struct.unpack_from("<qi4xq", footer, start + 24 * index)
            if min(offset, metadata, body) < 0 or offset + metadata + body > len(content):
                raise ValueError
            header = content[offset : offset + metadata]
            skipped = 8 if bytes(header[:4]) == b"\xff\xff\xff\xff" else 4
            yield header[skipped:], content[offset + metadata : offset + metadata + body]


def _stream_blocks(content: memoryview) -> Iterator[tuple[memoryview, memoryview]]:
    """Yield header and body of every message of a stream."""
    reader: Any = pa.ipc.MessageReader.open_stream(pa.py_buffer(content))
    while True:
        try:
            message = reader.read_next_message()
        except StopIteration:
            return
        except (pa.ArrowException, OSError):
            raise ValueError from None
        yield memoryview(message.metadata), memoryview(message.body or b"")


# --- the little of FlatBuffers that is needed: tables, scalars, vectors ------------------


def _field(buffer: memoryview, table: int, number: int) -> int | None:
    """Return where a table's field is, or None where it has its default."""
    virtual = table - struct.unpack_from("<i", buffer, table)[0]
    size = struct.unpack_from("<H", buffer, virtual)[0]
    if 4 + 2 * number >= size:
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
    offset: int = struct.unpack_from("<I", buffer, place)[0]
    return place + offset


def _vector(buffer: memoryview, table: int, number: int) -> tuple[int, int]:
    """Return where a vector's first element is, and how many there are."""
    if _field(buffer, table, number) is None:
        return 0, 0
    start = _child(buffer, table, number)
    return start + 4, struct.unpack_from("<I", buffer, start)[0]
