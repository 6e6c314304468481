"""What a cell means, each by itself: a number or a category, whatever type it comes in.

Texts of a CSV file have no type until the schema gives them one; cells of other formats keep their
own. A value never depends on what stands beside it, so a row means the same in every file.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfseen.arrays import Floats
from halfseen.data.arrow_columns import composed, decoded, is_text, plain_array, without_empty
from halfseen.data.schema import Shape, Written
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
_NO_UNITS = {"(", ")", "()", *"',. \u00a0\u202f"}
_ZERO = r"^\s*[-+]?0+([.,]0*)?\s*$"


def is_gap(text: str) -> bool:
    """Whether a text is a word for no value."""
    return text.strip().casefold() in GAPS


# --- numbers ------------------------------------------------------------------------------------


class Marked(NamedTuple):
    """A number that people wrote: its value, and the marks beside digits and decimal sign."""

    value: float
    marks: frozenset[str] = frozenset()

    @property
    def units(self) -> frozenset[str]:
        """The marks without those that part thousands, and without brackets."""
        return self.marks - _NO_UNITS


@lru_cache(maxsize=2)
def _pattern(decimal: str) -> re.Pattern[str]:
    sign = re.escape(decimal)
    digits = (
        rf"(?:[1-9]\d{{0,2}}(?P<group>{_GROUPS[decimal]})\d{{3}}(?:(?P=group)\d{{3}})*|\d+)"
        rf"(?:{sign}\d+)?|\d+{sign}\d+[eE][-+]?\d+"
    )
    before, after = _SIGN.format("before"), _SIGN.format("after")
    return re.compile(rf"[-+\u2212]?\s*{before}?\s*[-+\u2212]?(?P<digits>{digits})\s*{after}?")


def marked_number(text: str, decimal: str) -> Marked | None:
    """Read a number with thousands separators, percent and currency signs, or in brackets."""
    in_brackets = text.startswith("(") and text.endswith(")")
    bare = text[1:-1].strip() if in_brackets else text
    found = _pattern(decimal).fullmatch(bare)
    if found is None:
        return None
    group = found["group"]
    digits = found["digits"].replace(group, "") if group else found["digits"]
    value = float(digits.replace(decimal, "."))
    is_negative = in_brackets or not {"-", "\u2212"}.isdisjoint(bare[: found.start("digits")])
    marks = (found["before"], found["after"], group, "()" if in_brackets else "")
    return Marked(-value if is_negative else value, frozenset(filter(None, marks)))


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
        other = Marked(float(bare))
    known = [each for each in (own, other) if each and each.units <= {*written.marks}]
    if len(known) < 2 or known[0].value == known[1].value:
        return ReadNumber(known[0].value) if known else ReadNumber(None)
    inside = [each for each in known if low <= each.value <= high]
    if len(inside) == 1 and np.isfinite(high):
        return ReadNumber(inside[0].value, inside[0] is other)
    grouped = known[0].marks - known[0].units
    return ReadNumber(known[0].value if grouped <= {*written.marks} else None)


class Noted(NamedTuple):
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
            noted = {name: Noted(len(cells), *cells[0])}
            self.update(Unread({}, noted) if otherwise else Unread(noted))

    def update(self, other: Unread) -> None:
        """Take in what was noted of further rows."""
        for own, further in ((self.gaps, other.gaps), (self.otherwise, other.otherwise)):
            for name, noted in further.items():
                known = own.get(name, noted._replace(cells=0))
                own[name] = known._replace(cells=known.cells + noted.cells)


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
        texts = values.cast(pa.string())
        numbers, odd = _plain_numbers(texts, written or Written())
        if len(odd):
            noted = Unread()
            cells = texts.take(pa.array(odd)), odd + first_row
            numbers[odd] = _odd_numbers(name, *cells, written or Written(), shape, noted)
            if strays:
                noted.gaps.clear()
            if unread is not None:
                unread.update(noted)
            elif noted.gaps:
                _, text, row = noted.gaps[name]
                raise InputError(
                    f"Column {name!r} of {where} holds {quoted(text)} in row {row}, where a number "
                    "is needed."
                )
    else:
        numbers = _numpy(_doubles(values)).astype(np.float64)
    infinite = np.isinf(numbers)
    if infinite.any():
        raise InputError(
            f"Column {name!r} of {where} holds an infinite value in row "
            f"{int(np.argmax(infinite)) + first_row}; replace it by a finite number, or leave it "
            "empty."
        )
    return numbers


def _plain_numbers(texts: Any, written: Written) -> tuple[Floats, Any]:
    """Return texts that are numbers as programs write them, and the places of the others."""
    nothing = np.empty(0, dtype=np.int64)
    if written.decimal == ".":
        try:
            return _numpy(texts.cast(pa.float64())).astype(np.float64), nothing
        except pa.ArrowInvalid:
            pass
    plain = pc.fill_null(pc.match_substring_regex(texts, PLAIN), False)
    if written.decimal == ",":  # 1.234 may be a thousand there
        plain = pc.and_(plain, pc.invert(pc.fill_null(pc.match_substring(texts, "."), False)))
    known = pc.if_else(plain, texts, pa.scalar(None, pa.string())).cast(pa.float64())
    odd = np.flatnonzero(_numpy(pc.and_(pc.invert(plain), pc.is_valid(texts))))
    return _numpy(known).astype(np.float64), odd


def _odd_numbers(
    name: str, texts: Any, rows: Any, written: Written, shape: Shape | None, unread: Unread
) -> Floats:
    """Return what texts mean that are no plain numbers, each different one once."""
    low, high = -np.inf, np.inf
    if shape is not None and shape.quantiles:
        least, most = shape.quantiles[0], shape.quantiles[-1]
        low, high = least - (most - least), most + (most - least)
    coded = texts.dictionary_encode()
    different, codes = coded.dictionary.to_pylist(), _numpy(coded.indices).astype(np.int64)
    read = [number_of(text, written, low, high) for text in different]
    strange = np.array([cell.value is None or cell.otherwise for cell in read])[codes]
    cells: dict[bool, list[tuple[str, int]]] = {False: [], True: []}
    for code, row in zip(codes[strange].tolist(), rows[strange].tolist(), strict=True):
        cells[read[code].otherwise].append((different[code], row))
    unread.add(name, cells[False])
    unread.add(name, cells[True], otherwise=True)
    values = np.array([np.nan if cell.value is None else cell.value for cell in read])
    numbers: Floats = values[codes]
    return numbers


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


def counts(weights: Any) -> Any:
    """Say which rows count at all: those whose weight is not zero, however zero is written."""
    values = plain_array(weights)
    if is_text(values.type):
        zero = pc.match_substring_regex(values.cast(pa.string()), _ZERO)
    else:
        zero = pc.equal(values.cast(pa.float64(), safe=False), 0.0)
    return pc.invert(pc.fill_null(zero, False))


# --- categories ---------------------------------------------------------------------------------


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
    """
    values = decoded(column, name, where)
    kind = values.type
    if is_text(kind):
        texts = composed(without_empty(values.cast(pa.string())))
        texts = texts if stored == "text" else _respelled(texts, _canonical)
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
    integers = pc.if_else(whole, numbers, 0.0).cast(pa.int64(), safe=False)
    return pc.if_else(whole, integers.cast(pa.string()), numbers.cast(pa.string()))


