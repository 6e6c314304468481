"""Single cells of rows: what could not be read, and what the source never had."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from halfseen.alarms import Alarm
from halfseen.data.preprocessing import ReadRows
from halfseen.data.schema import NumberColumn, TableSchema
from halfseen.data.unusual import outside
from halfseen.data.values import Unread, quoted

FAR = 3.0
"""How many times the range of the source's values a number is beyond them that is far outside."""


class First(NamedTuple):
    """The first of some cells: what it holds, and its row."""

    value: Any
    row: int


@dataclass
class CellAlarms:
    """Gathers what is strange in the cells of rows, as they are read."""

    schema: TableSchema
    unread: Unread = field(default_factory=Unread)
    counts: Counter[str] = field(default_factory=Counter)
    firsts: dict[str, First] = field(default_factory=dict)

    def add(self, read: ReadRows) -> None:
        """Take in some rows."""
        self.unread.update(read.unread)
        for column in self.schema.observed:
            values = read.columns[column.name]
            strange = outside(column, values, FAR)
            if len(strange):
                place = int(strange[0])
                value = values[place] if isinstance(column, NumberColumn) else values[place].as_py()
                self.counts[column.name] += len(strange)
                self.firsts.setdefault(column.name, First(value, place + read.first_row))

    def alarms(self) -> Iterator[Alarm]:
        """Yield what looks wrong, column by column."""
        yield from unread_alarms(self.unread)
        for column in self.schema.observed:
            if column.name not in self.counts:
                continue
            name, count, first = column.name, self.counts[column.name], self.firsts[column.name]
            shape = column.shape
            assert shape is not None
            figures = {"rows": float(count), "row": float(first.row)}
            if isinstance(column, NumberColumn):
                low, high = shape.quantiles[0], shape.quantiles[-1]
                says = (
                    f"{name} is {first.value:g} in row {first.row}{_more(count, 'as far')}, far "
                    f"outside what the source has ({low:g} to {high:g}): another unit, or a slip?"
                )
                yield Alarm("far", says, (name,), figures)
            else:
                says = (
                    f"{name} is {quoted(first.value)} in row {first.row}{_more(count, 'others')}, "
                    "which the source never had: is it spelled as there?"
                )
                yield Alarm("unseen", says, (name,), figures)


def unread_alarms(unread: Unread) -> Iterator[Alarm]:
    """Yield an alarm for each column with cells that could not be read, or not as they should."""
    for name, noted in unread.gaps.items():
        count, text, row = noted.cells, noted.text, noted.row
        says = (
            f"{name} holds {quoted(text)} in row {row}{_more(count, 'something like it')}, which "
            "cannot be read as the column is written: taken for a gap."
        )
        yield Alarm("unreadable", says, (name,), {"rows": float(count), "row": float(row)})
    for name, noted in unread.otherwise.items():
        count, text, row = noted.cells, noted.text, noted.row
        says = (
            f"{name} holds {quoted(text)} in row {row}{_more(count, 'something like it')}: read "
            "with the other decimal sign, because only so it fits what the source has."
        )
        yield Alarm("written otherwise", says, (name,), {"rows": float(count), "row": float(row)})


def _more(count: int, what: str) -> str:
    """Return how many more rows there are, as a part of a sentence."""
    if count < 2:
        return ""
    return f" (and {what} in {count - 1:,} more)"
