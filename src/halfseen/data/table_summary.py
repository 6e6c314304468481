"""One streamed pass over a table: all that types, spec and preprocessing are decided from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from halfseen.data.column_summary import MOST_VALUES, ColumnSummary, counted
from halfseen.data.column_types import UndecidedColumn
from halfseen.data.dates import Dates, common_zone, date_parts, zones_of
from halfseen.data.schema import DateColumn, Shape, Written
from halfseen.data.tables import Table, each_site
from halfseen.data.values import (
    GAPS,
    Unread,
    as_categories,
    as_numbers,
    composed,
    counts,
    decoded,
    is_text,
    number_of,
    one_array,
    plain_array,
    quoted,
)
from halfseen.errors import InputError

SAMPLED_ROWS = 2_000
"""Rows that are kept as they are; of a longer table evenly spaced ones."""


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
    notes: list[str] = field(default_factory=list)
    unread: Unread = field(default_factory=Unread)
    undecided: dict[str, UndecidedColumn] = field(default_factory=dict)
    zones: dict[str, set[str]] = field(default_factory=dict)
    """What zones the times of a column of dates have; "" for those without one."""
    sample: list[Any] = field(default_factory=list)
    """Some rows as the table has them."""


def _batches(
    table: Table, wanted: Collection[str], summary: TableSummary, weight: str | None = None
) -> Iterator[tuple[Any, Table, int]]:
    """Give batches of all sites, each with its site and the number of its first row there.

    Rows whose `weight` is zero are left out.
    """
    names = list(dict.fromkeys(name for name in wanted if name in table.names))
    for site in each_site(table):
        row = site.first_row
        for batch in site.batches(names):
            counted = batch if weight is None else batch.filter(counts(batch.column(weight)))
            yield counted, site, row
            row += batch.num_rows
            summary.rows += counted.num_rows


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
    plain = [name for name in columns if name not in dates]
    apart = [name for name in (label, weight) if name is not None]
    open_columns = {
        name: UndecidedColumn(name, name in categorical, name in numeric)
        for name in (*plain, *apart)
    }
    summary.undecided = open_columns
    if label is not None:
        open_columns[label].most = MOST_VALUES
    typed_labels: Counter[Any] = Counter()
    sample = _Sample()
    problems: dict[str, str] = {}
    parts: dict[str, ColumnSummary] = {}
    zones = summary.zones
    wanted = [*open_columns, *(name for name in dates if name in columns)]
    for batch, site, first_row in _batches(table, wanted, summary, weight):
        texts = site.texts
        sample.add(batch, summary.rows)
        for name, column in open_columns.items():
            if name not in problems:
                try:
                    cells = batch.column(name)
                    if name in apart:  # labels and weights are what they are, coded or not
                        cells = plain_array(one_array(cells))
                    column.add(
                        cells,
                        written=name in texts,
                        where=site.where,
                        first_row=first_row,
                    )
                except InputError as error:
                    problems[name] = str(error)
        for name in dates:
            if name in batch.schema.names and name not in problems:
                try:
                    _add_dates(
                        summary, parts, zones, name, batch.column(name), site, first_row,
                        is_source=True,
                    )  # fmt: skip
                except InputError as error:
                    problems[name] = str(error)
        is_typed = label is not None and label not in texts and label not in problems
        if label is not None and is_typed and len(typed_labels) <= MOST_VALUES:
            typed_labels += _typed_labels(batch.column(label), label, site.where)
    summary.sample = sample.batches
    votes = [column.votes for column in open_columns.values()]
    shown = any(points for points, _ in votes), any(commas for _, commas in votes)
    decided: dict[str, ColumnSummary] = {}
    for name, column in open_columns.items():
        if name in problems:
            continue
        try:
            decided[name] = column.decided(table.where, votes=shown, is_european=table.is_european)
        except InputError as error:
            problems[name] = str(error)
    summary.columns = {n: decided[n] for n in plain if n in decided} | parts
    for name in apart:
        if name in decided:
            summary.written[name] = decided[name].written
    if label is not None and label in decided:
        summary.labels = _labels(open_columns[label], decided[label], typed_labels)
        summary.amounts = decided[label] if decided[label].values == "number" else None
        summary.labelled = decided[label].rows - decided[label].gaps
    summary.problems = [*problems.values(), *_date_problems(summary)]
    return summary


def _date_problems(summary: TableSummary) -> list[str]:
    """Say which columns of dates hold what is no date."""
    noted = ((name, summary.unread.gaps.get(name)) for name in summary.dates)
    return [
        f"Column {name!r} of {summary.table.where} holds {quoted(cells.text)} in row {cells.row} "
        "where dates are needed: write them as 2024-05-17, 17.05.2024 or 2024-05-17 13:45:00."
        for name, cells in noted
        if cells is not None
    ]


def summarize_as(
    table: Table,
    columns: Mapping[str, ColumnSummary],
    *,
    dates: Dates,
    numeric: Collection[str] = (),
    label: str | None = None,
    label_stored: Any = "text",
    shapes: Mapping[str, Shape] | None = None,
) -> TableSummary:
    """Pass over another table once, whose columns are what those of the source are.

    Labels are counted as texts, and rows without one are not.
    """
    summary = TableSummary(table, dates=dict(dates))
    known = shapes or {name: column.shape() for name, column in columns.items()}
    made = {f"{name} {part}" for name, of in dates.items() for part in of.parts}
    found = {
        name: ColumnSummary(name, values=like.values, stored=like.stored, written=like.written)
        for name, like in columns.items()
        if name not in made
    }
    parts: dict[str, ColumnSummary] = {}
    problems: dict[str, str] = {}
    of_dates = [
        name for name, of in dates.items() if any(f"{name} {p}" in columns for p in of.parts)
    ]
    wanted = [*found, *of_dates, *([] if label is None else [label])]
    for batch, site, first_row in _batches(table, wanted, summary):
        for name, column in found.items():
            if name in problems:
                continue
            try:
                _add_like(
                    column,
                    columns[name],
                    known[name],
                    batch.column(name),
                    site,
                    first_row,
                    name in numeric,
                    summary.unread,
                )
            except InputError as error:
                problems[name] = str(error)
        for name in of_dates:
            if name not in problems:
                try:
                    _add_dates(
                        summary, parts, summary.zones, name, batch.column(name), site, first_row,
                        is_source=False,
                    )  # fmt: skip
                except InputError as error:
                    problems[name] = str(error)
        if label is not None:
            texts = as_categories(batch.column(label), label, where=site.where, stored=label_stored)
            summary.labels += counted(texts.drop_null())
    summary.columns = found | {name: column for name, column in parts.items() if name in columns}
    summary.problems = [*problems.values(), *_date_problems(summary)]
    return summary


def _add_like(
    column: ColumnSummary, like: ColumnSummary, shape: Shape, values: Any, site: Table,
    first_row: int, strays: bool, unread: Unread,
) -> None:  # fmt: skip
    """Take in cells of a column as the source's are."""
    if like.values == "text":
        column.add_texts(
            as_categories(
                values, column.name, where=site.where, stored=like.stored, known=like.counts
            )
        )
        return
    column.add_numbers(
        as_numbers(
            values,
            column.name,
            where=site.where,
            first_row=first_row,
            strays=strays,
            written=like.written,
            shape=shape,
            unread=unread,
        )
    )


