"""One streamed pass over a table: all that types, roles and preprocessing are decided from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfseen.arrays import Floats
from halfseen.errors import InputError
from halfseen.front.labels import counted
from halfseen.front.preprocessing import as_categories, as_numbers, decoded, is_text, signed_log
from halfseen.front.schema import Shape
from halfseen.front.tables import Table, each_site

MOST_VALUES = 100_000
"""Different texts of a column that are counted; beyond, it is only known that there are more."""
MOST_NUMBERS = 1_000
"""The same for numbers."""
SAMPLE = 100_000
"""Rows at most from which medians and scales are taken: all of a shorter table, else evenly spaced
ones."""


class EmptyLabelError(Exception):
    """A source row has no label: such rows are left out."""


class Moments(NamedTuple):
    """What numbers are scaled by: their mean, standard deviation and skewness."""

    mean: float
    spread: float
    skewness: float


@dataclass
class ColumnSummary:
    """What is known of one column.

    `values` is what it is taken as (``text`` for categories), `stored` what the file holds, which
    differs for numbers that are names of categories. `counts` says how often each value occurs,
    and `has_more` that there are more values than it holds.
    """

    name: str
    values: Literal["text", "number", "boolean", "nothing"] = "nothing"
    stored: Literal["text", "number", "boolean"] = "text"
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

    def add(
        self,
        column: Any,
        *,
        where: str,
        first_row: int,
        categorical: bool = False,
        numeric: bool = False,
    ) -> None:
        """Take in one batch of the column; `numeric` takes texts for gaps among numbers."""
        kind = decoded(column, self.name, where).type
        categorical = categorical or (pa.types.is_dictionary(column.type) and not numeric)
        if self.values == "nothing" and not pa.types.is_null(kind):
            is_boolean = pa.types.is_boolean(kind)
            self.stored = "text" if is_text(kind) else "boolean" if is_boolean else "number"
            self.values = "text" if categorical else "number" if numeric else self.stored
        if categorical or self.values == "text":
            texts = as_categories(column, self.name, where=where)
            self.gaps += texts.null_count
            if not self.has_more:
                self.counts.update(counted(texts.drop_null()))
                self.has_more = len(self.counts) > MOST_VALUES
        else:
            first = first_row + self.rows
            self._add_numbers(
                as_numbers(column, self.name, where=where, first_row=first, strays=numeric)
            )
        self.rows += len(column)

    def _add_numbers(self, numbers: Floats) -> None:
        present = ~np.isnan(numbers)
        known = numbers[present]
        self.gaps += len(numbers) - len(known)
        # The sample takes every stride-th row of the table.
        kept = np.arange(-self.rows % self._stride, len(numbers), self._stride)
        self._sample.append(numbers[kept][present[kept]])
        if sum(map(len, self._sample)) > SAMPLE:
            self._sample = [np.concatenate(self._sample)[::2]]
            self._stride *= 2
        if not len(known):
            return
        if not self.has_more:
            values, counts = np.unique(known, return_counts=True)
            self.counts.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
            self.has_more = len(self.counts) > MOST_NUMBERS
        self.least = min(self.least, float(known.min()))
        self.most = max(self.most, float(known.max()))
        self.is_whole = self.is_whole and bool((known == np.rint(known)).all())


@dataclass
class TableSummary:
    """What is known of one table: the columns that were looked at, and how often labels occur.

    Of labels that are numbers not all are counted, and `amounts` sums them up.
    """

    table: Table
    rows: int = 0
    columns: dict[str, ColumnSummary] = field(default_factory=dict)
    labels: Counter[Any] = field(default_factory=Counter)
    amounts: ColumnSummary | None = None


def summarize(
    table: Table,
    columns: Collection[str],
    *,
    categorical: Collection[str] = (),
    numeric: Collection[str] = (),
    label: str | None = None,
    all_labelled: bool = True,
) -> TableSummary:
    """Pass over a table once and return what is known of the given columns.

    Where not all rows need be labelled, labels are counted as texts.
    """
    summary = TableSummary(table, columns={name: ColumnSummary(name) for name in columns})
    wanted = [*columns, *([] if label is None else [label])]
    for site in each_site(table):
        # Rows are counted over all sites, and named by their number in their own.
        where, first_row = site.where, site.first_row - summary.rows
        for batch in site.batches(wanted):
            for name, column in summary.columns.items():
                column.add(
                    batch.column(name),
                    where=where,
                    first_row=first_row,
                    categorical=name in categorical,
                    numeric=name in numeric,
                )
            if label is not None and not all_labelled:
                texts = as_categories(batch.column(label), label, where=where)
                summary.labels += counted(texts.drop_null())
            elif label is not None:
                _add_labels(summary, batch.column(label), label, where, first_row)
            summary.rows += batch.num_rows
    return summary


def _add_labels(summary: TableSummary, column: Any, label: str, where: str, first_row: int) -> None:
    """Take in the labels of one batch, as values and, where they are numbers, as amounts."""
    values = decoded(column, label, where)
    if pc.any(pc.is_null(values, nan_is_null=True)).as_py():
        raise EmptyLabelError
    found = counted(values)
    if not summary.rows:
        summary.amounts = ColumnSummary(label)
    if any(isinstance(value, str | bool) for value in found):
        summary.amounts = None
    if summary.amounts is not None:
        summary.amounts.add(values, where=where, first_row=first_row)
    if len(summary.labels) <= MOST_VALUES:
        summary.labels += found
    elif summary.amounts is None:
        raise InputError(
            f"The label {label!r} of {where} has more than {MOST_VALUES:,} different values; a few "
            "classes are needed."
        )
