"""JSON records and JSON columns, checked value by value as they become a table."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa

from halfseen.serve.cells import Column, expectation
from halfseen.serve.errors import RequestError, lacking
from halfseen.serve.limits import Limits

Values = dict[str, list[Any]]
Choose = Callable[[Callable[[str], bool]], Sequence[Column]]
_NOTHING = (None, "")

_HOW = 'Send {"records": [{...}, ...]} or {"columns": {"name": [...], ...}}.'


def read_json(
    body: bytearray, choose: Choose, limits: Limits
) -> tuple[Literal["records", "columns"], Values, list[str]]:
    """Return the form of a JSON body, its columns, and the names it ignores.

    `choose` says which columns are read, once it can ask which of them have a value.

    Examples
    --------
    >>> from halfseen.front import NumberColumn
    >>> age = NumberColumn(kind="numeric", name="age", role="observed", fill=50.0,
    ...                    indicator=False, log=False, mean=50.0, scale=9.0)
    >>> body = bytearray(b'{"records": [{"age": 63, "x": 1}]}')
    >>> form, values, ignored = read_json(body, lambda has_value: [age], Limits())
    >>> form, values, ignored
    ('records', {'age': [63.0]}, ['x'])
    >>> as_table(values, [age]).to_pylist()
    [{'age': 63.0}]
    """
    document = _parsed(body)
    if not isinstance(document, dict) or len(document) != 1:
        raise RequestError(422, f"The body must be an object with one key. {_HOW}")
    ((form, content),) = document.items()
    if form == "records":
        values, given = _from_records(content, choose, limits)
    elif form == "columns":
        values, given = _from_columns(content, choose, limits)
    else:
        raise RequestError(422, f"The body has the unknown key {_shown(form)}. {_HOW}", form)
    ignored = [name for name in given if name not in values]
    _check_text("".join(ignored), "The name of a column", None)
    return form, values, ignored


def as_table(values: Values, columns: Sequence[Column]) -> Any:
    """Return columns of JSON values as Arrow, in one piece, each value checked."""
    arrays = [_array(column, values[column.name]) for column in columns]
    return pa.record_batch(arrays, names=[column.name for column in columns])


def _parsed(body: bytearray) -> Any:
    try:
        return _DECODER.decode(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise RequestError(
            400, f"The body is not UTF-8: byte {error.start} is out of place."
        ) from None
    except json.JSONDecodeError as error:
        raise RequestError(
            400, f"The body is not JSON: {error.msg}, line {error.lineno}, column {error.colno}."
        ) from None
    except RecursionError:
        raise RequestError(400, f"The body is nested too deeply. {_HOW}") from None


def _refuse_constant(text: str) -> None:
    raise RequestError(400, f"The body holds {text}, which is not JSON; write null for a gap.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise RequestError(400, f"An object of the body has the key {_shown(twice)} twice.", twice)
    return found


_DECODER = json.JSONDecoder(
    parse_int=float,  # as tables have them, and with no limit on digits to run into
    parse_constant=_refuse_constant,
    object_pairs_hook=_object,
)


def _from_records(
    records: Any, choose: Choose, limits: Limits
) -> tuple[Values, Mapping[str, None]]:
    _check_type(records, list, '"records"', "records")
    limits.check_rows(len(records))
    for row, record in enumerate(records, start=1):
        _check_type(record, dict, f"Row {row}", "records")
    columns = choose(lambda name: any(r.get(name) not in _NOTHING for r in records))
    values: Values = {}
    for column in columns:
        try:
            values[column.name] = [record[column.name] for record in records]
        except KeyError:
            row = next(r for r, record in enumerate(records, 1) if column.name not in record)
            raise lacking(column.name, f"Row {row}") from None
    return values, dict.fromkeys(name for record in records for name in record)


def _from_columns(content: Any, choose: Choose, limits: Limits) -> tuple[Values, Mapping[str, Any]]:
    _check_type(content, dict, '"columns"', "columns")

    def has_value(name: str) -> bool:
        _check_type(found := content.get(name, []), list, f"Column {name!r}", name)
        return any(value not in _NOTHING for value in found)

    columns = choose(has_value)
    values: Values = {}
    for column in columns:
        if column.name not in content:
            raise lacking(column.name)
        _check_type(content[column.name], list, f"Column {column.name!r}", column.name)
        values[column.name] = content[column.name]
    first, rows = columns[0].name, len(values[columns[0].name])
    limits.check_rows(rows)
    for name, found in values.items():
        if len(found) != rows:
            sentence = f"Column {name!r} has {len(found)} values and {first!r} has {rows}"
            raise RequestError(422, f"{sentence}; give one per row.", name)
    return values, content


def _array(column: Column, values: list[Any]) -> Any:
    """Return a column of JSON values as Arrow, or say which row holds what it should not."""
    types, words, _, arrow = expectation(column)
    where = f"Column {column.name!r} holds"
    if not set(map(type, values)) <= types:
        row = next(row for row, value in enumerate(values) if type(value) not in types)
        sentence = f"{where} {_kind(values[row])} in row {row + 1}; it must be {words}, or null."
        raise RequestError(422, sentence, column.name)
    for infinity in (math.inf, -math.inf):
        if infinity in values:
            row = values.index(infinity) + 1
            sentence = f"{where} a number in row {row} that is too large for double precision."
            raise RequestError(422, sentence, column.name)
    if arrow == pa.string():
        _check_text("".join(filter(None, values)), f"Column {column.name!r}", column.name)
    if bool in types and arrow == pa.float64():
        values = [None if value is None else float(value) for value in values]
    return pa.array(values, arrow)


def _check_type(value: Any, kind: type, where: str, field: str) -> None:
    if not isinstance(value, kind):
        wanted = "a list" if kind is list else "an object"
        raise RequestError(422, f"{where} must be {wanted}, not {_kind(value)}.", field)


def _check_text(text: str, where: str, field: str | None) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise RequestError(
            422, f"{where} holds half of a surrogate pair, which is not a text.", field
        ) from None


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return f"the text {_shown(value)}"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return {float: "a number", list: "a list"}.get(type(value), "an object")


def _shown(text: str) -> str:
    """Quote a text from outside, shortened and with nothing unprintable."""
    return ascii(text) if len(text) <= 40 else f"{text[:36]!a}..."
