"""What a request should hold in each column, in words and as JSON Schema."""

from __future__ import annotations

from typing import Any, NamedTuple

from halfseen.data import CategoryColumn, NumberColumn, TableSchema

WORDS = {
    "text": "a text",
    "date": "a text such as 2024-05-17 or 2024-05-17T13:45:00+02:00",
    "number": "a number",
    "boolean": "true or false",
    "flag": "true, false, 0 or 1",
}


class RequestColumn(NamedTuple):
    """A column that each request must have."""

    name: str
    kind: str
    words: str
    """What a cell should hold; what cannot be read as it is a gap, and raises an alarm."""
    categories: tuple[str, ...] | None = None

    @property
    def json_schema(self) -> dict[str, Any]:
        """What a cell may hold, whatever it should: the schema reads each value by itself."""
        return {"type": ["string", "number", "boolean", "null"], "description": self.words}

    @property
    def is_number(self) -> bool:
        return self.words in (WORDS["number"], WORDS["flag"]) and self.categories is None


def request_columns(schema: TableSchema) -> tuple[RequestColumn, ...]:
    """Return what a row of a request must have: dates instead of the parts that are observed."""
    observed = {column.name: column for column in schema.observed}
    return tuple(_request_column(name, observed.get(name)) for name in schema.cells())


def _request_column(name: str, column: NumberColumn | CategoryColumn | None) -> RequestColumn:
    if column is None:
        return RequestColumn(name, "date", WORDS["date"])
    if isinstance(column, CategoryColumn):
        return RequestColumn(name, column.kind, WORDS[column.values], column.categories)
    return RequestColumn(name, column.kind, WORDS["flag" if column.kind == "boolean" else "number"])
