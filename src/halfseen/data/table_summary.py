"""One streamed pass over a table: all that types, spec and preprocessing are decided from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa

from halfseen.data.arrow_columns import plain_array
from halfseen.data.column_types import MOST_VALUES, ColumnSummary, UndecidedColumn, counted
from halfseen.data.dates import AS_DATES, Dates, common_zone, date_parts, zones_of
from halfseen.data.schema import DateColumn, Written
from halfseen.data.tables import Table, parts_of
from halfseen.data.values import Unread, as_categories, as_numbers, counts, quoted
from halfseen.errors import InputError

SAMPLED_ROWS = 2_000
"""Rows that are kept as they are; of a longer table evenly spaced ones."""
Reader = Callable[[Any, Table, int], None]
"""Takes in the cells of a column, with their part and the number of the first row there."""


@dataclass
class TableSummary:
    """What is known of one table: the columns that were looked at, and how often labels occur.

    Of labels that are numbers not all are counted, and `amounts` sums them up.
    """

    table: Table
    rows: int = 0
    labelled: int = 0
    """Rows that have a label."""
    columns: dict[str, ColumnSummary] = field(default_factory=dict)
    labels: Counter[Any] = field(default_factory=Counter)
    amounts: ColumnSummary | None = None
    dates: dict[str, DateColumn] = field(default_factory=dict)
    """Columns of dates, each with the zone of its clock."""
    written: dict[str, Written] = field(default_factory=dict)
    """How the label and the weight are written, where they are numbers in texts."""
    problems: list[str] = field(default_factory=list)
    unread: Unread = field(default_factory=Unread)
    undecided: dict[str, UndecidedColumn] = field(default_factory=dict)
    zones: dict[str, set[str]] = field(default_factory=dict)
    """What zones the times of a column of dates have; "" for those without one."""
    sample: list[Any] = field(default_factory=list)
    """Some rows of a source as the table has them."""
    _stride: int = 1

    def read(self, readers: Mapping[str, Reader], weight: str | None = None) -> dict[str, str]:
        """Pass over the table, less rows of weight zero; return what is wrong with columns."""
        problems: dict[str, str] = {}
        # Without any column a batch would not tell how many rows it has.
        names = list(readers) or [self.table.names[0]]
        for part in parts_of(self.table):
            first_row = part.first_row
            for whole in part.batches(names):
                batch = whole if weight is None else whole.filter(counts(whole.column(weight)))
                if self.undecided:
                    self._keep_some(batch)
                for name, read in readers.items():
                    if name not in problems:
                        try:
                            read(batch.column(name), part, first_row)
                        except InputError as error:
                            problems[name] = str(error)
                first_row += whole.num_rows
                self.rows += batch.num_rows
        return problems

    def _keep_some(self, batch: Any) -> None:
        first = -self.rows % self._stride
        self.sample.append(batch.take(pa.array(range(first, len(batch), self._stride))))
        while sum(map(len, self.sample)) > 2 * SAMPLED_ROWS:
            self._stride *= 2
            whole = pa.Table.from_batches(self.sample).combine_chunks()
            self.sample = whole.take(pa.array(range(0, len(whole), 2))).to_batches()

    def read_dates(self, name: str, cells: Any, part: Table, row: int, is_source: bool) -> None:
        """Take in the parts of a column of dates; the first times of a source tell its zone."""
        of, zones = self.dates[name], zones_of(cells)
        if is_source and of.zone is None:
            of = self.dates[name] = of.model_copy(update={"zone": common_zone(zones)})
        self.zones.setdefault(name, set()).update(zones)
        parts = date_parts(cells, name, of, where=part.where, first_row=row, unread=self.unread)
        for each, numbers in parts.items():
            made = self.columns.setdefault(f"{name} {each}", ColumnSummary(f"{name} {each}"))
            made.values = made.stored = "number"
            made.add_numbers(numbers)

    def note_problems(self, problems: Mapping[str, str]) -> None:
        """Keep what is wrong with columns, and which columns of dates hold what is no date."""
        self.problems = list(problems.values())
        for name in self.dates:
            if cells := self.unread.gaps.get(name):
                self.problems.append(
                    f"Column {name!r} of {self.table.where} holds {quoted(cells.text)} in row "
                    f"{cells.row} where dates are needed: {AS_DATES}"
                )


def summarize_source(
    table: Table,
    columns: Collection[str],
    *,
    dates: Dates,
    categorical: Collection[str] = (),
    numeric: Collection[str] = (),
    label: str | None = None,
    weight: str | None = None,
) -> TableSummary:
    """Pass over a labelled table once; decide what its columns are, and return what is known.

    What cannot be used is among the problems of the summary, a sentence for each column.
    """
    summary = TableSummary(table, dates=dict(dates))
    apart = [name for name in (label, weight) if name is not None]
    undecided = summary.undecided = {
        name: UndecidedColumn(name, name in categorical, name in numeric)
        for name in (*columns, *apart)
        if name not in dates
    }
    if label is not None:
        undecided[label].most = MOST_VALUES

    def read(name: str, cells: Any, part: Table, row: int) -> None:
        # Labels and weights are what they are, coded or not.
        cells = plain_array(cells) if name in apart else cells
        undecided[name].add(cells, written=name in part.texts, where=part.where, first_row=row)

    readers: dict[str, Reader] = {name: partial(read, name) for name in undecided}
    dated = [name for name in dates if name in columns]
    readers |= {name: partial(summary.read_dates, name, is_source=True) for name in dated}
    problems = summary.read(readers, weight)
    votes = [column.votes for column in undecided.values()]
    shown = any(points for points, _ in votes), any(commas for _, commas in votes)
    decided: dict[str, ColumnSummary] = {}
    for name in (name for name in undecided if name not in problems):
        column = undecided[name]
        try:
            decided[name] = column.decided(table.where, votes=shown, is_european=table.is_european)
        except InputError as error:
            problems[name] = str(error)
    own = {name: column for name, column in decided.items() if name in columns}
    summary.columns = own | summary.columns
    summary.written = {name: decided[name].written for name in apart if name in decided}
    if label in decided and label is not None:
        label_summary = decided[label]
        summary.labels = undecided[label].labels(label_summary)
        summary.amounts = label_summary if label_summary.values == "number" else None
        summary.labelled = label_summary.known
    summary.note_problems(problems)
    return summary


def summarize_as(
    table: Table,
    columns: Mapping[str, ColumnSummary],
    *,
    dates: Dates,
    numeric: Collection[str] = (),
    label: str | None = None,
    label_stored: Any = "text",
) -> TableSummary:
    """Pass over another table once, whose columns are what those of the source are.

    Labels are counted as texts, and rows without one are not.
    """
    summary = TableSummary(table, dates=dict(dates))
    made = {f"{name} {part}" for name, of in dates.items() for part in of.parts}
    found = {
        name: ColumnSummary(name, values=like.values, stored=like.stored, written=like.written)
        for name, like in columns.items()
        if name not in made
    }

    def read(name: str, cells: Any, part: Table, row: int) -> None:
        like, where = columns[name], part.where
        if like.values == "text":
            found[name].add_texts(
                as_categories(cells, name, where=where, stored=like.stored, known=like.counts)
            )
        else:
            numbers = as_numbers(
                cells, name, where=where, first_row=row, strays=name in numeric,
                written=like.written, shape=like.shape(), unread=summary.unread,
            )  # fmt: skip
            found[name].add_numbers(numbers)

    def read_label(cells: Any, part: Table, row: int) -> None:
        texts = as_categories(cells, str(label), where=part.where, stored=label_stored)
        summary.labels += counted(texts.drop_null())

    readers: dict[str, Reader] = {name: partial(read, name) for name in found}
    for name, of in dates.items():
        if any(f"{name} {part}" in columns for part in of.parts):
            readers[name] = partial(summary.read_dates, name, is_source=False)
    problems = summary.read(readers if label is None else readers | {label: read_label})
    summary.columns = found | {n: c for n, c in summary.columns.items() if n in columns}
    summary.note_problems(problems)
    return summary
