"""Columns whose kind is decided when all values were seen: numbers, texts, truth values or dates.

Cells of a text file have no type, so every value of every file has a say: one `01` late in the
second file makes a column of codes of what looked like counts. Cells with a type keep it.
"""

from __future__ import annotations

import re
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfseen.arrays import Floats
from halfseen.data.column_summary import MOST_VALUES, ColumnSummary, counted
from halfseen.data.dates import DATE, TIME
from halfseen.data.schema import Written
from halfseen.data.values import (
    GAPS,
    OTHER,
    PLAIN,
    TRUTHS,
    Marked,
    as_categories,
    as_numbers,
    canonical_number,
    composed,
    dates_sentence,
    decoded,
    is_text,
    marked_number,
    without_empty,
)
from halfseen.errors import InputError

TOO_LONG = 20
"""Digits from which a number would lose its last ones."""
FEW = 1_000
"""Different texts of a column of numbers that are kept in mind whatever their share."""
_POINT = r"[eE]|\.\d{0,2}$|\.\d{4,}$|^[-+]?0?\.|\d{4,}\.|^[-+]?0\d*\."
"""A plain number whose point cannot part thousands."""
_CODE = rf"^0\d+$|^\d{{{TOO_LONG},}}$"


class Meaning(NamedTuple):
    """What a text that is no plain number may be."""

    kind: Literal["word", "truth", "number", "date", "text"]
    point: Marked | None = None
    comma: Marked | None = None
    """The number that it is where the decimal sign is a point, or a comma."""


@lru_cache(maxsize=100_000)
def meaning_of(text: str) -> Meaning:
    """Return what a text may be.

    Examples
    --------
    >>> meaning_of("NA").kind, meaning_of("1,5").comma.value, meaning_of("noon").kind
    ('word', 1.5, 'text')
    """
    bare = text.strip()
    small = bare.casefold()
    if small in GAPS:
        return Meaning("word")
    if small in TRUTHS:
        truth = Marked(TRUTHS[small], frozenset())
        return Meaning("truth", truth, truth)
    if re.match(PLAIN, bare, re.ASCII):
        plain = Marked(float(bare), frozenset())
        if plain.value in (np.inf, -np.inf):  # 5E400 is a name
            return Meaning("text")
        return Meaning("number", plain, marked_number(bare, ",") or plain)
    point, comma = (marked_number(bare, decimal) for decimal in OTHER)
    if point or comma:
        return Meaning("number", point, comma)
    if re.match(DATE, bare, re.ASCII) or re.match(TIME, bare, re.ASCII):
        return Meaning("date")
    return Meaning("text")


def _name_by_numbers(column: ColumnSummary) -> bool:
    """Call the categories of a column by whole numbers, where that loses nothing: 2.0 becomes 2.

    Then words that mean a gap are gaps, as among numbers.
    """
    texts = {text: text.strip() for text in column.counts}
    known = {text for text, bare in texts.items() if bare.casefold() not in GAPS}
    if not all(re.fullmatch(r"-?(0|[1-9]\d*)(\.0+)?", texts[text], re.ASCII) for text in known):
        return False
    named = {text: canonical_number(text) for text in known}
    if not known or len(set(named.values())) < len(known):
        return False
    column.gaps += sum(count for text, count in column.counts.items() if text not in known)
    column.counts = Counter({str(named[text]): column.counts[text] for text in known})
    return True


