"""JSON records and JSON columns, checked value by value before they become a table."""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import NoneType
from typing import Any, Literal

import pyarrow as pa

from halfseen.front import CategoryColumn, NumberColumn
from halfseen.serve.errors import RequestError
from halfseen.serve.limits import Limits

__all__ = ["Expectation", "Form", "expectation", "read_json"]

Form = Literal["records", "columns"]
Column = NumberColumn | CategoryColumn

_LARGEST = sys.float_info.max
_LARGEST_INTEGER = int(Decimal(repr(_LARGEST)))
"""The same limit, digit by digit as the OpenAPI document writes it."""
_EXPECTED = 'Send {"records": [{...}, ...]} or {"columns": {"name": [...], ...}}.'


def read_json(
    body: bytes, columns: Sequence[Column], limits: Limits
) -> tuple[Form, Any, list[str]]:
    """Return the form of a JSON body, its columns as a table, and the names it ignores.

    Examples
    --------
    >>> age = NumberColumn(kind="numeric", name="age", role="observed", fill=50.0,
    ...                    indicator=False, log=False, mean=50.0, scale=9.0)
    >>> form, table, ignored = read_json(b'{"records": [{"age": 63, "x": 1}]}', [age], Limits())
    >>> form, table.to_pylist(), ignored
    ('records', [{'age': 63.0}], ['x'])
    """
    document = _parsed(body)
    if not isinstance(document, dict) or len(document) != 1:
        raise RequestError(422, f"The body must be an object with one key. {_EXPECTED}")
    ((form, content),) = document.items()
    if form == "records":
        values, ignored = _from_records(content, columns, limits)
    elif form == "columns":
        values, ignored = _from_columns(content, columns, limits)
    else:
        raise RequestError(422, f"The body has the unknown key {_shown(form)}. {_EXPECTED}", form)
    _check_text("".join(ignored), "The name of a column", None)
    arrays = [_array(column, values[column.name]) for column in columns]
    return form, pa.table(arrays, names=[column.name for column in columns]), ignored


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(
            body.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_object
        )
    except UnicodeDecodeError as error:
        raise RequestError(
            400, f"The body is not UTF-8: byte {error.start} is out of place."
        ) from None
    except json.JSONDecodeError as error:
        raise RequestError(
            400, f"The body is not JSON: {error.msg}, line {error.lineno}, column {error.colno}."
        ) from None
    except RecursionError:
        raise RequestError(400, f"The body is nested too deeply. {_EXPECTED}") from None
    except ValueError:  # an integer of thousands of digits
        raise RequestError(400, "The body holds a number of too many digits.") from None