def _add_dates(
    summary: TableSummary, parts: dict[str, ColumnSummary], zones: dict[str, set[str]],
    name: str, column: Any, site: Table, first_row: int, *, is_source: bool,
) -> None:  # fmt: skip
    """Take in the parts of a column of dates; the first times of a source tell its zone."""
    of = summary.dates[name]
    there = zones_of(column)
    if of.zone is None and there - {""} and is_source:
        of = summary.dates[name] = of.model_copy(update={"zone": common_zone(there)})
    zones.setdefault(name, set()).update(there)
    found = date_parts(
        column, name, of, where=site.where, first_row=first_row, unread=summary.unread
    )
    for part, numbers in found.items():
        made = parts.setdefault(f"{name} {part}", ColumnSummary(f"{name} {part}"))
        made.values = made.stored = "number"
        made.add_numbers(numbers)


def _typed_labels(column: Any, label: str, where: str) -> Counter[Any]:
    """Count labels that have a type of their own."""
    values = decoded(column, label, where)
    if is_text(values.type):
        values = composed(values.cast(pa.string()))
        values = values.filter(pc.not_equal(values, ""), null_selection_behavior="drop")
    if pa.types.is_floating(values.type):
        values = values.filter(pc.is_finite(values), null_selection_behavior="drop")
    return counted(values.drop_null())


def _labels(column: UndecidedColumn, decided: ColumnSummary, typed: Counter[Any]) -> Counter[Any]:
    """Return how often each label occurs: numbers and truth values where the column holds such.

    Truth values of a text file stay the texts that they are.
    """
    written = {text: n for text, n in column.counts.items() if text.strip().casefold() not in GAPS}
    if decided.values == "text":
        return Counter(decided.counts)
    if decided.values == "boolean" and not column.typed:
        return Counter(written)
    found = Counter(typed)
    if not written and not typed:
        return Counter(decided.counts)
    whole = all(text.strip().lstrip("+-").isdigit() for text in written)
    for text, count in written.items():
        value = number_of(text, decided.written).value
        assert value is not None
        found[bool(value) if decided.values == "boolean" else int(value) if whole else value] += (
            count
        )
    return found


class _Sample:
    """Rows of a table as they are: all of a short one, evenly spaced ones of a longer one."""

    def __init__(self) -> None:
        self.batches: list[Any] = []
        self._stride = 1

    def add(self, batch: Any, first: int) -> None:
        """Take in a batch whose first row has this place in the table."""
        self.batches.append(
            batch.take(pa.array(range(-first % self._stride, len(batch), self._stride)))
        )
        while sum(map(len, self.batches)) > 2 * SAMPLED_ROWS:
            self._stride *= 2
            whole = pa.Table.from_batches(self.batches).combine_chunks()
            self.batches = whole.take(pa.array(range(0, len(whole), 2))).to_batches()