@dataclass
class UndecidedColumn:
    """What was seen of one column so far; :meth:`decided` says what it is.

    `categorical` and `numeric` are what the user says of it. `most` is how many different texts
    are counted.
    """

    name: str
    categorical: bool = False
    numeric: bool = False
    most: int = FEW
    rows: int = 0
    empty: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    """How many cells of texts without a type may be what."""
    typed: set[str] = field(default_factory=set)
    """Types of other cells: number, text, boolean."""
    words: Counter[str] = field(default_factory=Counter)
    strays: Counter[str] = field(default_factory=Counter)
    code: str = ""
    """A text that is more than a number: 01, or one of very many digits."""
    only_point: int = 0
    only_comma: int = 0
    either: int = 0
    """Numbers by the decimal sign that they show; either where 1,234 or 1.234 may be two things."""
    either_comma: int = 0
    marks: dict[str, set[str]] = field(default_factory=lambda: {".": set(), ",": set()})
    _numbers: dict[str, ColumnSummary] = field(default_factory=dict)
    """By decimal sign; that for commas once it differs."""
    _texts: ColumnSummary | None = None

    def __post_init__(self) -> None:
        self._numbers["."] = ColumnSummary(self.name)
        self._texts = ColumnSummary(self.name)

    # --- taking cells in ------------------------------------------------------------------

    def add(self, column: Any, *, written: bool, where: str, first_row: int) -> None:
        """Take in the cells of some rows; `written` says that texts have no type of their own."""
        is_dictionary = pa.types.is_dictionary(column.type) and not self.numeric
        values = decoded(column, self.name, where)
        self.rows += len(values)
        kind = values.type
        if is_text(kind):
            texts = without_empty(values.cast(pa.string()))
            self.empty += texts.null_count
            if self.categorical or is_dictionary or not (written or self.numeric):
                self.kinds["text"] += len(texts) - texts.null_count
                self._add_texts(composed(texts))
            else:
                self._add_written(texts)
            if not written and texts.null_count < len(texts):
                self.typed.add("text")
        elif pa.types.is_null(kind):
            self.empty += len(values)
        else:
            self.typed.add("boolean" if pa.types.is_boolean(kind) else "number")
            if self.categorical or is_dictionary:
                texts = as_categories(values, self.name, where=where)
                self.empty += texts.null_count
                self._add_texts(texts)
            else:
                numbers = as_numbers(values, self.name, where=where, first_row=first_row)
                self.empty += int(np.isnan(numbers).sum())
                self._texts = None
                self._add_numbers(numbers)
        self.categorical = self.categorical or is_dictionary

    def _add_written(self, texts: Any) -> None:
        try:
            values = texts.cast(pa.float64())
        except pa.ArrowInvalid:
            self._note_codes(texts)
            self._add_mixed(composed(texts))
            return
        numbers: Floats = values.to_numpy(zero_copy_only=False).astype(np.float64)
        if np.isinf(numbers).any():
            self._add_mixed(texts)
            return
        known = ~np.isnan(numbers)
        whole = numbers == np.rint(numbers)
        if whole.any():
            self._note_codes(texts if whole.all() else texts.filter(pa.array(whole)))
        self.kinds["number"] += int(known.sum())
        if texts.null_count < len(texts) - known.sum():  # as NaN, which is a number to Arrow
            words = texts.filter(pa.array(~known)).drop_null()
            self.words += counted(words)
            self.kinds["word"] += len(words)
        self._add_numbers(numbers, self._with_commas(texts, numbers))
        self._count(texts)

    def _with_commas(self, texts: Any, numbers: Floats) -> Floats | None:
        """Return plain numbers as they are where points part thousands, or None if they cannot."""
        if self.only_point:
            return None
        pointed = pc.fill_null(pc.match_substring(texts, "."), False)
        if not pc.any(pointed).as_py():
            return None
        signed = pc.fill_null(pc.match_substring_regex(texts, _POINT), False)
        self.only_point += int(pc.sum(signed).as_py() or 0)
        count = int(pc.sum(pc.and_not(pointed, signed)).as_py() or 0)
        self.either += count
        if self.only_point or not count:
            return None
        places = np.flatnonzero(pointed.to_numpy(zero_copy_only=False))
        found = numbers.copy()
        for place, text in zip(places, texts.take(pa.array(places)).to_pylist(), strict=True):
            grouped = meaning_of(text).comma
            if grouped is not None:
                found[place] = grouped.value
                self.marks[","] |= grouped.marks
        return found

    def _add_mixed(self, texts: Any) -> None:
        """Take in texts of which some are no plain numbers, each different one once."""
        coded = texts.dictionary_encode()
        codes = coded.indices.to_numpy(zero_copy_only=False)
        known = ~np.isnan(codes.astype(np.float64))
        places = codes[known].astype(np.int64)
        counts = np.bincount(places, minlength=len(coded.dictionary))
        point = np.full(len(coded.dictionary), np.nan)
        comma = point.copy()
        for place, text in enumerate(coded.dictionary.to_pylist()):
            found, count = meaning_of(text), int(counts[place])
            self.kinds[found.kind] += count
            if found.kind in ("word", "text", "date"):
                chosen = self.words if found.kind == "word" else self.strays
                if len(chosen) < MOST_VALUES or text in chosen:
                    chosen[text] += count
                continue
            if found.kind == "number":
                self._note_signs(text, found, count)
            either = found.point or found.comma
            assert either is not None
            point[place] = (found.point or either).value
            comma[place] = (found.comma or either).value
        numbers = np.full(len(codes), np.nan)
        with_commas = numbers.copy()
        numbers[known], with_commas[known] = point[places], comma[places]
        self._add_numbers(numbers, with_commas)
        self._count(texts)

    def _note_signs(self, text: str, found: Meaning, count: int) -> None:
        """Note which decimal sign a number shows."""
        if found.point is not None:
            self.marks["."] |= found.point.marks
        if found.comma is not None:
            self.marks[","] |= found.comma.marks
        if found.comma is None or re.search(_POINT, text.strip()):
            self.only_point += count if "." in text or "," in text else 0
        elif found.point is None:
            self.only_comma += count
        elif found.point.value != found.comma.value:
            self.either += count
            self.either_comma += count if "," in text else 0

    def _note_codes(self, texts: Any) -> None:
        """Note a text that is more than a number: 01, or one of very many digits."""
        if not self.code and not self.numeric:
            long = pc.greater_equal(pc.binary_length(texts), TOO_LONG)
            few = texts.filter(pc.or_(pc.starts_with(texts, "0"), long))
            codes = few.filter(pc.match_substring_regex(few, _CODE))
            self.code = codes[0].as_py() if len(codes) else ""

    def _add_numbers(self, numbers: Floats, with_commas: Floats | None = None) -> None:
        """Take in numbers, and what they are if commas are decimal signs, where that differs."""
        settled = self.only_point and not self.only_comma
        if settled:
            self._numbers.pop(",", None)
        elif (
            with_commas is not None
            and "," not in self._numbers
            and not np.array_equal(numbers, with_commas, equal_nan=True)
        ):
            self._numbers[","] = deepcopy(self._numbers["."])
        if "," in self._numbers:
            self._numbers[","].add_numbers(numbers if with_commas is None else with_commas)
        self._numbers["."].add_numbers(numbers)

    def _add_texts(self, texts: Any) -> None:
        if self._texts is None:
            self._texts = ColumnSummary(self.name, has_more=True)
        self._texts.add_texts(texts)

    def _count(self, texts: Any) -> None:
        """Count texts, while there are few enough for a column that may turn out to be one."""
        if self._texts is None:
            return
        self._texts.add_texts(texts)
        if not self.kinds["text"] and len(self._texts.counts) > max(self.most, self.rows / 2):
            self._texts = None

    # --- what it is -------------------------------------------------------------------------

    @property
    def counts(self) -> Counter[str]:
        """How often each text occurs; none where there were too many to be counted."""
        return Counter() if self._texts is None else self._texts.counts

    @property
    def numbers_seen(self) -> int:
        """How many different numbers there were, as far as they were counted."""
        return len(self._numbers["."].counts)

    @property
    def votes(self) -> tuple[bool, bool]:
        """Whether its numbers show decimal points, and decimal commas."""
        has_numbers = not (self.kinds["text"] or self.kinds["date"]) or self.numeric
        return bool(has_numbers and self.only_point), bool(has_numbers and self.only_comma)

    @property
    def is_text(self) -> bool:
        """Whether its cells are texts, as far as they were seen."""
        kinds = self.kinds
        others = kinds["text"] + bool(kinds["date"] and (kinds["number"] or kinds["truth"]))
        return self.categorical or (
            not self.numeric and bool("text" in self.typed or others or self.code)
        )

    def decided(self, where: str, *, votes: tuple[bool, bool], is_european: bool) -> ColumnSummary:
        """Return what the column is, or refuse dates and cells of several types."""
        kinds = self.kinds
        if not (self.typed or kinds["number"] or kinds["truth"] or kinds["text"] or kinds["date"]):
            return ColumnSummary(self.name, rows=self.rows, gaps=self.rows)
        if self.is_text:
            return self._as_texts(where)
        if kinds["date"] and not self.numeric:
            times = all(re.match(TIME, text) for text in self.strays)
            raise InputError(dates_sentence(self.name, where, "", times))
        comma = self._is_comma(votes, is_european)
        found = self._numbers["," if comma and "," in self._numbers else "."]
        is_boolean = not (kinds["number"] or self.typed - {"boolean"})
        found.values = found.stored = "boolean" if is_boolean else "number"
        if comma or self.marks["."]:
            sign: Literal[".", ","] = "," if comma else "."
            found.written = Written(decimal=sign, marks=tuple(sorted(self.marks[sign])))
        return found

    def _is_comma(self, votes: tuple[bool, bool], is_european: bool) -> bool:
        if self.only_point or self.only_comma:
            return self.only_comma > self.only_point
        points, commas = votes
        if points != commas:
            return commas
        return is_european and self.either_comma > 0

    def _as_texts(self, where: str) -> ColumnSummary:
        found = self._texts or ColumnSummary(self.name, has_more=True)
        if not self.categorical and self.typed & {"number", "boolean"}:
            raise InputError(
                f"Column {self.name!r} of {where} holds numbers in one table and texts in another: "
                f"write it in one way, or take all for categories (--categorical {self.name}; in "
                f"Python categorical=[{self.name!r}])."
            )
        found.values, found.rows, found.gaps = "text", self.rows, self.empty
        types = self.typed
        if not types and not found.has_more and not self.code:
            types = {"number"} if _name_by_numbers(found) else types
        if len(types) == 1:
            (only,) = types
            found.stored = (
                "boolean" if only == "boolean" else "number" if only == "number" else "text"
            )
        return found
