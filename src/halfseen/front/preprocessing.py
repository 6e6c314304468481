"""Raw columns to network inputs, by the numbers in a schema."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from halfseen.arrays import Floats, Matrix
from halfseen.errors import InputError
from halfseen.front.ipc import LARGEST_BATCH
from halfseen.front.schema import NumberColumn, TableSchema


def transform(
    schema: TableSchema,
    table: Any,
    *,
    complete: bool = False,
    where: str = "the table",
    first_row: int = 1,
) -> Matrix:
    """Return the inputs of a record batch or table, one row each, in the order of the schema.

    Columns may stand in any order, beside others. Unless rows are `complete`, the missing block is
    not looked at, and its inputs are 0, as on the target. Messages call the table `where`, and
    count its rows from `first_row`.
    """
    inputs = np.zeros((table.num_rows, len(schema.inputs)), dtype=np.float32)
    start = 0
    for column in schema.columns:
        stop = start + len(column.inputs)
        if complete or column.role == "observed":
            values = _named(table, column.name, where)
            block = inputs[:, start:stop]
            if isinstance(column, NumberColumn):
                numbers = as_numbers(
                    values, column.name, where=where, first_row=first_row, strays=column.strays
                )
                gaps = np.isnan(numbers)
                filled = np.where(gaps, column.fill, numbers)
                scaled = (signed_log(filled) if column.log else filled) - column.mean
                block[:, 0] = np.clip(scaled / column.scale, -schema.clip, schema.clip)
            else:
                texts = as_categories(values, column.name, where=where)
                gaps = _numpy(texts.is_null())
                known = pa.array(column.categories, pa.string())
                found = pc.index_in(texts.fill_null(column.fill), value_set=known)
                position = _numpy(found.fill_null(len(known))).astype(np.int64)
                rows = np.flatnonzero(column.other | (position < len(known)))
                block[rows, position[rows]] = 1.0
            if column.indicator:
                block[:, -1] = gaps
        start = stop
    return inputs


def as_numbers(
    column: Any, name: str, *, where: str, first_row: int = 1, strays: bool = False
) -> Floats:
    """Return a column as numbers, NaN where it has a gap.

    With `strays`, texts that are no numbers are gaps; otherwise they are refused.
    """
    values = decoded(column, name, where)
    if is_text(values.type) and strays:
        values = pc.if_else(are_numbers(values), values, pa.scalar(None, values.type))
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    try:
        values = values.cast(pa.float64(), safe=False)
    except pa.ArrowInvalid:
        texts = enumerate(values.to_pylist(), first_row)
        row, text = next((n, t) for n, t in texts if t is not None and not is_number_text(t))
        shown = repr(text) if len(repr(text)) <= 40 else f"{repr(text)[:36]}...'"
        raise InputError(
            f"Column {name!r} of {where} holds {shown} in row {row}, where a number is needed."
        ) from None
    numbers: Floats = _numpy(values).astype(np.float64)
    infinite = np.isinf(numbers)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise InputError(
            f"Column {name!r} of {where} holds an infinite value in row {row + first_row}; "
            "replace it by a finite number, or leave it empty."
        )
    return numbers


def as_categories(column: Any, name: str, *, where: str) -> Any:
    """Return a column as texts, null where it has a gap; 3 and 3.0 are the same category.

    The empty text is a gap in every format, because CSV and ONNX cannot tell it from one.

    Examples
    --------
    >>> as_categories(pa.array([3.0, 0.5, None]), "thal", where="a.csv").to_pylist()
    ['3', '0.5', None]
    >>> as_categories(pa.array(["x", ""]), "shop", where="a.parquet").to_pylist()
    ['x', None]
    """
    values = decoded(column, name, where)
    kind = values.type
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers = values.cast(pa.float64(), safe=False)
        numbers = pc.if_else(pc.is_nan(numbers), pa.scalar(None, pa.float64()), numbers)
        whole = pc.and_(pc.equal(pc.round(numbers), numbers), pc.less(pc.abs(numbers), 2.0**53))
        return pc.if_else(
            whole,
            pc.if_else(whole, numbers, 0.0).cast(pa.int64(), safe=False).cast(pa.string()),
            numbers.cast(pa.string()),
        )
    texts = values.cast(pa.string())
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)


def decoded(column: Any, name: str, where: str) -> Any:
    """Return a column as one plain array, or say why its type is of no use."""
    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(values, pa.ChunkedArray):  # no chunk at all, or too many bytes for one
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.nulls(0)
    check_text_bytes(values, name, where)
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if pa.types.is_temporal(kind) and not pa.types.is_duration(kind):
        parts = ["hour"] if pa.types.is_time(kind) else ["month", "weekday"]
        raise InputError(
            f"Column {name!r} of {where} holds dates or times ({kind}), which a model cannot use "
            f"as they are: name the parts that mean something on both sides (--dates {name}="
            f"{','.join(parts)}; in Python dates={{{name!r}: {parts}}}), or drop it (--drop "
            f"{name}; in Python drop=[{name!r}])."
        )
    if not (is_number(kind) or is_text(kind) or pa.types.is_null(kind)):
        raise InputError(
            f"Column {name!r} of {where} holds {kind} values; a table needs numbers, texts or "
            f"booleans. Flatten it, or drop it (--drop {name}; in Python drop=[{name!r}])."
        )
    if not pa.types.is_dictionary(values.type):
        return values
    if pa.types.is_string_view(kind):  # Arrow cannot decode a dictionary of these
        known = values.dictionary.cast(pa.string())
        values = pa.DictionaryArray.from_arrays(values.indices, known)
    return values.dictionary_decode()


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is one of the text types."""
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def is_number(kind: Any) -> bool:
    """Whether an Arrow type holds numbers or booleans."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
    )


def are_numbers(texts: Any) -> Any:
    """Say of each text whether it can be read as a number."""
    return pc.match_substring_regex(texts, r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$")


def is_number_text(text: str) -> bool:
    """Whether a text can be read as a number."""
    try:
        pa.scalar(text).cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def signed_log(values: Floats) -> Floats:
    r"""Return sign(v) log(1 + \|v\|), which leaves small numbers as they are."""
    logged: Floats = np.sign(values) * np.log1p(np.abs(values))
    return logged


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
        lengths = views[values.offset :, 0]
        return int(lengths.astype(np.int64).sum())
    return 0


def _named(table: Any, name: str, where: str) -> Any:
    positions = table.schema.get_all_field_indices(name)
    if not positions:
        raise InputError(f"Column {name!r}, which the model needs, is not in {where}.")
    if len(positions) > 1:
        raise InputError(f"Column {name!r} is in {where} {len(positions)} times; keep one.")
    return table.column(positions[0])


def _numpy(values: Any) -> npt.NDArray[Any]:
    array: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return array
