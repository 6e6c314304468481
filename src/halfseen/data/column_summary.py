"""What is known of one column once all of its values were seen."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow.compute as pc

from halfseen.arrays import Floats
from halfseen.data.preprocessing import signed_log
from halfseen.data.schema import Shape, Written
from halfseen.data.values import GAPS

MOST_VALUES = 100_000
"""Different texts of a column that are counted; beyond, it is only known that there are more."""
MOST_NUMBERS = 1_000
"""The same for numbers."""
SAMPLE = 100_000
"""Rows at most from which medians and scales are taken: all of a shorter table, else evenly spaced
ones."""


def counted(values: Any) -> Counter[Any]:
    """Return how often each value of an Arrow column occurs."""
    found: Counter[Any] = Counter()
    for pair in pc.value_counts(values).to_pylist():
        found[pair["values"]] += pair["counts"]
    return found


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

    @property
    def is_empty(self) -> bool:
        return self.gaps == self.rows

    @property
    def holds_nothing(self) -> bool:
        """Whether it is empty, or holds words alone that say so."""
        if self.is_empty:
            return True
        return self.values == "text" and all(
            text.strip().casefold() in GAPS for text in self.counts
        )

    @property
    def gap_share(self) -> float:
        return self.gaps / max(self.rows, 1)

    @property
    def is_constant(self) -> bool:
        return not self.has_more and len(self.counts) == 1

    @property
    def sample(self) -> Floats:
        """The numbers of all rows of a shorter table, of evenly spaced ones else."""
        return np.concatenate(self._sample) if self._sample else np.empty(0)

    @property
    def median(self) -> float:
        sample = self.sample
        return float(np.median(sample)) if len(sample) else 0.0

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
        if self.values == "text":
            known = max(self.rows - self.gaps, 1)
            shares = {value: count / known for value, count in self.counts.most_common(64)}
            distinct = 0 if self.has_more else len(self.counts)
            return Shape(rows=self.rows, gaps=self.gap_share, distinct=distinct, shares=shares)
        sample = self.sample
        if not len(sample):
            return Shape(rows=self.rows, gaps=self.gap_share, distinct=0)
        values, counts = np.unique(sample, return_counts=True)
        own = counts / len(sample)
        steps = np.rint(np.linspace(0, len(sample) - 1, 21)).astype(np.int64)
        second = min(1, len(values) - 1)
        return Shape(
            rows=self.rows,
            gaps=self.gap_share,
            distinct=len(values),
            quantiles=tuple(np.sort(sample)[steps].tolist()),
            low=(float(values[0]), float(own[0]), float(values[second])),
            high=(float(values[-1]), float(own[-1]), float(values[-1 - second])),
        )

    def share(self, value: Any) -> float:
        """Return how much of what has a value has this one, at most."""
        known = max(self.rows - self.gaps, 1)
        return 0.5 if self.has_more else float(self.counts[value] / known)

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
