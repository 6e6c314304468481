"""What a column is once all of its values were seen: numbers, texts, truth values or dates.

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
from halfseen.data.arrow_columns import composed, dates_sentence, decoded, is_text, without_empty
from halfseen.data.dates import DATE, TIME
from halfseen.data.schema import Shape, Written, signed_log
from halfseen.data.values import (
    GAPS,
    OTHER,
    PLAIN,
    TRUTHS,
    Marked,
    as_categories,
    as_numbers,
    canonical_number,
    is_gap,
    marked_number,
)
from halfseen.errors import InputError

MOST_VALUES = 100_000
"""Different texts of a column that are counted; beyond, it is only known that there are more."""
MOST_NUMBERS = 1_000
"""The same for numbers, and for texts among them whatever their share."""
SAMPLE = 100_000
"""Rows at most from which medians and scales are taken: all of a shorter table, else evenly spaced
ones."""
MANY_DIGITS = 20
"""Digits from which a number would lose its last ones."""
FEWEST_NUMBERS = 10
"""Different numbers from which a column of texts looks like numbers,"""
MOST_STRAYS = 0.2
"""where at most this share of its rows holds other texts."""
_POINT = r"[eE]|\.\d{0,2}$|\.\d{4,}$|^[-+]?0?\.|\d{4,}\.|^[-+]?0\d*\."
"""A plain number whose point cannot part thousands."""
_CODE = rf"^0\d+$|^\d{{{MANY_DIGITS},}}$"


def counted(values: Any) -> Counter[Any]:
    """Return how often each value of an Arrow column occurs."""
    counts: Counter[Any] = Counter()
    for pair in pc.value_counts(values).to_pylist():
        counts[pair["values"]] += pair["counts"]
    return counts


class Moments(NamedTuple):
    """What numbers are scaled by: their mean, standard deviation and skewness."""

    mean: float
    spread: float
    skewness: float


@dataclass
class ColumnSummary:
    """What is known of one column.

    `values` is what it is taken as (``text`` for categories), `stored` what its cells hold, which
    differs for numbers that are names of categories. `counts` says how often each value occurs,
    and `has_more` that there are more values than it holds; `written` how its texts are read.
    """

    name: str
    values: Literal["text", "number", "boolean", "nothing"] = "nothing"
    stored: Literal["text", "number", "boolean"] = "text"
    written: Written = field(default_factory=Written)
    rows: int = 0
    gaps: int = 0
    counts: Counter[Any] = field(default_factory=Counter)
    has_more: bool = False
    is_whole: bool = True
    least: float = np.inf
    most: float = -np.inf
    _sample: list[Floats] = field(default_factory=list)
    _stride: int = 1
    _shape: Shape | None = None

    @property
    def known(self) -> int:
        """How many rows have a value."""
        return self.rows - self.gaps

    @property
    def holds_nothing(self) -> bool:
        """Whether it is empty, or holds words alone that say so."""
        return not self.known or (self.values == "text" and all(map(is_gap, self.counts)))

    @property
    def is_constant(self) -> bool:
        return not self.has_more and len(self.counts) == 1

    @property
    def sample(self) -> Floats:
        """The numbers of all rows of a shorter table, of evenly spaced ones else."""
        return np.concatenate(self._sample) if self._sample else np.empty(0)

    @property
    def median(self) -> float:
        return float(np.median(self.sample)) if len(self.sample) else 0.0

    def moments(self, *, log: bool = False) -> Moments:
        """Return what the numbers, or their logarithms, are scaled by; a constant is not skewed."""
        values = signed_log(self.sample) if log else self.sample
        if not len(values):
            return Moments(0.0, 0.0, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            mean, spread = values.mean(), values.std()
            skewness = (((values - mean) / spread) ** 3).mean() if spread > 0 else 0.0
        return Moments(float(mean), float(spread), float(skewness))

    def shape(self) -> Shape:
        """Return how the values are distributed, as plain data."""
        if self._shape is None or self._shape.rows != self.rows:
            self._shape = Shape(rows=self.rows, gaps=self.gaps / max(self.rows, 1), **self._facts())
        return self._shape

    def _facts(self) -> dict[str, Any]:
        if self.values == "text":
            frequent = self.counts.most_common(64)
            shares = {value: count / max(self.known, 1) for value, count in frequent}
            return {"distinct": 0 if self.has_more else len(self.counts), "shares": shares}
        if not len(sample := self.sample):
            return {"distinct": 0}
        values, counts = np.unique(sample, return_counts=True)
        own = counts / len(sample)
        steps = np.rint(np.linspace(0, len(sample) - 1, 21)).astype(np.int64)
        second = min(1, len(values) - 1)
        return {
            "distinct": len(values),
            "quantiles": tuple(np.sort(sample)[steps].tolist()),
            "low": (float(values[0]), float(own[0]), float(values[second])),
            "high": (float(values[-1]), float(own[-1]), float(values[-1 - second])),
        }

    def share(self, value: Any) -> float:
        """Return how much of what has a value has this one, at most."""
        return 0.5 if self.has_more else float(self.counts[value] / max(self.known, 1))

    def add_numbers(self, numbers: Floats) -> None:
        """Take in the numbers of some rows, NaN for a gap."""
        present = ~np.isnan(numbers)
        known = numbers[present]
        self.gaps += len(numbers) - len(known)
        # The sample takes every stride-th row of the table.
        kept = np.arange(-self.rows % self._stride, len(numbers), self._stride)
        self._sample.append(numbers[kept][present[kept]])
        if sum(map(len, self._sample)) > SAMPLE:
            self._sample = [np.concatenate(self._sample)[::2]]
            self._stride *= 2
        self.rows += len(numbers)
        if not len(known):
            return
        if not self.has_more:
            values, counts = np.unique(known, return_counts=True)
            self.counts.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
            self.has_more = len(self.counts) > MOST_NUMBERS
        self.least = min(self.least, float(known.min()))
        self.most = max(self.most, float(known.max()))
        self.is_whole = self.is_whole and bool((known == np.rint(known)).all())

    def add_texts(self, texts: Any) -> None:
        """Take in the texts of some rows, null for a gap."""
        self.gaps += texts.null_count
        self.rows += len(texts)
        if not self.has_more:
            self.counts.update(counted(texts.drop_null()))
            self.has_more = len(self.counts) > MOST_VALUES


# --- one text -----------------------------------------------------------------------------------


class Meaning(NamedTuple):
    """What a text may be, and which number where the decimal sign is a point, or a comma."""

    kind: Literal["word", "truth", "number", "date", "text"]
    point: Marked | None = None
    comma: Marked | None = None


@lru_cache(maxsize=100_000)
def meaning_of(text: str) -> Meaning:
    """Return what a text may be."""
    bare = text.strip()
    small = bare.casefold()
    if small in GAPS:
        return Meaning("word")
    if small in TRUTHS:
        return Meaning("truth", Marked(TRUTHS[small]), Marked(TRUTHS[small]))
    if re.match(PLAIN, bare, re.ASCII):
        plain = Marked(float(bare))
        if np.isinf(plain.value):  # 5E400 is a name
            return Meaning("text")
        return Meaning("number", plain, marked_number(bare, ",") or plain)
    point, comma = (marked_number(bare, decimal) for decimal in OTHER)
    if point or comma:
        return Meaning("number", point, comma)
    return Meaning("date" if DATE.fullmatch(bare) or TIME.fullmatch(bare) else "text")


# --- a column of the source ---------------------------------------------------------------------


@dataclass
class UndecidedColumn:
    """What was seen of one column so far; :meth:`decided` says what it is.

    `categorical` and `numeric` are what the user says of it. `most` is how many different texts
    are counted.
    """

    name: str
    categorical: bool = False
    numeric: bool = False
    most: int = MOST_NUMBERS
    rows: int = 0
    empty: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    """How many cells of texts without a type may be what."""
    typed: set[str] = field(default_factory=set)
    """Types of other cells: number, text, boolean."""
    has_floats: bool = False
    words: Counter[str] = field(default_factory=Counter)
    strays: Counter[str] = field(default_factory=Counter)
    code: str = ""
    """A text that is more than a number: 01, or one of very many digits."""
    only: Counter[str] = field(default_factory=Counter)
    """Numbers that show which decimal sign they have."""
    either_comma: int = 0
    """Numbers such as 1,234, which may be two things."""
    marks: dict[str, set[str]] = field(default_factory=lambda: {".": set(), ",": set()})
    _numbers: dict[str, ColumnSummary] = field(default_factory=dict)
    """By decimal sign; that for commas once it differs."""
    _texts: ColumnSummary | None = None

    def __post_init__(self) -> None:
        self._numbers["."] = ColumnSummary(self.name)
        self._texts = ColumnSummary(self.name)

    def add(self, column: Any, *, written: bool, where: str, first_row: int) -> None:
        """Take in the cells of some rows; `written` says that texts have no type of their own."""
        self.categorical |= pa.types.is_dictionary(column.type) and not self.numeric
        values = decoded(column, self.name, where)
        self.rows += len(values)
        kind = values.type
        if pa.types.is_null(kind):
            self.empty += len(values)
        elif is_text(kind):
            texts = without_empty(values.cast(pa.string()))
            self.empty += texts.null_count
            if not written and texts.null_count < len(texts):
                self.typed.add("text")
            if self.categorical or not (written or self.numeric):
                self.kinds["text"] += len(texts) - texts.null_count
                self._add_texts(composed(texts))
            else:
                self._add_written(texts)
        else:
            self.typed.add("boolean" if pa.types.is_boolean(kind) else "number")
            self.has_floats |= pa.types.is_floating(kind)
            if self.categorical:
                texts = as_categories(values, self.name, where=where)
                self.empty += texts.null_count
                self._add_texts(texts)
            else:
                numbers = as_numbers(values, self.name, where=where, first_row=first_row)
                self.empty += int(np.isnan(numbers).sum())
                self._texts = None
                self._add_numbers(numbers)

    def _add_written(self, texts: Any) -> None:
        """Take in texts without a type: at once where all are numbers as programs write them."""
        try:
            numbers = texts.cast(pa.float64()).to_numpy(zero_copy_only=False).astype(np.float64)
        except pa.ArrowInvalid:
            numbers = np.full(1, np.inf)
        if np.isinf(numbers).any():
            self._note_codes(texts)
            self._add_mixed(composed(texts))
            return
        whole = numbers == np.rint(numbers)
        if whole.any():
            self._note_codes(texts if whole.all() else texts.filter(pa.array(whole)))
        if not self.only["."] and pc.any(pc.match_substring(texts, ".")).as_py():
            self.only["."] += pc.sum(pc.match_substring_regex(texts, _POINT)).as_py()
            if not self.only["."]:  # 1.234 may be a thousand
                self._add_mixed(texts)
                return
        known = ~np.isnan(numbers)
        self.kinds["number"] += int(known.sum())
        if texts.null_count < len(texts) - known.sum():  # as NaN, which is a number to Arrow
            words = texts.filter(pa.array(~known)).drop_null()
            self.words += counted(words)
            self.kinds["word"] += len(words)
        self._add_numbers(numbers)
        self._count(texts)

    def _add_mixed(self, texts: Any) -> None:
        """Take in texts of which some are no plain numbers, each different one once."""
        coded = texts.dictionary_encode()
        rows = coded.indices.is_valid().to_numpy(zero_copy_only=False)
        places = coded.indices.drop_null().to_numpy()
        counts = np.bincount(places, minlength=len(coded.dictionary)).tolist()
        point = np.full(len(coded.dictionary), np.nan)
        comma = point.copy()
        for place, text in enumerate(coded.dictionary.to_pylist()):
            meaning, count = meaning_of(text), counts[place]
            self.kinds[meaning.kind] += count
            if meaning.kind in ("word", "text", "date"):
                chosen = self.words if meaning.kind == "word" else self.strays
                if len(chosen) < MOST_VALUES or text in chosen:
                    chosen[text] += count
                continue
            if meaning.kind == "number":
                self._note_signs(text, meaning, count)
            either = meaning.point or meaning.comma
            assert either is not None
            point[place] = (meaning.point or either).value
            comma[place] = (meaning.comma or either).value
        numbers = np.full(len(texts), np.nan)
        with_commas = numbers.copy()
        numbers[rows], with_commas[rows] = point[places], comma[places]
        self._add_numbers(numbers, with_commas)
        self._count(texts)

    def _note_signs(self, text: str, meaning: Meaning, count: int) -> None:
        """Note which decimal sign a number shows."""
        for sign, number in ((".", meaning.point), (",", meaning.comma)):
            self.marks[sign] |= number.marks if number else frozenset()
        if meaning.comma is None or re.search(_POINT, text.strip()):
            self.only["."] += count if "." in text or "," in text else 0
        elif meaning.point is None:
            self.only[","] += count
        elif meaning.point.value != meaning.comma.value and "," in text:
            self.either_comma += count

    def _note_codes(self, texts: Any) -> None:
        if not self.code and not self.numeric:
            long = pc.greater_equal(pc.binary_length(texts), MANY_DIGITS)
            few = texts.filter(pc.or_(pc.starts_with(texts, "0"), long))
            codes = few.filter(pc.match_substring_regex(few, _CODE))
            self.code = codes[0].as_py() if len(codes) else ""

    def _add_numbers(self, numbers: Floats, with_commas: Floats | None = None) -> None:
        """Take in numbers, and what they are if commas are decimal signs, where that differs."""
        if with_commas is None:
            with_commas = numbers
        elif "," not in self._numbers and not np.array_equal(numbers, with_commas, equal_nan=True):
            self._numbers[","] = deepcopy(self._numbers["."])
        if "," in self._numbers:
            self._numbers[","].add_numbers(with_commas)
        self._numbers["."].add_numbers(numbers)

    def _add_texts(self, texts: Any) -> None:
        self._texts = self._texts or ColumnSummary(self.name, has_more=True)
        self._texts.add_texts(texts)

    def _count(self, texts: Any) -> None:
        """Count texts, while there are few enough for a column that may turn out to be one."""
        if self._texts is not None:
            self._texts.add_texts(texts)
            few = len(self._texts.counts) <= max(self.most, self.rows / 2)
            self._texts = self._texts if self.kinds["text"] or few else None

    @property
    def votes(self) -> tuple[bool, bool]:
        """Whether its numbers show decimal points, and decimal commas."""
        has_numbers = not (self.kinds["text"] or self.kinds["date"]) or self.numeric
        return has_numbers and self.only["."] > 0, has_numbers and self.only[","] > 0

    def decided(self, where: str, *, votes: tuple[bool, bool], is_european: bool) -> ColumnSummary:
        """Return what the column is, or refuse dates and cells of several types."""
        kinds = self.kinds
        if not self.typed and not any(kinds[kind] for kind in kinds if kind != "word"):
            return ColumnSummary(self.name, rows=self.rows, gaps=self.rows)
        dated = kinds["date"] and (kinds["number"] or kinds["truth"])
        if self.categorical or (
            not self.numeric and ("text" in self.typed or kinds["text"] or dated or self.code)
        ):
            return self._as_texts(where)
        if kinds["date"] and not self.numeric:
            times = all(TIME.fullmatch(text) for text in self.strays)
            raise InputError(dates_sentence(self.name, where, "", times))
        comma = is_european and self.either_comma > 0
        if self.only["."] or self.only[","]:
            comma = self.only[","] > self.only["."]
        elif votes[0] != votes[1]:
            comma = votes[1]
        sign: Literal[".", ","] = "," if comma else "."
        summary = self._numbers.get(sign, self._numbers["."])
        is_boolean = not (kinds["number"] or self.typed - {"boolean"})
        summary.values = summary.stored = "boolean" if is_boolean else "number"
        if comma or self.marks["."]:
            summary.written = Written(decimal=sign, marks=tuple(sorted(self.marks[sign])))
        return summary

    def _as_texts(self, where: str) -> ColumnSummary:
        summary = self._texts or ColumnSummary(self.name, has_more=True)
        if not self.categorical and self.typed & {"number", "boolean"}:
            raise InputError(
                f"Column {self.name!r} of {where} holds numbers in one table and texts in another: "
                f"write it in one way, or take all for categories (--categorical {self.name}; in "
                f"Python categorical=[{self.name!r}])."
            )
        summary.values, summary.rows, summary.gaps = "text", self.rows, self.empty
        is_open = not self.typed and not summary.has_more and not self.code
        if self.typed == {"number"} or (is_open and _name_by_numbers(summary)):
            summary.stored = "number"
        elif self.typed == {"boolean"}:
            summary.stored = "boolean"
        return summary

    def numbers_but_for(self, decided: ColumnSummary) -> Counter[str]:
        """Return the few texts but for which a column of texts would be one of numbers."""
        strays, numbers = self.strays, self.kinds["number"]
        several = len(self._numbers["."].counts)
        if "text" in self.typed:  # of a column of texts, as another program has it
            kinds = {text: meaning_of(text).kind for text in decided.counts}
            strays = Counter(
                {t: decided.counts[t] for t, k in kinds.items() if k in ("text", "date")}
            )
            several = sum(kind == "number" for kind in kinds.values())
            numbers = sum(decided.counts[t] for t, kind in kinds.items() if kind == "number")
        few = strays.total() <= MOST_STRAYS * decided.known
        return strays if numbers and several > FEWEST_NUMBERS and few else Counter()

    def labels(self, decided: ColumnSummary) -> Counter[Any]:
        """Return how often each label occurs: numbers and truth values where it holds such.

        Truth values of a text file stay the texts that they are.
        """
        texts = {} if self._texts is None else self._texts.counts
        texts = {text: count for text, count in texts.items() if not is_gap(text)}
        if decided.values == "text":
            return decided.counts
        if decided.values == "boolean":
            typed = {bool(value): count for value, count in decided.counts.items()}
            return Counter(typed if self.typed else texts)
        whole = not self.has_floats and all(t.strip().lstrip("+-").isdigit() for t in texts)
        return Counter({int(v) if whole else v: count for v, count in decided.counts.items()})


def _name_by_numbers(column: ColumnSummary) -> bool:
    """Call the categories of a column by whole numbers, where that loses nothing: 2.0 becomes 2.

    Then words that mean a gap are gaps, as among numbers.
    """
    known = [text for text in column.counts if not is_gap(text)]
    if not all(re.fullmatch(r"-?(0|[1-9]\d*)(\.0+)?", t.strip(), re.ASCII) for t in known):
        return False
    named = {text: canonical_number(text) for text in known}
    if not known or len(set(named.values())) < len(known):
        return False
    counts = Counter({str(named[text]): column.counts[text] for text in known})
    column.gaps += column.counts.total() - counts.total()
    column.counts = counts
    return True
