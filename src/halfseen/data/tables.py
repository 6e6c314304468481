"""Tables as everything above them sees one: named columns, read as record batches.

:class:`~halfseen.data.table_files.TableFiles` is a table on disk; :class:`ArrowTable` is one in
memory, made of a data frame, an Arrow table or an array; :class:`PooledTable` is those of several
sites.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
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


# --- several sites ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PooledTable:
    """Tables of several sites, one behind the other; a column that a site lacks is a gap there."""

    sites: Mapping[str, Table]
    names: tuple[str, ...]

    @property
    def where(self) -> str:
        *most, last = (table.where for table in self.sites.values())
        return f"{', '.join(most)} and {last}" if most else last

    @property
    def first_row(self) -> int:
        return next(iter(self.sites.values())).first_row

    @cached_property
    def notes(self) -> tuple[str, ...]:
        found = [note for table in self.sites.values() for note in table.notes]
        for site, table in self.sites.items():
            absent = [name for name in self.names if name not in table.names]
            if absent:
                more = f" and {len(absent) - 8} more" if len(absent) > 8 else ""
                found.append(f"Gaps in all rows of {site}: {', '.join(absent[:8])}{more}.")
        return tuple(found)

    @property
    def texts(self) -> frozenset[str]:
        return frozenset(name for table in self.sites.values() for name in table.texts)

    @property
    def is_european(self) -> bool:
        return any(table.is_european for table in self.sites.values())

    def only(self, site: str) -> PooledTable:
        """Return one site with the columns of all."""
        return PooledTable({site: self.sites[site]}, self.names)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        names = list(self.names if columns is None else columns)
        for table in self.sites.values():
            known = [name for name in names if name in table.names]
            # Without any column a batch would not tell how many rows it has.
            for batch in table.batches(known or [table.names[0]]):
                nothing = pa.nulls(batch.num_rows)
                filled = [batch.column(name) if name in known else nothing for name in names]
                yield pa.record_batch(filled, names)

    def fingerprint(self) -> dict[str, Any]:
        """Return what tells these tables from others; each file is named with its site."""
        files = []
        for site, table in self.sites.items():
            found = table.fingerprint()
            own = found["files"] or [{"name": "in memory", "bytes": 0, "sha256": found["sha256"]}]
            files += [file | {"name": f"{site}: {file['name']}"} for file in own]
        return {"files": files}


def each_site(table: Table) -> list[Table]:
    """Return the sites of a table, each with the columns of all; or the table itself."""
    return [table.only(s) for s in table.sites] if isinstance(table, PooledTable) else [table]


def pooled(sites: Mapping[str, Table]) -> Table:
    """Return several tables as one; a single one is left as it is."""
    if len(sites) == 1:
        return next(iter(sites.values()))
    names = tuple(dict.fromkeys(name for table in sites.values() for name in table.names))
    spelled: dict[str, str] = {}
    for name in names:
        other = spelled.setdefault(spelling(name), name)
        if other != name:
            raise InputError(
                f"One site has a column {other!r} and another {name!r}: if they are the same, "
                "give them one name; if not, drop one of them."
            )
    return PooledTable(dict(sites), names)


def named_sites(given: Sequence[tuple[str, Table]], role: str) -> dict[str, Table]:
    """Return tables by name; refuse two of one name."""
    found: dict[str, Table] = {}
    for name, table in given:
        if name in found:
            raise InputError(
                f"Two {role}s are called {name!r} ({found[name].where} and {table.where}): give "
                "each a name of its own."
            )
        found[name] = table
    if not found:
        raise InputError(f"No {role} was given: name at least one table.")
    return found


def site_name(path: Path) -> str:
    """Return what a file's site is called: its name without endings."""
    return path.name.split(".")[0] or path.name


def empty_columns(table: Table, columns: Sequence[str]) -> list[str]:
    """Return those columns in which no row has a value; reads on only while some may be empty."""
    left = list(columns)
    for batch in table.batches(columns) if left else ():
        left = [name for name in left if not has_value(batch.column(name))]
        if not left:
            break
    return left
