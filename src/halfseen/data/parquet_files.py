"""Parquet within bounds: what a few bytes of it can stand for is known before it is written out.

A text that is repeated is stored once, so texts are read as dictionaries where that matters,
measured, and only then written out row by row. Parquet does not check that its texts are UTF-8;
this does.

Nothing here asks for the metadata of a column chunk: where they are damaged, pyarrow does not raise
but ends the process. Reading such a chunk raises.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from halfseen.data import arrow_files
from halfseen.data.parquet_pages import CODED, REPEATING, text_pages
from halfseen.data.values import check_text_bytes, decoded, is_text
from halfseen.errors import InputError

_ENOUGH = arrow_files.LARGEST_BATCH // 4
"""Bytes of texts beyond which fewer rows are read at once: pyarrow holds them more than once."""


def read_batches(path: Path, group: int, columns: Sequence[str], rows: int) -> Iterator[Any]:
    """Yield record batches of at most so many rows of one row group."""
    metadata = pa.parquet.read_metadata(path)
    schema = pa.parquet.read_schema(path)
    for name in columns:
        kind = schema.field(name).type
        if pa.types.is_nested(kind):  # refused before a row that is a very long list is read
            decoded(pa.array([], kind), name, str(path))
    row = 1 + sum(metadata.row_group(before).num_rows for before in range(group))
    for batch in _batches(path, group, columns, *_plan(path, group, columns, rows)):
        yield _written_out(batch, path, row)
        row += batch.num_rows


def _plan(path: Path, group: int, columns: Sequence[str], rows: int) -> tuple[int, list[str]]:
    """Return how many rows are read at once, and which texts as a dictionary.

    Nothing that is read at once unpacks to more than
    :data:`~halfseen.data.arrow_files.LARGEST_BATCH`.
    A dictionary holds a repeated text once, and is slow where most texts differ: there it was
    given up by the writer, after a first page that shows how long its texts are.
    """
    most, dictionaries = arrow_files.LARGEST_BATCH, []
    for name, pages in text_pages(path, group).items():
        if name not in columns:
            continue
        unpacked = sum(size for _, size in pages.pages)
        if CODED & set(pages.encodings):
            is_plain = bool(set(pages.encodings) - CODED)
            given_up = is_plain and pages.encodings[0] in CODED
            longest = _longest(path, group, name) if given_up else most
            if longest * rows + pages.largest(rows) > most:
                if is_plain and unpacked > most:
                    raise _too_large(name, path, unpacked)
                dictionaries.append(name)
        elif REPEATING in pages.encodings:
            rows = min(rows, max(1, most // max(1, unpacked)))
        while name not in dictionaries and rows > 1 and pages.largest(rows) > _ENOUGH:
            rows //= 2
        if name not in dictionaries and pages.largest(rows) > most:
            raise _too_large(name, path, pages.largest(rows))
    return rows, dictionaries


def _longest(path: Path, group: int, name: str) -> int:
    """Return the bytes of the longest text in a column's dictionary, which the first row brings."""
    values = next(_batches(path, group, [name], 1, [name])).column(0)
    return int(pc.max(pc.binary_length(values.dictionary.cast(pa.large_binary()))).as_py() or 0)


def _too_large(name: str, path: Path, size: int) -> InputError:
    return InputError(
        f"Column {name!r} of {path} holds texts that unpack to {size:,} bytes; at most "
        f"{arrow_files.LARGEST_BATCH:,} are read at once. Texts must be short names of categories."
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


def _written_out(batch: Any, path: Path, first_row: int) -> Any:
    """Return a batch with plain texts, which are UTF-8 and not too many bytes."""
    columns = []
    for name, values in zip(batch.schema.names, batch.columns, strict=True):
        try:
            values.validate(full=True)
        except pa.ArrowInvalid:
            row = _first_not_utf8(values)
            if row is None:
                raise
            raise InputError(
                f"Column {name!r} of {path} holds a text in row {row + first_row} that is not "
                "UTF-8; write the file anew with texts in UTF-8."
            ) from None
        if pa.types.is_dictionary(values.type):
            check_text_bytes(values, name, str(path))
            values = values.dictionary_decode()
        columns.append(values)
    return pa.record_batch(columns, names=batch.schema.names)


def _first_not_utf8(values: Any) -> int | None:
    """Return the place of the first text that is no UTF-8, in a column of texts."""
    places = range(len(values))
    if pa.types.is_dictionary(values.type):
        places, values = values.indices.to_pylist(), values.dictionary
    if not is_text(values.type):
        return None
    wrong = set()
    for place, text in enumerate(values.cast(pa.large_binary()).to_pylist()):
        try:
            (text or b"").decode("utf-8")
        except UnicodeDecodeError:
            wrong.add(place)
    return next((row for row, place in enumerate(places) if place in wrong), None)
