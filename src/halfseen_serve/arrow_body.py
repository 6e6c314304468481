"""Arrow streams from strangers: what is declared is checked before anything is expanded."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa

from halfseen.data.arrow_columns import has_value, text_bytes
from halfseen.data.untrusted_files import declared_batches
from halfseen.data.values import composed_name
from halfseen_serve.errors import RequestError
from halfseen_serve.json_body import Choose, RequestTable
from halfseen_serve.limits import Limits

ARROW = "application/vnd.apache.arrow.stream"


def read_arrow(body: bytearray, choose: Choose, limits: Limits) -> RequestTable:
    """Return the rows of an Arrow IPC stream.

    A few bytes of Arrow can stand for a great many: compressed buffers, a column of nulls, a
    dictionary with one long text. So rows and bytes are first added up from the headers, and
    texts are measured before they are written out. Every value is validated, because a false
    offset would otherwise be followed out of the buffer.
    """
    try:
        _check_declared(body, limits)
        reader = pa.ipc.open_stream(body)
        schema_names = [composed_name(name) for name in reader.schema.names]
        given = [batch.rename_columns(schema_names) for batch in reader]
        scorer = choose(lambda name: _has_value(given, name))
        names = [column.name for column in scorer.given(schema_names)]
        places = [_place(schema_names, name) for name in names]
        batches = [
            pa.RecordBatch.from_arrays([batch.column(place) for place in places], names=names)
            for batch in given
        ]
        for batch in batches:
            batch.validate(full=True)
        limits.check_unpacked(sum(text_bytes(c) for batch in batches for c in batch.columns))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _unreadable(str(error).strip().split("\n")[0].rstrip(".")) from error
    ignored = [name for name in schema_names if name not in set(names)]
    return RequestTable("columns", pa.Table.from_batches(batches), ignored, scorer)


def write_arrow(columns: dict[str, Any]) -> bytes:
    table = pa.table(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _check_declared(body: bytearray, limits: Limits) -> None:
    try:
        declared = list(declared_batches(memoryview(body)))
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise _unreadable("its headers point outside of it, or it ends too soon") from error
    limits.check_rows(sum(batch.rows for batch in declared))
    limits.check_unpacked(sum(batch.bytes for batch in declared))


def _has_value(batches: list[Any], name: str) -> bool:
    for batch in batches:
        if name not in batch.schema.names:
            return False
        column = batch.column(_place(batch.schema.names, name))
        column.validate(full=True)
        if has_value(column):
            return True
    return False


def _place(names: list[str], name: str) -> int:
    if (times := names.count(name)) > 1:
        raise RequestError(422, f"The request has column {name!r} {times} times.", name)
    return names.index(name)


def _unreadable(reason: str) -> RequestError:
    return RequestError(400, f"The body is not a readable Arrow IPC stream: {reason}.")
