"""Arrow streams from strangers: what is declared is checked before anything is expanded."""

from __future__ import annotations

import struct
from collections import Counter
from typing import Any

import pyarrow as pa

from halfseen.front.ipc import declared_batches
from halfseen.front.preprocessing import text_bytes
from halfseen.serve.errors import RequestError
from halfseen.serve.limits import Limits

__all__ = ["ARROW", "read_arrow", "write_arrow"]

ARROW = "application/vnd.apache.arrow.stream"


def read_arrow(body: bytes, needed: list[str], limits: Limits) -> tuple[Any, list[str]]:
    """Return the needed columns of an Arrow IPC stream as a table, and the names it ignores.

    A few bytes of Arrow can stand for a great many: compressed buffers, a column of nulls, a
    dictionary with one long text. So rows and bytes are first added up from the headers, and
    texts are measured before they are written out. Every value is validated, because a false
    offset would otherwise be followed out of the buffer.
    """
    try:
        _check_declared(body, limits)
        reader = pa.ipc.open_stream(body)
        _check_names(reader.schema.names, needed)
        positions = [reader.schema.get_field_index(name) for name in needed]
        batches = [
            pa.RecordBatch.from_arrays([batch.column(p) for p in positions], names=needed)
            for batch in reader
        ]
        for batch in batches:
            batch.validate(full=True)
        limits.check_unpacked(sum(text_bytes(c) for batch in batches for c in batch.columns))
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).strip().split("\n")[0].rstrip(".")
        raise _unreadable(reason) from error
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


def _check_declared(body: bytes, limits: Limits) -> None:
    rows = size = 0
    try:
        for batch in declared_batches(memoryview(body)):
            rows += batch.rows
            size += batch.bytes
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise _unreadable("its headers point outside of it, or it ends too soon") from error
    limits.check_rows(rows)
    limits.check_unpacked(size)


def _unreadable(reason: str) -> RequestError:
    return RequestError(400, f"The body is not a readable Arrow IPC stream: {reason}.")


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
