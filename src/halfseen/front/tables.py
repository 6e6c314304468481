"""Tables as everything above them sees one: named columns, read as record batches.

:class:`~halfseen.front.files.TableFiles` is a table on disk; :class:`ArrowTable` is one in memory,
made of a data frame, an Arrow table or an array.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from halfseen.front.dates import Dates, with_date_parts

ROWS = 65_536
"""Rows of one batch at most."""


class Table(Protocol):
    """Rows with named columns, read piece by piece."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""

    @property
    def where(self) -> str:
        """What messages call the table."""

    @property
    def first_row(self) -> int:
        """The number of the first row: people count lines of a file from one, Python from zero."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on how it is written, where that is unusual."""

    def parts(self) -> list[Any]:
        """Return the pieces in the order of the rows."""

    def batches(
        self, columns: Sequence[str] | None = None, parts: Sequence[Any] | None = None
    ) -> Iterator[Any]:
        """Yield record batches of bounded size."""

    def fingerprint(self) -> dict[str, Any]:
        """Return what tells this table from others."""


@dataclass(frozen=True, eq=False)
class ArrowTable:
    """A table in memory.

    Parameters
    ----------
    table
        The columns.
    where
        What messages call it.
    positional
        Whether the columns had no names: an array.
    """

    table: pa.Table
    where: str
    positional: bool = False
    first_row: int = 0
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(self.table.column_names)

    def with_dates(self, dates: Dates) -> ArrowTable:
        """Return the table with the parts of dates in the place of those it has."""
        return replace(self, table=with_date_parts(self.table, dates, self.where))

    def parts(self) -> list[int]:
        """Return one piece: all rows are at hand."""
        return [0]

    def batches(
        self, columns: Sequence[str] | None = None, parts: Sequence[Any] | None = None
    ) -> Iterator[Any]:
        """Yield record batches of bounded size; `parts` is for tables that have several."""
        wanted = self.table if columns is None else self.table.select(list(columns))
        yield from wanted.to_batches(max_chunksize=ROWS)

    def fingerprint(self) -> dict[str, Any]:
        """Return the size and a hash of the values."""
        digest = hashlib.sha256(str(self.table.schema).encode())
        for batch in self.table.to_batches(max_chunksize=ROWS):
            with pa.BufferOutputStream() as sink:
                with pa.ipc.new_stream(sink, batch.schema) as writer:
                    writer.write_batch(batch)
                digest.update(sink.getvalue())
        return {"files": [], "sha256": digest.hexdigest()}


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """The rows of a table that have a label; the others are not seen."""

    table: Table
    label: str

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return self.table.names

    @property
    def where(self) -> str:
        """What messages call the table."""
        return self.table.where

    @property
    def first_row(self) -> int:
        """The number of the first row; those without a label are not counted."""
        return self.table.first_row

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on how it is written."""
        return self.table.notes

    def parts(self) -> list[Any]:
        """Return the pieces in the order of the rows."""
        return self.table.parts()

    def batches(
        self, columns: Sequence[str] | None = None, parts: Sequence[Any] | None = None
    ) -> Iterator[Any]:
        """Yield record batches of bounded size."""
        names = list(self.names if columns is None else columns)
        for batch in self.table.batches(list(dict.fromkeys([*names, self.label])), parts):
            empty = pc.is_null(batch.column(self.label), nan_is_null=True)
            yield batch.filter(pc.invert(empty)).select(names)

    def fingerprint(self) -> dict[str, Any]:
        """Return what tells this table from others."""
        return self.table.fingerprint()