def _refuse_constant(text: str) -> None:
    raise RequestError(400, f"The body holds {text}, which is not JSON; write null for a gap.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise RequestError(400, f"An object of the body has the key {_shown(twice)} twice.", twice)
    return found


def _from_records(
    records: Any, columns: Sequence[Column], limits: Limits
) -> tuple[dict[str, list[Any]], list[str]]:
    if not isinstance(records, list):
        raise RequestError(422, f'"records" must be a list, not {_kind(records)}.', "records")
    limits.check_rows(len(records))
    for row, record in enumerate(records, start=1):
        if not isinstance(record, dict):
            raise RequestError(422, f"Row {row} must be an object, not {_kind(record)}.", "records")
    values: dict[str, list[Any]] = {}
    for column in columns:
        try:
            values[column.name] = [record[column.name] for record in records]
        except KeyError:
            row = next(r for r, record in enumerate(records, 1) if column.name not in record)
            raise RequestError(422, _lacking(column.name, f"Row {row}"), column.name) from None
    given = dict.fromkeys(name for record in records for name in record)
    return values, [name for name in given if name not in values]


def _from_columns(
    content: Any, columns: Sequence[Column], limits: Limits
) -> tuple[dict[str, list[Any]], list[str]]:
    if not isinstance(content, dict):
        raise RequestError(422, f'"columns" must be an object, not {_kind(content)}.', "columns")
    values: dict[str, list[Any]] = {}
    for column in columns:
        if column.name not in content:
            raise RequestError(422, _lacking(column.name, "The request"), column.name)
        column_values = content[column.name]
        if not isinstance(column_values, list):
            raise RequestError(
                422,
                f"Column {column.name!r} must be a list, not {_kind(column_values)}.",
                column.name,
            )
        values[column.name] = column_values
    first = columns[0].name
    limits.check_rows(len(values[first]))
    for name, column_values in values.items():
        if len(column_values) != len(values[first]):
            raise RequestError(
                422,
                f"Column {name!r} has {len(column_values)} values and {first!r} has "
                f"{len(values[first])}; give one per row.",
                name,
            )
    return values, [name for name in content if name not in values]


def _lacking(name: str, where: str) -> str:
    return f"{where} lacks column {name!r}, which the model needs; give null where it is unknown."


def _array(column: Column, values: list[Any]) -> Any:
    """Return a column of JSON values as Arrow, or say which row holds what it should not."""
    expected = expectation(column)
    row = expected.first_offence(values)
    if row is not None:
        raise RequestError(
            422,
            f"Column {column.name!r} holds {_kind(values[row])} in row {row + 1}; it must be "
            f"{expected.words}, or null.",
            column.name,
        )
    if expected.arrow == pa.float64():
        return _numbers(column.name, values)
    if expected.arrow == pa.string():
        _check_text("".join(filter(None, values)), f"Column {column.name!r}", column.name)
    return pa.array(values, expected.arrow)


def _numbers(name: str, values: list[Any]) -> Any:
    numbers = [None if value is None else _double(value) for value in values]
    if math.inf in numbers:
        raise RequestError(
            422,
            f"Column {name!r} holds a number in row {numbers.index(math.inf) + 1} that is too "
            "large for double precision.",
            name,
        )
    return pa.array(numbers, pa.float64())


def _double(value: float) -> float:
    """Return a number in double precision, ∞ for one of either sign that is too large."""
    # Compared before it is converted: an integer just above the limit would round to it.
    largest = _LARGEST_INTEGER if isinstance(value, int) else _LARGEST
    return float(value) if -largest <= value <= largest else math.inf


def _check_text(text: str, where: str, field: str | None) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise RequestError(
            422, f"{where} holds half of a surrogate pair, which is not a text.", field
        ) from None


@dataclass(frozen=True)
class Expectation:
    """What JSON may hold in a column: Python types, words and a JSON Schema that say the same."""

    types: frozenset[type]
    words: str
    schema: Mapping[str, Any]
    arrow: Any

    def first_offence(self, values: list[Any]) -> int | None:
        """Return the first position that holds something else."""
        if set(map(type, values)) <= self.types and self is not _FLAG:
            return None
        return next((row for row, value in enumerate(values) if not self._allows(value)), None)

    def _allows(self, value: Any) -> bool:
        return type(value) in self.types and (self is not _FLAG or value in (None, 0, 1))


_TEXT = Expectation(frozenset({str, NoneType}), "a text", {"type": ["string", "null"]}, pa.string())
_NUMBER = Expectation(
    frozenset({int, float, NoneType}),
    "a number",
    {"type": ["number", "null"], "minimum": -_LARGEST, "maximum": _LARGEST},
    pa.float64(),
)
_BOOLEAN = Expectation(
    frozenset({bool, NoneType}), "true or false", {"type": ["boolean", "null"]}, pa.bool_()
)
_FLAG = Expectation(  # tables also write booleans as 0 and 1
    frozenset({bool, int, float, NoneType}),
    "true, false, 0 or 1",
    {"enum": [True, False, 0, 1, None]},
    pa.float64(),
)


def expectation(column: Column) -> Expectation:
    """Return what JSON may hold in a column."""
    if isinstance(column, NumberColumn):
        return _FLAG if column.kind == "boolean" else _NUMBER
    return {"text": _TEXT, "number": _NUMBER, "boolean": _BOOLEAN}[column.values]


def _kind(value: Any) -> str:
    """Say what a JSON value is, for a sentence."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return f"the text {_shown(value)}"
        case int() | float():
            return "a number"
        case list():
            return "a list"
    return "an object"


def _shown(text: str) -> str:
    """Quote a text from outside, shortened and with nothing unprintable."""
    return ascii(text) if len(text) <= 40 else f"{text[:36]!a}..."
