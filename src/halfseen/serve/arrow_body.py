"""Arrow streams from strangers: what is declared is checked before anything is expanded."""

from __future__ import annotations

import struct
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from halfseen.serve.errors import RequestError
from halfseen.serve.limits import Limits

__all__ = ["ARROW", "read_arrow", "write_arrow"]

ARROW = "application/vnd.apache.arrow.stream"


def read_arrow(body: bytes, needed: list[str], limits: Limits) -> tuple[Any, list[str]]:
    """Return the needed columns of an Arrow IPC stream as a table, and the names it ignores.

    A few bytes of Arrow can stand for a great many: compressed buffers, a column of nulls, a
    dictionary with one long text. Compression is refused, rows are counted from the metadata
    alone, and texts are measured before they are written out. Every value is validated, because
    a false offset would otherwise be followed out of the buffer.
    """
    try:
        rows = sum(_declared_rows(message) for message in _messages(body))
        limits.check_rows(rows)
        reader = pa.ipc.open_stream(body)
        _check_names(reader.schema.names, needed)
        positions = [reader.schema.get_field_index(name) for name in needed]
        for name, position in zip(needed, positions, strict=True):
            _check_dictionary(reader.schema.field(position).type, name)
        batches = [
            pa.RecordBatch.from_arrays([batch.column(p) for p in positions], names=needed)
            for batch in reader
        ]
        for batch in batches:
            batch.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, struct.error) as error:
        reason = str(error).strip().split("\n")[0].rstrip(".")
        raise RequestError(
            400, f"The body is not a readable Arrow IPC stream: {reason}."
        ) from error
    texts = sum(_text_bytes(column) for batch in batches for column in batch.columns)
    if texts > 4 * limits.max_bytes:
        raise RequestError(
            413,
            f"The texts of the request take more than {4 * limits.max_bytes:,} bytes when written "
            "out, the limit of this server; send fewer rows at a time.",
        )
    wanted = set(needed)
    ignored = [name for name in reader.schema.names if name not in wanted]
    return pa.Table.from_batches(batches), ignored


def write_arrow(columns: dict[str, Any]) -> bytes:
    """Return columns as an Arrow IPC stream."""
    table = pa.table(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def _messages(body: bytes) -> Any:
    reader = pa.ipc.MessageReader.open_stream(pa.py_buffer(body))
    while True:
        try:
            yield reader.read_next_message()
        except StopIteration:
            return


def _declared_rows(message: Any) -> int:
    """Return how many rows a message brings; refuse it when its buffers are compressed.

    pyarrow shows neither without decompressing, so both are read from the flatbuffer that
    Arrow's Message.fbs describes.
    """
    metadata = message.metadata.to_pybytes()
    header = _follow(metadata, _field(metadata, _root(metadata), 2))
    if message.type == "dictionary":
        header = _follow(metadata, _field(metadata, header, 1))
    elif message.type != "record batch":
        return 0
    if _field(metadata, header, 3) is not None:
        raise RequestError(
            415,
            "The Arrow stream has compressed buffers, which are not accepted because a few bytes "
            "can stand for a great many; write it without compression.",
        )
    length = _field(metadata, header, 0)
    if message.type == "dictionary" or length is None:
        return 0
    rows = int(struct.unpack_from("<q", metadata, length)[0])
    if rows < 0:
        raise ValueError("a batch of negative length")
    return rows


def _root(buffer: bytes) -> int:
    return int(struct.unpack_from("<I", buffer, 0)[0])


def _field(buffer: bytes, table: int, index: int) -> int | None:
    """Return where a flatbuffer table keeps a field, or None where it has the default."""
    (back,) = struct.unpack_from("<i", buffer, table)
    (size,) = struct.unpack_from("<H", buffer, table - back)
    place = 4 + 2 * index
    if place >= size:
        return None
    (offset,) = struct.unpack_from("<H", buffer, table - back + place)
    return table + offset if offset else None


def _follow(buffer: bytes, place: int | None) -> int:
    if place is None:
        raise ValueError("a message without a header")
    return place + int(struct.unpack_from("<I", buffer, place)[0])


def _check_names(names: list[str], needed: list[str]) -> None:
    count = Counter(names)
    for name in needed:
        if count[name] > 1:
            raise RequestError(422, f"The request has column {name!r} {count[name]} times.", name)
        if not count[name]:
            raise RequestError(
                422,
                f"The request lacks column {name!r}, which the model needs; give null where a "
                "value is not known.",
                name,
            )


def _check_dictionary(kind: Any, name: str) -> None:
    """Let a dictionary stand for texts only: decoding other types could multiply their bytes."""
    if pa.types.is_dictionary(kind) and not _is_text(kind.value_type):
        raise RequestError(
            422,
            f"Column {name!r} is a dictionary of {kind.value_type} values; a dictionary may hold "
            "texts only.",
            name,
        )


def _is_text(kind: Any) -> bool:
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _text_bytes(column: Any) -> int:
    """Return how many bytes the texts of a column take when each is written out."""
    if pa.types.is_dictionary(column.type):
        lengths = _lengths(column.dictionary)
        indices = column.indices.drop_null().to_numpy(zero_copy_only=False)
        return int(lengths[indices].sum())
    return int(_lengths(column).sum()) if _is_text(column.type) else 0


def _lengths(texts: Any) -> Any:
    """Return the bytes of each text, from the offsets or views alone."""
    stop = texts.offset + len(texts)
    buffer = texts.buffers()[1]
    if buffer is None or len(texts) == 0:
        return np.zeros(len(texts), dtype=np.int64)
    if pa.types.is_string_view(texts.type):
        views = np.frombuffer(buffer, dtype=np.int32, count=4 * stop).reshape(-1, 4)
        return views[texts.offset :, 0].astype(np.int64)
    kind = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    offsets = np.frombuffer(buffer, dtype=kind, count=stop + 1)[texts.offset :]
    return np.diff(offsets).astype(np.int64)
