"""What a cell means, each by itself: a number, a category or a date, whatever type it comes in.

Texts of a CSV file have no type until the schema gives them one; cells of other formats keep their
own. A value never depends on what stands beside it, so a row means the same in every file.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from halfseen.arrays import Floats
from halfseen.data.arrow_files import LARGEST_BATCH
from halfseen.data.schema import NumberColumn, Shape, Written
from halfseen.errors import InputError

_WORDS = """
    na n/a <na> nan null <null> (null) \\n none nil #n/a ? - -- .
    #div/0! #value! #ref! #name? #num! #null!
"""
GAPS = frozenset(("", *_WORDS.split()))
"""Words that stand for no value among numbers and dates, in small letters. In a column of texts
only an empty cell is a gap: there they may be names, as NA is Namibia's."""
TRUTHS = {"true": 1.0, "false": 0.0}
PLAIN = r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$"
"""A number as programs write it."""
OTHER: dict[str, Literal[".", ","]] = {".": ",", ",": "."}
"""The decimal sign that a column does not have."""
_SIGN = r"(?P<{}>[$€£¥%]|USD|EUR|GBP|CHF)"
_GROUPS = {".": "[,' \u00a0\u202f]", ",": "[.' \u00a0\u202f]"}
_BRACKETS = "()"
_ZERO = r"^\s*[-+]?0+([.,]0*)?\s*$"


class Marked(NamedTuple):
    """A number that people wrote: its value, and the marks beside digits and decimal sign."""

    value: float
    marks: frozenset[str]


@lru_cache(maxsize=2)
def _pattern(decimal: str) -> re.Pattern[str]:
    group = _GROUPS[decimal]
    digits = rf"(?:[1-9]\d{{0,2}}(?P<group>{group})\d{{3}}(?:(?P=group)\d{{3}})*|\d+)"
    fraction = rf"(?:{re.escape(decimal)}\d+)?"
    before, after = _SIGN.format("before"), _SIGN.format("after")
    return re.compile(
        rf"[-+\u2212]?\s*{before}?\s*[-+\u2212]?(?P<digits>{digits}{fraction})\s*{after}?"
    )


def marked_number(text: str, decimal: str) -> Marked | None:
    """Read a number with thousands separators, percent and currency signs, or in brackets.

    Examples
    --------
    >>> marked_number("$1234.50", "."), marked_number("(1.2)", ".")
    (Marked(value=1234.5, marks=frozenset({'$'})), Marked(value=-1.2, marks=frozenset({'()'})))
    >>> marked_number("1.234,5", ",").value, marked_number("1.234,5", ".")
    (1234.5, None)
    """
    in_brackets = text.startswith("(") and text.endswith(")")
    found = _pattern(decimal).fullmatch(text[1:-1].strip() if in_brackets else text)
    if found is None:
        return None
    group = found["group"] or ""
    digits = found["digits"].replace(group, "") if group else found["digits"]
    value = float(digits.replace(decimal, "."))
    signs = [sign for sign in (found["before"], found["after"], group) if sign]
    is_negative = in_brackets or "-" in text or "\u2212" in text
    marks = frozenset([*signs, *([_BRACKETS] if in_brackets else [])])
    return Marked(-value if is_negative else value, marks)


class ReadNumber(NamedTuple):
    """A number read from a text; None where it is none.

    `otherwise` says that it could be read as the column is written, and was read in another way.
    """

    value: float | None
    otherwise: bool = False


