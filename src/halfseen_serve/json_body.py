"""JSON records and JSON columns as a table, whose values the model's schema reads."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import pyarrow as pa

from halfseen.data.values import cell_text, composed_name
from halfseen_serve.columns import RequestColumn
from halfseen_serve.errors import RequestError, lacking
from halfseen_serve.limits import Limits
from halfseen_serve.scorer import Scorer

Choose = Callable[[Callable[[str], bool]], Scorer]
"""Says what answers, once it can ask which columns have a value."""
_EMPTY = (None, "")
_HOW = 'Send {"records": [{...}, ...]} or {"columns": {"name": [...], ...}}.'


class RequestTable(NamedTuple):
    """The rows of a request."""

    form: str
    """``records`` or ``columns``, as which they came."""
    table: Any
    """The columns that are read, as an Arrow table."""
    ignored: list[str]
    """The names of the others."""
    scorer: Scorer
    """What answers."""


def read_json(body: bytearray, choose: Choose, limits: Limits) -> RequestTable:
    """Return the rows of a JSON body.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from halfseen_serve.columns import WORDS
    >>> age = RequestColumn("age", "numeric", WORDS["number"])
    >>> scorer = SimpleNamespace(given=lambda names: [age])
    >>> body = bytearray(b'{"records": [{"age": 63, "x": 1}]}')
    >>> read = read_json(body, lambda has_value: scorer, Limits())
    >>> read.form, read.table.to_pylist(), read.ignored
    ('records', [{'age': 63.0}], ['x'])
    """
    document = _parsed(body)
    if not isinstance(document, dict) or len(document) != 1:
        raise RequestError(422, f"The body must be an object with one key. {_HOW}")
    ((form, content),) = document.items()
    if form not in ("records", "columns"):
        raise RequestError(422, f"The body has the unknown key {_quoted(form)}. {_HOW}", form)
    read = _from_records if form == "records" else _from_columns
    scorer, values, given = read(content, choose, limits)
    ignored = [name for name in given if name not in values]
    _check_text("".join(ignored), "The name of a column", None)
    table = pa.table({c.name: _array(c, values[c.name]) for c in scorer.given(given)})
    return RequestTable(form, table, ignored, scorer)


def _parsed(body: bytearray) -> Any:
    try:
        return _DECODER.decode(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        sentence = f"The body is not UTF-8: byte {error.start} is out of place."
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        sentence = f"The body is not JSON: {error.msg}, {place}."
    except RecursionError:
        sentence = f"The body is nested too deeply. {_HOW}"
    raise RequestError(400, sentence)


def _refuse_constant(text: str) -> None:
    raise RequestError(400, f"The body holds {text}, which is not JSON; write null for a gap.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if not all(name.isascii() for name, _ in pairs):
        pairs = [(composed_name(name), value) for name, value in pairs]
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise RequestError(400, f"An object of the body has the key {_quoted(twice)} twice.", twice)
    return found


_DECODER = json.JSONDecoder(
    # What 64 bits hold keeps every digit; of more, there is no limit on digits to run into.
    parse_int=lambda text: int(text) if len(text) <= 20 else float(text),
    parse_constant=_refuse_constant,
    object_pairs_hook=_object,
)
_Values = dict[str, list[Any]]


def _from_records(
    records: Any, choose: Choose, limits: Limits
) -> tuple[Scorer, _Values, Collection[str]]:
    _check_type(records, list, '"records"', "records")
    limits.check_rows(len(records))
    for row, record in enumerate(records, start=1):
        _check_type(record, dict, f"Row {row}", "records")
    scorer = choose(lambda name: any(r.get(name) not in _EMPTY for r in records))
    values: _Values = {}
    given = dict.fromkeys(name for record in records for name in record)
    for name in (column.name for column in scorer.given(given)):
        try:
            values[name] = [record[name] for record in records]
        except KeyError:
            row = next(row for row, record in enumerate(records, 1) if name not in record)
            raise lacking(name, f"Row {row}") from None
    return scorer, values, given


def _from_columns(
    content: Any, choose: Choose, limits: Limits
) -> tuple[Scorer, _Values, Collection[str]]:
    _check_type(content, dict, '"columns"', "columns")

    def values_of(name: str) -> list[Any]:
        _check_type(content[name], list, f"Column {name!r}", name)
        found: list[Any] = content[name]
        return found

    scorer = choose(lambda name: name in content and any(v not in _EMPTY for v in values_of(name)))
    values: _Values = {}
    for name in (column.name for column in scorer.given(content)):
        values[name] = values_of(name)
    first, rows = next((name, len(found)) for name, found in values.items())
    limits.check_rows(rows)
    for name, found in values.items():
        if len(found) != rows:
            sentence = f"Column {name!r} has {len(found)} values and {first!r} has {rows}"
            raise RequestError(422, f"{sentence}; give one per row.", name)
    return scorer, values, content


def _array(column: RequestColumn, values: list[Any]) -> Any:
    """Return JSON values as Arrow, of one type for a column whatever it holds in other requests.

    Numbers of a column of numbers keep their type where they are alone; everything else is text,
    as a text file would have it.
    """
    where, kinds = f"Column {column.name!r} holds", set(map(type, values))
    if kinds & {list, dict}:
        row = next(row for row, value in enumerate(values) if type(value) in (list, dict))
        sentence = f"{where} {_kind(values[row])} in row {row + 1}; it must be {column.words}"
        raise RequestError(422, f"{sentence}, or null.", column.name)
    for infinity in (math.inf, -math.inf):
        if infinity in values:
            row = values.index(infinity) + 1
            sentence = f"{where} a number in row {row} that is too large for double precision."
            raise RequestError(422, sentence, column.name)
    if column.is_number and str not in kinds:
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    texts = [cell_text(value) for value in values]
    _check_text("".join(filter(None, texts)), f"Column {column.name!r}", column.name)
    return pa.array(texts, pa.string())


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
        return f"the text {_quoted(value)}"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return {float: "a number", list: "a list"}.get(type(value), "an object")


def _quoted(text: str) -> str:
    """Quote a text from outside, shortened and with nothing unprintable."""
    return ascii(text) if len(text) <= 40 else f"{text[:36]!a}..."
