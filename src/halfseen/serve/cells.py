"""What a request may hold in each column: JSON's types, and words for them."""

from __future__ import annotations

from dataclasses import dataclass
from types import NoneType
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from halfseen.front import CategoryColumn, NumberColumn, TableSchema


@dataclass(frozen=True)
class Date:
    """A column of dates, whose parts the model observes."""

    name: str
    kind: Literal["date"] = "date"


Column = NumberColumn | CategoryColumn | Date


def request_columns(schema: TableSchema) -> tuple[Column, ...]:
    """Return what a row of a request must have."""
    known = {column.name: column for column in schema.observed}
    return tuple(known.get(name) or Date(name) for name in schema.cells())


class CellRule(NamedTuple):
    """What JSON may hold in a column: Python types, words and a JSON Schema that say the same."""

    types: frozenset[type]
    words: str
    schema: dict[str, Any]
    arrow: Any


_FLAG = CellRule(  # tables also write booleans as 0 and 1; the scorer refuses other numbers
    frozenset({bool, float, NoneType}),
    "true, false, 0 or 1",
    {"enum": [True, False, 0, 1, None]},
    pa.float64(),
)
_PLAIN = {
    "text": (str, "a text", "string", pa.string()),
    "number": (float, "a number", "number", pa.float64()),
    "boolean": (bool, "true or false", "boolean", pa.bool_()),
}


def expectation(column: Column) -> CellRule:
    """Return what JSON may hold in a column."""
    if isinstance(column, Date):
        words = "a text such as 2024-05-17 or 2024-05-17T13:45:00+02:00"
        return CellRule(
            frozenset({str, NoneType}), words, {"type": ["string", "null"]}, pa.string()
        )
    if column.kind == "boolean" and isinstance(column, NumberColumn):
        return _FLAG
    values = "number" if isinstance(column, NumberColumn) else column.values
    kind, words, name, arrow = _PLAIN[values]
    return CellRule(frozenset({kind, NoneType}), words, {"type": [name, "null"]}, arrow)
