"""Tables as everything above them sees one: named columns, read as record batches.

:class:`~halfseen.data.table_files.TableFiles` is a table on disk; :class:`ArrowTable` is one in
memory, made of a data frame, an Arrow table or an array; :class:`PooledTable` is several as one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import pyarrow as pa

from halfseen.data.arrow_columns import has_value
from halfseen.data.values import spelling
from halfseen.errors import InputError

BATCH_ROWS = 65_536
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

    @property
    def texts(self) -> frozenset[str]:
        """Columns whose cells have no type of their own: a schema says what their texts mean."""

    @property
    def is_european(self) -> bool:
        """Whether commas do not part the columns of a text file, so that they may be decimal."""

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Yield record batches of at most :data:`BATCH_ROWS` rows in order."""

    def fingerprint(self) -> dict[str, Any]:
        """Return what tells this table from others."""


@dataclass(frozen=True, eq=False)
class ArrowTable:
    """A table in memory; `positional` says that its columns had no names: an array."""

    table: pa.Table
    where: str
    positional: bool = False
    first_row: int = 0
    notes: tuple[str, ...] = ()
    texts: frozenset[str] = frozenset()
    is_european: bool = False

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(self.table.column_names)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        wanted = self.table if columns is None else self.table.select(list(columns))
        yield from wanted.to_batches(max_chunksize=BATCH_ROWS)

    def fingerprint(self) -> dict[str, Any]:
        digest = hashlib.sha256(str(self.table.schema).encode())
        for batch in self.table.to_batches(max_chunksize=BATCH_ROWS):
            with pa.BufferOutputStream() as sink:
                with pa.ipc.new_stream(sink, batch.schema) as writer:
                    writer.write_batch(batch)
                digest.update(sink.getvalue())
        return {"files": [], "sha256": digest.hexdigest()}


@dataclass(frozen=True, eq=False)
class PooledTable:
    """Several tables, one behind the other; a column that one of them lacks is a gap there."""

    parts: tuple[Table, ...]
    names: tuple[str, ...]

    @property
    def where(self) -> str:
        *most, last = (part.where for part in self.parts)
        return f"{', '.join(most)} and {last}" if most else last

    @property
    def first_row(self) -> int:
        return self.parts[0].first_row

    @cached_property
    def notes(self) -> tuple[str, ...]:
        notes = [note for part in self.parts for note in part.notes]
        for part in self.parts:
            absent = [name for name in self.names if name not in part.names]
            if absent:
                more = f" and {len(absent) - 8} more" if len(absent) > 8 else ""
                notes.append(f"Gaps in all rows of {part.where}: {', '.join(absent[:8])}{more}.")
        return tuple(notes)

    @property
    def texts(self) -> frozenset[str]:
        return frozenset(name for part in self.parts for name in part.texts)

    @property
    def is_european(self) -> bool:
        return any(part.is_european for part in self.parts)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        names = list(self.names if columns is None else columns)
        for part in self.parts:
            known = [name for name in names if name in part.names]
            # Without any column a batch would not tell how many rows it has.
            for batch in part.batches(known or [part.names[0]]):
                nothing = pa.nulls(batch.num_rows)
                filled = [batch.column(name) if name in known else nothing for name in names]
                yield pa.record_batch(filled, names)

    def fingerprint(self) -> dict[str, Any]:
        files: list[dict[str, Any]] = []
        for part in self.parts:
            own = part.fingerprint()
            files += own["files"] or [{"name": part.where, "bytes": 0, "sha256": own["sha256"]}]
        return {"files": files}


def parts_of(table: Table) -> list[Table]:
    """Return what a table was pooled of, each with the columns of all; or the table itself."""
    if not isinstance(table, PooledTable):
        return [table]
    return [PooledTable((part,), table.names) for part in table.parts]


def pooled(tables: Sequence[Table]) -> Table:
    """Return several tables as one; a single one is left as it is."""
    if len(tables) == 1:
        return tables[0]
    names = tuple(dict.fromkeys(name for table in tables for name in table.names))
    spelled: dict[str, str] = {}
    for name in names:
        other = spelled.setdefault(spelling(name), name)
        if other != name:
            raise InputError(
                f"One table has a column {other!r} and another {name!r}: if they are the same, "
                "give them one name; if not, drop one of them."
            )
    return PooledTable(tuple(tables), names)


def empty_columns(table: Table, columns: Sequence[str]) -> list[str]:
    """Return those columns in which no row has a value; reads on only while some may be empty."""
    left = list(columns)
    for batch in table.batches(columns) if left else ():
        left = [name for name in left if not has_value(batch.column(name))]
        if not left:
            break
    return left
