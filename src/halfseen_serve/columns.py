"""What a request may hold in each column: JSON's types, and words for them."""

from __future__ import annotations

from types import NoneType
from typing import Any, NamedTuple

import pyarrow as pa

from halfseen.data import CategoryColumn, NumberColumn, TableSchema


class CellType(NamedTuple):
    """What JSON may hold beside null: Python types, words and a JSON Schema that say the same."""

    types: frozenset[type]
    words: str
    json_schema: dict[str, Any]
    arrow_type: Any


def _cell_type(kind: type, words: str, name: str, arrow_type: Any) -> CellType:
    return CellType(frozenset({kind, NoneType}), words, {"type": [name, "null"]}, arrow_type)


DATE_WORDS = "a text such as 2024-05-17 or 2024-05-17T13:45:00+02:00"
CELL_TYPES = {
    "text": _cell_type(str, "a text", "string", pa.string()),
    "date": _cell_type(str, DATE_WORDS, "string", pa.string()),
    "number": _cell_type(float, "a number", "number", pa.float64()),
    "boolean": _cell_type(bool, "true or false", "boolean", pa.bool_()),
    "flag": CellType(  # tables also write booleans as 0 and 1; the scorer refuses other numbers
        frozenset({bool, float, NoneType}),
        "true, false, 0 or 1",
        {"enum": [True, False, 0, 1, None]},
        pa.float64(),
    ),
}


class RequestColumn(NamedTuple):
    """A column that each request must have."""

    name: str
    kind: str
    cell: CellType
    categories: tuple[str, ...] | None = None


def request_columns(schema: TableSchema) -> tuple[RequestColumn, ...]:
    """Return what a row of a request must have: dates instead of the parts that are observed."""
    observed = {column.name: column for column in schema.observed}
    return tuple(_request_column(name, observed.get(name)) for name in schema.cells())


def _request_column(name: str, column: NumberColumn | CategoryColumn | None) -> RequestColumn:
    if column is None:
        return RequestColumn(name, "date", CELL_TYPES["date"])
    if isinstance(column, CategoryColumn):
        return RequestColumn(name, column.kind, CELL_TYPES[column.values], column.categories)
    return RequestColumn(
        name, column.kind, CELL_TYPES["flag" if column.kind == "boolean" else "number"]
    )
