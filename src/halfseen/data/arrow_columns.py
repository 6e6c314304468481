"""Columns of Arrow, whatever their type, as plain arrays that are no larger than they look."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfseen.errors import InputError

LARGEST_BATCH = 512 * 2**20
"""Bytes that what is read at once may unpack to."""


def decoded(column: Any, name: str, where: str) -> Any:
    """Return a column as one plain array, or say why its type is of no use."""
    values = one_array(column)
    check_text_bytes(values, name, where)
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if pa.types.is_null(kind) or is_text(kind) or pa.types.is_boolean(kind):
        return plain_array(values)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return plain_array(values)
    if pa.types.is_duration(kind):
        says = "lengths of time: make them numbers (pandas: .dt.total_seconds())"
    elif "period" in str(kind):
        says = "periods: make them dates (pandas: .dt.to_timestamp())"
    elif pa.types.is_temporal(kind):
        raise InputError(dates_sentence(name, where, f" ({kind})", pa.types.is_time(kind)))
    else:
        says = f"{kind} values; a table needs numbers, texts or booleans. Flatten it"
    raise InputError(
        f"Column {name!r} of {where} holds {says}, or drop it (--drop {name}; in Python "
        f"drop=[{name!r}])."
    )


def dates_sentence(name: str, where: str, kind: str, are_times: bool) -> str:
    """Return what is said of a column of dates that nobody has named the parts of."""
    parts = ["hour"] if are_times else ["month", "weekday"]
    return (
        f"Column {name!r} of {where} holds dates or times{kind}, which a model cannot use "
        f"as they are: name the parts that mean something on both sides (--dates {name}="
        f"{','.join(parts)}; in Python dates={{{name!r}: {parts}}}), or drop it (--drop "
        f"{name}; in Python drop=[{name!r}])."
    )


def one_array(column: Any) -> Any:
    """Return a column in one piece."""
    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(values, pa.ChunkedArray):  # no chunk at all, or too many bytes for one
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.nulls(0)
    return values


def plain_array(column: Any) -> Any:
    """Return a column in one piece, without a dictionary."""
    values = one_array(column)
    if not pa.types.is_dictionary(values.type):
        return values
    if pa.types.is_string_view(values.type.value_type):  # Arrow cannot decode these
        known = values.dictionary.cast(pa.string())
        values = pa.DictionaryArray.from_arrays(values.indices, known)
    return values.dictionary_decode()


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is one of the text types."""
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def has_value(column: Any) -> bool:
    """Whether a column is not entirely empty: nulls, NaN and empty texts are nothing."""
    values = plain_array(column)
    empty = pc.is_null(values, nan_is_null=True)
    if is_text(values.type):
        empty = pc.or_kleene(empty, pc.equal(values.cast(pa.large_string()), ""))
    return not pc.all(empty, min_count=0).as_py()


def check_text_bytes(values: Any, name: str, where: str) -> None:
    """Refuse a column that is small only because its rows share their texts."""
    size = text_bytes(values)
    if size > LARGEST_BATCH:
        raise InputError(
            f"Column {name!r} of {where} repeats long texts: {len(values):,} rows would take "
            f"{size:,} bytes. Texts must be short names of categories."
        )


def text_bytes(values: Any) -> int:
    """Return what shared texts take once each row has its own copy."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        shared = kind.value_type
        if not (is_text(shared) or pa.types.is_binary(shared) or pa.types.is_large_binary(shared)):
            return 0
        lengths = pc.binary_length(values.dictionary.cast(pa.large_binary()))
        return int(pc.sum(lengths.cast(pa.int64()).take(values.indices)).as_py() or 0)
    if pa.types.is_string_view(kind) and len(values):
        stop = values.offset + len(values)
        views = np.frombuffer(values.buffers()[1], dtype=np.int32, count=4 * stop).reshape(-1, 4)
        return int(views[values.offset :, 0].astype(np.int64).sum())
    return 0


def without_empty(texts: Any) -> Any:
    """Return texts with null for the empty one: CSV and ONNX cannot tell it from a gap."""
    empty = pc.equal(texts, "")
    if not pc.any(empty).as_py():
        return texts
    return pc.if_else(empty, pa.scalar(None, pa.string()), texts)


def composed(texts: Any) -> Any:
    """Return texts in Unicode's composed form (NFC), the one that names are compared in."""
    if pc.all(pc.string_is_ascii(texts), min_count=0).as_py():
        return texts
    return pc.utf8_normalize(texts, form="NFC")
