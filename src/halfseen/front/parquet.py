"""Parquet within bounds: what a few bytes of it can stand for is measured before it is written out.

A text that is repeated is stored once, so texts are read as dictionaries, measured, and only then
written out row by row. Parquet does not check that its texts are UTF-8; this does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from halfseen.errors import InputError
from halfseen.front import ipc
from halfseen.front.preprocessing import check_text_bytes, is_text

__all__ = ["check_chunks", "read_batches"]

_SMALLEST_VALUE = 8  # bytes that one value of a list is reckoned to take at least


def check_chunks(path: Path) -> None:
    """Refuse a file whose column chunks unpack to too many bytes at once."""
    metadata = pa.parquet.read_metadata(path)
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            column = metadata.row_group(group).column(number)
            size = column.total_uncompressed_size
            if metadata.schema.column(number).max_repetition_level:  # a row may be a long list
                size = max(size, _SMALLEST_VALUE * column.num_values)
            if size > ipc.LARGEST_BATCH:
                raise InputError(
                    f"{path} holds a row group in which one column unpacks to {size:,} bytes; "
                    f"at most {ipc.LARGEST_BATCH:,} are read. Write smaller row groups."
                )


def read_batches(path: Path, group: int | None, columns: Sequence[str], rows: int) -> Iterator[Any]:
    """Yield record batches of at most so many rows, of one row group or of all."""
    metadata = pa.parquet.read_metadata(path)
    groups = list(range(metadata.num_row_groups)) if group is None else [group]
    dictionaries = []
    for number in range(metadata.num_columns):
        leaf = metadata.schema.column(number)
        if leaf.physical_type == "BYTE_ARRAY":
            chunks = [metadata.row_group(each).column(number) for each in groups]
            if not any("DELTA" in encoding for chunk in chunks for encoding in chunk.encodings):
                dictionaries.append(leaf.path)
                continue
            # Arrow reads no dictionary of these, and each text may repeat all of the one before.
            size = max(chunk.total_uncompressed_size for chunk in chunks)
            rows = min(rows, max(1, ipc.LARGEST_BATCH // max(1, size)))
    row = 1 + sum(metadata.row_group(before).num_rows for before in range(group or 0))
    # Through a small buffer: otherwise whole column chunks are held.
    options = {"pre_buffer": False, "buffer_size": 2**20, "read_dictionary": dictionaries}
    with pa.parquet.ParquetFile(path, **options) as file:
        for batch in file.iter_batches(
            rows, row_groups=groups, columns=list(columns), use_threads=False
        ):
            yield _written_out(batch, path, row)
            row += batch.num_rows


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
    wrong = {i for i, text in enumerate(values.cast(pa.large_binary())) if not _is_utf8(text)}
    return next((row for row, place in enumerate(places) if place in wrong), None)


def _is_utf8(text: Any) -> bool:
    try:
        (text.as_py() or b"").decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