def number_of(
    text: str, written: Written, low: float = -np.inf, high: float = np.inf
) -> ReadNumber:
    """Read a text as a number of a column that is written so, NaN for a word that means a gap.

    Where 1,234 may be a thousand or a little more than one, it is what the column has; where that
    is not known, or lies outside `low` to `high` and the other does not, it is what fits there.

    Examples
    --------
    >>> number_of("1.5", Written()).value, number_of("n/a", Written()).value
    (1.5, nan)
    >>> number_of("26,249", Written(), 20.0, 30.0)
    ReadNumber(value=26.249, otherwise=True)
    >>> number_of("5%", Written()).value is None
    True
    """
    bare = text.strip()
    small = bare.casefold()
    if small in GAPS:
        return ReadNumber(float("nan"))
    if small in TRUTHS:
        return ReadNumber(TRUTHS[small])
    is_plain = re.match(PLAIN, bare, re.ASCII) is not None
    if written.decimal == "." and (is_plain or small.lstrip("+-") in ("inf", "infinity")):
        return ReadNumber(float(bare))
    own, other = (marked_number(bare, d) for d in (written.decimal, OTHER[written.decimal]))
    if own is None and is_plain:  # with an exponent, or a point where the column has commas
        own, other = None, Marked(float(bare), frozenset())
    known = [each for each in (own, other) if each and _units(each.marks) <= {*written.marks}]
    if len(known) < 2 or known[0].value == known[1].value:
        return ReadNumber(known[0].value) if known else ReadNumber(None)
    inside = [each for each in known if low <= each.value <= high]
    if len(inside) == 1 and np.isfinite(high):
        return ReadNumber(inside[0].value, inside[0] is other)
    grouped = known[0].marks - _units(known[0].marks)
    return ReadNumber(known[0].value) if grouped <= {*written.marks} else ReadNumber(None)


def _units(marks: frozenset[str]) -> frozenset[str]:
    """Return the marks without those that part thousands, and without brackets."""
    return frozenset(mark for mark in marks if mark not in "',. \u00a0\u202f" and mark != _BRACKETS)


@dataclass(frozen=True)
class Noted:
    """Cells of one column: how many there are, and the first of them with its row."""

    cells: int
    text: str
    row: int


@dataclass
class Unread:
    """Cells that are not written as their column is, by column: counted, and the first named."""

    gaps: dict[str, Noted] = field(default_factory=dict)
    """Those that could not be read, and are taken for gaps."""
    otherwise: dict[str, Noted] = field(default_factory=dict)
    """Those that were read in another way than the column's."""

    def add(self, name: str, cells: Sequence[tuple[str, int]], *, otherwise: bool = False) -> None:
        """Take note of texts of a column, each with its row."""
        if cells:
            _note(self.otherwise if otherwise else self.gaps, name, Noted(len(cells), *cells[0]))

    def update(self, other: Unread) -> None:
        """Take in what was noted of further rows."""
        for own, further in ((self.gaps, other.gaps), (self.otherwise, other.otherwise)):
            for name, noted in further.items():
                _note(own, name, noted)


def _note(cells: dict[str, Noted], name: str, further: Noted) -> None:
    known = cells.get(name)
    cells[name] = replace(known, cells=known.cells + further.cells) if known else further


def as_numbers(
    column: Any,
    name: str,
    *,
    where: str,
    first_row: int = 1,
    strays: bool = False,
    written: Written | None = None,
    shape: Shape | None = None,
    unread: Unread | None = None,
) -> Floats:
    """Return a column as numbers, NaN where it has a gap.

    Texts are read as `written` says, and by the distribution of a column where they are ambiguous.
    With `strays`, texts that are no numbers are gaps; otherwise they are noted in `unread`, or
    refused where nobody takes note.
    """
    values = decoded(column, name, where)
    if is_text(values.type):
        numbers = _numbers_of_texts(
            values.cast(pa.string()), name, where, first_row, strays, written, shape, unread
        )
    else:
        numbers = _numpy(_doubles(values)).astype(np.float64)
    infinite = np.isinf(numbers)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise InputError(
            f"Column {name!r} of {where} holds an infinite value in row {row + first_row}; "
            "replace it by a finite number, or leave it empty."
        )
    return numbers