def canonical_number(text: str) -> str | None:
    """Return how the number that a text holds is written as a category; None where it is none."""
    bare = text.strip()
    if not re.match(PLAIN, bare, re.ASCII):
        return None
    if re.fullmatch(r"[-+]?\d{1,20}", bare, re.ASCII):  # double precision keeps sixteen digits
        return str(int(bare))
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


def cells_of(cells: Sequence[Any]) -> tuple[Any, bool]:
    """Return cells as an array of their type; of several types as texts, each as by itself."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if len(kinds) < 2 or kinds <= {int, float}:
        try:
            return pa.array(cells), False
        except pa.ArrowException:  # whole numbers of more than 64 bits
            pass
    return pa.array([cell_text(cell) for cell in cells], pa.string()), True


def cell_text(cell: Any) -> str | None:
    """Return a cell of a column of several types as the text that it would be in a text file."""
    if cell is None or (isinstance(cell, float) and cell != cell):
        return None
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, int | float):
        return canonical_number(repr(cell)) or repr(cell)
    return str(cell)


def _numpy(values: Any) -> Floats:
    array: Floats = values.to_numpy(zero_copy_only=False)
    return array


# --- how texts look -----------------------------------------------------------------------------


def composed_name(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def outline(text: str) -> str:
    r"""Return a text as the eye sees it: in one form and width, without invisible characters."""
    kept = (char for char in text if unicodedata.category(char) not in ("Cf", "Cc"))
    return composed_name("".join(map(_of_usual_width, kept)))


def _of_usual_width(char: str) -> str:
    tag, _, plain = unicodedata.decomposition(char).partition(" ")
    return chr(int(plain, 16)) if tag in ("<wide>", "<narrow>", "<noBreak>") else char


def spelling(name: str) -> str:
    """Return a name without what people spell differently: capitals, spaces, dashes, widths."""
    return re.sub(r"[\s_\-.]+", "", outline(name)).casefold()


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
