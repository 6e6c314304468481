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
from halfseen.front.schema import CategoryColumn, NumberColumn, TableSchema


def transform(
    schema: TableSchema,
    table: Any,
    *,
    complete: bool = False,
    where: str = "the table",
    first_row: int = 1,
) -> Matrix:
    """Return the inputs of a record batch or table, one row each, in the order of the schema.

    Parameters
    ----------
    schema
        Which columns, and how each is prepared.
    table
        A ``pyarrow.RecordBatch`` or ``Table`` with the schema's columns in any order, and maybe
        others.
    complete
        Whether the columns of the missing block are read too. Otherwise they may be absent, and
        their inputs are 0, as on the target.
    where, first_row
        What messages call the table, and the number of its first row.

    Examples
    --------
    >>> schema = TableSchema(
    ...     columns=(
    ...         NumberColumn(kind="count", name="visits", role="observed", fill=1.0,
    ...                      indicator=True, log=False, mean=2.0, scale=2.0),
    ...         CategoryColumn(kind="categorical", name="shop", role="observed", fill="a",
    ...                        indicator=False, categories=("a", "b"), other=True,
    ...                        values="text"),
    ...     ),
    ...     label="click", classes=(False, True))
    >>> batch = pa.record_batch({"shop": ["b", "z", None], "visits": [4, None, 2]})
    >>> transform(schema, batch)
    array([[ 1. ,  0. ,  0. ,  1. ,  0. ],
           [-0.5,  1. ,  0. ,  0. ,  1. ],
           [ 0. ,  0. ,  1. ,  0. ,  0. ]], dtype=float32)
    """
    inputs = np.zeros((table.num_rows, len(schema.inputs)), dtype=np.float32)
    start = 0
    for column in schema.columns:
        stop = start + len(column.inputs)
        if complete or column.role == "observed":
            values = _named(table, column.name, where)
            block = inputs[:, start:stop]
            if isinstance(column, NumberColumn):
                strays = column.strays
                numbers = as_numbers(
                    values, column.name, where=where, first_row=first_row, strays=strays
                )
                _write_number(block, column, numbers, schema.clip)
            else:
                _write_category(block, column, as_categories(values, column.name, where=where))
        start = stop
    return inputs


def has_missing_block(schema: TableSchema, table: Any) -> npt.NDArray[np.bool_]:
    """Say for each row whether every column of the missing block has a value."""
    complete = np.ones(table.num_rows, dtype=bool)
    for column in schema.missing:
        if column.name not in table.schema.names:
            return np.zeros(table.num_rows, dtype=bool)
        empty = pc.is_null(table.column(column.name), nan_is_null=True)
        complete &= ~_numpy(empty).astype(bool)
    return complete


def as_numbers(
    column: Any, name: str, *, where: str, first_row: int = 1, strays: bool = False
) -> Floats:
    """Return a column as numbers, NaN where it has a gap.

    With `strays`, texts that are no numbers are gaps; otherwise they are refused.

    Examples
    --------
    >>> as_numbers(pa.array(["63", None, "?x"]), "age", where="a.csv")
    Traceback (most recent call last):
    halfseen.errors.InputError: Column 'age' of a.csv holds '?x' in row 3, where a number is \
needed.
    """
    values = decoded(column, name, where)
    kind = values.type
    if pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    elif is_text(kind):
        if strays:
            values = pc.if_else(are_numbers(values), values, pa.scalar(None, values.type))
        values = _parsed_numbers(values, name, where, first_row)
    if pa.types.is_null(values.type):
        return np.full(len(values), np.nan)
    if values.type != pa.float64():
        values = values.cast(pa.float64(), safe=False)
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


def is_bytes(kind: Any) -> bool:
    """Whether an Arrow type holds bytes of no meaning."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


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
    r"""Return sign(v) log(1 + \|v\|), which leaves small numbers as they are.

    Examples
    --------
    >>> signed_log(np.array([-1.0, 0.0, 99.0])).round(3)
    array([-0.693,  0.   ,  4.605])
    """
    logged: Floats = np.sign(values) * np.log1p(np.abs(values))
    return logged


def _write_number(block: Matrix, column: NumberColumn, values: Floats, clip: float) -> None:
    gaps = np.isnan(values)
    filled = np.where(gaps, column.fill, values)
    if column.log:
        filled = signed_log(filled)
    block[:, 0] = np.clip((filled - column.mean) / column.scale, -clip, clip)
    if column.indicator:
        block[:, -1] = gaps


def _write_category(block: Matrix, column: CategoryColumn, values: Any) -> None:
    gaps = _numpy(values.is_null()).astype(bool)
    filled = values.cast(pa.string()).fill_null(column.fill)
    found = pc.index_in(filled, value_set=pa.array(column.categories, pa.string()))
    position = _numpy(found.fill_null(len(column.categories))).astype(np.int64)
    known = position < len(column.categories)
    rows = np.flatnonzero(known if not column.other else np.ones_like(known))
    block[rows, position[rows]] = 1.0
    if column.indicator:
        block[:, -1] = gaps


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
    if pa.types.is_dictionary(kind) and (is_text(kind.value_type) or is_bytes(kind.value_type)):
        lengths = pc.binary_length(values.dictionary.cast(pa.large_binary()))
        return int(pc.sum(lengths.cast(pa.int64()).take(values.indices)).as_py() or 0)
    if pa.types.is_string_view(kind) and len(values):
        stop = values.offset + len(values)
        views = np.frombuffer(values.buffers()[1], dtype=np.int32, count=4 * stop).reshape(-1, 4)
        lengths = views[values.offset :, 0]
        return int(lengths.astype(np.int64).sum())
    return 0


def _parsed_numbers(values: Any, name: str, where: str, first_row: int) -> Any:
    try:
        return values.cast(pa.float64())
    except pa.ArrowInvalid:
        pass
    for row, text in enumerate(values.to_pylist()):
        if text is not None and not is_number_text(text):
            raise InputError(
                f"Column {name!r} of {where} holds {_short(text)} in row {row + first_row}, where "
                "a number is needed."
            )
    raise AssertionError("some text was not a number")


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


def _short(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= 40 else f"{shown[:36]}...'"