def numbers_of(
    column: NumberColumn, values: Any, *, where: str, first_row: int, unread: Unread | None
) -> Floats:
    """Return a column of a schema as numbers."""
    return as_numbers(
        values,
        column.name,
        where=where,
        first_row=first_row,
        strays=column.strays,
        written=column.written,
        shape=column.shape,
        unread=unread,
    )


def _doubles(values: Any) -> Any:
    """Return numbers in double precision.

    Those of single precision mean what they are written as: 0.1, and not 0.10000000149.
    """
    kind = values.type
    if pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    elif pa.types.is_float16(kind):
        values = values.cast(pa.float32()).cast(pa.string())
    elif pa.types.is_float32(kind) or pa.types.is_decimal(kind):
        values = values.cast(pa.string())
    return values.cast(pa.float64(), safe=False)


def _numbers_of_texts(
    texts: Any,
    name: str,
    where: str,
    first_row: int,
    strays: bool,
    written: Written | None,
    shape: Shape | None,
    unread: Unread | None,
) -> Floats:
    written = written or Written()
    if written.decimal == ".":
        try:
            return _numpy(texts.cast(pa.float64())).astype(np.float64)
        except pa.ArrowInvalid:
            pass
    plain = pc.fill_null(pc.match_substring_regex(texts, PLAIN), False)
    if written.decimal == ",":  # 1.234 may be a thousand there
        plain = pc.and_(plain, pc.invert(pc.fill_null(pc.match_substring(texts, "."), False)))
    numbers: Floats = _numpy(
        pc.if_else(plain, texts, pa.scalar(None, pa.string())).cast(pa.float64())
    ).astype(np.float64)
    low, high = _bounds(shape)
    strange: list[tuple[str, int]] = []
    otherwise: list[tuple[str, int]] = []
    for text, places in _places(texts, pc.invert(plain)):
        cell = number_of(text, written, low, high)
        if cell.value is not None:
            numbers[places] = cell.value
        if cell.value is None:
            strange += [(text, int(place) + first_row) for place in places]
        elif cell.otherwise:
            otherwise += [(text, int(place) + first_row) for place in places]
    if strange and not strays:
        strange.sort(key=lambda each: each[1])
        if unread is None:
            text, row = strange[0]
            raise InputError(
                f"Column {name!r} of {where} holds {quoted(text)} in row {row}, where a number is "
                "needed."
            )
        unread.add(name, strange)
    if unread is not None:
        unread.add(name, sorted(otherwise, key=lambda each: each[1]), otherwise=True)
    return numbers


def _places(texts: Any, chosen: Any) -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
    """Give each different text among those chosen, with its places."""
    places = np.flatnonzero(_numpy(pc.and_(chosen, pc.is_valid(texts))))
    if not len(places):
        return
    coded = texts.take(pa.array(places)).dictionary_encode()
    codes = _numpy(coded.indices)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(coded.dictionary)))
    for text, part in zip(coded.dictionary.to_pylist(), np.split(order, ends[:-1]), strict=True):
        yield text, places[part]


def _bounds(shape: Shape | None) -> tuple[float, float]:
    """Return where values of a column lie, as far as is known."""
    if shape is None or not shape.quantiles:
        return -np.inf, np.inf
    least, most = shape.quantiles[0], shape.quantiles[-1]
    return least - (most - least), most + (most - least)


def counts(weights: Any) -> Any:
    """Say which rows count at all: those whose weight is not zero, however zero is written.

    Examples
    --------
    >>> counts(pa.array(["1", "0", "0,0", ""])).to_pylist()
    [True, False, False, True]
    """
    values = plain_array(one_array(weights))
    if is_text(values.type):
        zero = pc.match_substring_regex(values.cast(pa.string()), _ZERO)
    else:
        zero = pc.equal(values.cast(pa.float64(), safe=False), 0.0)
    return pc.invert(pc.fill_null(zero, False))


