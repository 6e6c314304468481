"""Columns to inputs, by the numbers in a schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from halfseen.arrays import Floats, Matrix
from halfseen.data.dates import date_names, date_parts
from halfseen.data.schema import CategoryColumn, NumberColumn, TableSchema
from halfseen.data.values import Unread, as_categories, numbers_of
from halfseen.errors import InputError


@dataclass(frozen=True)
class ReadRows:
    """Some rows as a schema reads them."""

    columns: Mapping[str, Any]
    """Numbers with NaN for a gap, texts with null for one."""
    rows: int
    first_row: int
    """The number of the first."""
    unread: Unread
    """What could not be read, and is a gap."""


def read_rows(
    schema: TableSchema,
    table: Any,
    *,
    complete: bool = False,
    where: str = "the table",
    first_row: int = 1,
) -> ReadRows:
    """Return the rows of a record batch or table as the schema has them, each by itself.

    Columns may stand in any order, beside others. Unless rows are `complete`, the missing block is
    not looked at. Messages call the table `where`, and count its rows from `first_row`.
    """
    found: dict[str, Any] = {}
    unread = Unread()
    read = [column for column in schema.columns if complete or column.role == "observed"]
    made = date_names(schema.dates)
    for name in dict.fromkeys(made[each.name][0] for each in read if each.name in made):
        values, of = _named(table, name, where), schema.dates[name]
        parts = date_parts(values, name, of, where=where, first_row=first_row, unread=unread)
        found |= {f"{name} {part}": numbers for part, numbers in parts.items()}
    for column in read:
        if column.name in made:
            continue
        values = _named(table, column.name, where)
        if isinstance(column, NumberColumn):
            found[column.name] = numbers_of(
                column, values, where=where, first_row=first_row, unread=unread
            )
        else:
            found[column.name] = categories_of(column, values, where=where)
    return ReadRows(found, table.num_rows, first_row, unread)


def categories_of(column: CategoryColumn, values: Any, *, where: str) -> Any:
    """Return a column of a schema as texts."""
    return as_categories(values, column.name, where=where, stored=column.values, known=column.known)


def inputs_of(schema: TableSchema, read: ReadRows) -> Matrix:
    """Return the inputs of rows that were read, one row each, in the order of the schema.

    Those of columns that are not there are 0, as those of the missing block are on the target.
    """
    inputs = np.zeros((read.rows, len(schema.inputs)), dtype=np.float32)
    start = 0
    for column in schema.columns:
        stop = start + len(column.inputs)
        values = read.columns.get(column.name)
        if values is not None:
            block = inputs[:, start:stop]
            if isinstance(column, NumberColumn):
                gaps = np.isnan(values)
                filled = np.where(gaps, column.fill, values)
                scaled = (signed_log(filled) if column.log else filled) - column.mean
                block[:, 0] = np.clip(scaled / column.scale, -schema.clip, schema.clip)
            else:
                gaps = _numpy(values.is_null())
                known = pa.array(column.categories, pa.string())
                found = pc.index_in(values.fill_null(column.fill), value_set=known)
                position = _numpy(found.fill_null(len(known))).astype(np.int64)
                places = np.flatnonzero(column.other | (position < len(known)))
                block[places, position[places]] = 1.0
            if column.indicator:
                block[:, -1] = gaps
        start = stop
    return inputs


def transform(schema: TableSchema, table: Any, **how: Any) -> Matrix:
    """Return the inputs of a record batch or table; `how` as for :func:`read_rows`."""
    return inputs_of(schema, read_rows(schema, table, **how))


def signed_log(values: Floats) -> Floats:
    r"""Return sign(v) log(1 + \|v\|), which leaves small numbers as they are."""
    logged: Floats = np.sign(values) * np.log1p(np.abs(values))
    return logged


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