def as_categories(
    column: Any,
    name: str,
    *,
    where: str,
    stored: Literal["text", "number", "boolean"] = "text",
    known: Collection[str] = (),
) -> Any:
    """Return a column as texts in one Unicode form, null where it has a gap.

    3 and 3.0 are the same number, so they are the same category of a column that `stored` numbers;
    in one of texts, 3.0 is 3 where only the latter is `known`. The empty text is a gap in every
    format, because CSV and ONNX cannot tell it from one.

    Examples
    --------
    >>> as_categories(pa.array([3.0, 0.5, None]), "thal", where="a.csv").to_pylist()
    ['3', '0.5', None]
    >>> as_categories(pa.array(["x", "", "NA"]), "shop", where="a.parquet").to_pylist()
    ['x', None, 'NA']
    >>> as_categories(pa.array(["3.0", "1.10"]), "code", where="a.csv", known=["3"]).to_pylist()
    ['3', '1.10']
    """
    values = decoded(column, name, where)
    kind = values.type
    if is_text(kind):
        texts = composed(without_empty(values.cast(pa.string())))
        if stored != "text":
            texts = _respelled(texts, _canonical)
    elif pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        texts = _number_texts(_doubles(values))
    else:
        texts = values.cast(pa.string())
    if not known:
        return texts
    unknown = pc.is_null(pc.index_in(texts, value_set=pa.array(list(known), pa.string())))
    if not pc.any(pc.and_(unknown, pc.is_valid(texts))).as_py():
        return texts
    return _respelled(texts, lambda text: _twin(text, known))


def _number_texts(numbers: Any) -> Any:
    """Return numbers as texts, whole ones without a point."""
    numbers = pc.if_else(pc.is_nan(numbers), pa.scalar(None, pa.float64()), numbers)
    whole = pc.and_(pc.equal(pc.round(numbers), numbers), pc.less(pc.abs(numbers), 2.0**53))
    return pc.if_else(
        whole,
        pc.if_else(whole, numbers, 0.0).cast(pa.int64(), safe=False).cast(pa.string()),
        numbers.cast(pa.string()),
    )


def canonical_number(text: str) -> str | None:
    """Return how the number that a text holds is written as a category; None where it is none."""
    bare = text.strip()
    if not re.match(PLAIN, bare, re.ASCII):
        return None
    found: str = _number_texts(pa.array([float(bare)]))[0].as_py()
    return found


def _canonical(text: str) -> str | None:
    small = text.strip().casefold()
    if small in GAPS:
        return None
    return small if small in TRUTHS else canonical_number(text) or text


def _twin(text: str, known: Collection[str]) -> str:
    """Return the known spelling of a whole number or a truth value, or the text itself."""
    if text in known:
        return text
    if re.fullmatch(r"-?\d+(\.0)?", text, re.ASCII):
        other = text.removesuffix(".0") if text.endswith(".0") else f"{text}.0"
        return other if other in known else text
    if text.casefold() in TRUTHS:
        return next((each for each in known if each.casefold() == text.casefold()), text)
    return text


def _respelled(texts: Any, spell: Any) -> Any:
    """Return texts with each different one spelled anew."""
    coded = texts.dictionary_encode()
    spelled = pa.array([spell(text) for text in coded.dictionary.to_pylist()], pa.string())
    return spelled.take(coded.indices)


def decoded(column: Any, name: str, where: str) -> Any:
    """Return a column as one plain array, or say why its type is of no use."""
    values = one_array(column)
    check_text_bytes(values, name, where)
    dropped = f"--drop {name}; in Python drop=[{name!r}]"
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if pa.types.is_temporal(kind) and not pa.types.is_duration(kind):
        raise InputError(dates_sentence(name, where, f" ({kind})", pa.types.is_time(kind)))
    for is_one, words in LENGTHS_AND_SPANS:
        if is_one(kind):
            raise InputError(f"Column {name!r} of {where} holds {words}, or drop it ({dropped}).")
    if not (is_number(kind) or is_text(kind) or pa.types.is_null(kind)):
        raise InputError(
            f"Column {name!r} of {where} holds {kind} values; a table needs numbers, texts or "
            f"booleans. Flatten it, or drop it ({dropped})."
        )
    return plain_array(values)


LENGTHS_AND_SPANS: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (pa.types.is_duration, "lengths of time: make them numbers (pandas: .dt.total_seconds())"),
    (lambda kind: "period" in str(kind), "periods: make them dates (pandas: .dt.to_timestamp())"),
)
"""Types with an obvious number or date in them."""


def dates_sentence(name: str, where: str, kind: str, are_times: bool) -> str:
    """Return what is said of a column of dates that nobody has named the parts of."""
    parts = ["hour"] if are_times else ["month", "weekday"]
    return (
        f"Column {name!r} of {where} holds dates or times{kind}, which a model cannot use "
        f"as they are: name the parts that mean something on both sides (--dates {name}="
        f"{','.join(parts)}; in Python dates={{{name!r}: {parts}}}), or drop it (--drop "
        f"{name}; in Python drop=[{name!r}])."
    )


def cells_of(cells: Sequence[Any]) -> tuple[Any, bool]:
    """Return cells as an array of their type; of several types as texts, each as by itself.

    Examples
    --------
    >>> cells_of([1.0, "1.10", True, None])[0].to_pylist()
    ['1', '1.10', 'true', None]
    """
    kinds = {type(cell) for cell in cells if cell is not None}
    if len(kinds) < 2 or kinds <= {int, float}:
        try:
            return pa.array(cells), False
        except pa.ArrowException:  # whole numbers of more than 64 bits
            pass
    return pa.array([_cell_text(cell) for cell in cells], pa.string()), True


def _cell_text(cell: Any) -> str | None:
    if cell is None or (isinstance(cell, float) and cell != cell):
        return None
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, int | float):
        return canonical_number(repr(cell)) or repr(cell)
    return str(cell)


def one_array(column: Any) -> Any:
    """Return a column in one piece."""
    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(values, pa.ChunkedArray):  # no chunk at all, or too many bytes for one
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.nulls(0)
    return values


def plain_array(values: Any) -> Any:
    """Return an array without a dictionary."""
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


def is_number(kind: Any) -> bool:
    """Whether an Arrow type holds numbers or booleans."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
    )


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


def composed_name(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def outline(text: str) -> str:
    r"""Return a text as the eye sees it: in one form and width, without invisible characters.

    Examples
    --------
    >>> outline("\ufeffage\u200b") == outline("\uff41ge") == "age"
    True
    """
    kept = (char for char in text if unicodedata.category(char) not in ("Cf", "Cc"))
    return composed_name("".join(map(_of_usual_width, kept)))


def _of_usual_width(char: str) -> str:
    tag, _, plain = unicodedata.decomposition(char).partition(" ")
    return chr(int(plain, 16)) if tag in ("<wide>", "<narrow>", "<noBreak>") else char


def quoted(text: str) -> str:
    """Return a text in quotes, shortened, and with a code for what the eye does not see."""
    shown = repr(text) if outline(text) == text else f"'{text.encode('unicode_escape').decode()}'"
    return shown if len(shown) <= 40 else f"{shown[:36]}...'"


def check_alike(names: Mapping[str, Sequence[str]]) -> None:
    """Refuse names that look the same and are not, of one table or of several by what has them."""
    seen: dict[str, tuple[str, str]] = {}
    for where, own in names.items():
        for name in own:
            other, there = seen.setdefault(outline(name), (name, where))
            if other != name:
                raise InputError(
                    f"Column {quoted(other)} of {there} and column {quoted(name)} of {where} look "
                    "the same and differ in spaces or characters that cannot be seen: write them "
                    "alike, or rename one (--rename OLD=NEW)."
                )


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


def _numpy(values: Any) -> npt.NDArray[Any]:
    array: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return array
