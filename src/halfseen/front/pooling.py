"""Tables of several sites as one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa

from halfseen.front.tables import Table


class SitePart(NamedTuple):
    """A piece of a site's table."""

    site: str
    part: Any
    path: str


@dataclass(frozen=True, eq=False)
class PooledTable:
    """Tables of several sites, one behind the other; a column that a site lacks is a gap there.

    Parameters
    ----------
    sites
        Tables by name.
    names
        All of their columns.
    """

    sites: Mapping[str, Table]
    names: tuple[str, ...]

    @property
    def where(self) -> str:
        """What messages call the table: all of the sites."""
        *most, last = (table.where for table in self.sites.values())
        return f"{', '.join(most)} and {last}" if most else last

    @property
    def path(self) -> str:
        """The same, for what is printed of files."""
        return self.where

    @property
    def first_row(self) -> int:
        """The number of the first row."""
        return next(iter(self.sites.values())).first_row

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Sentences on how the tables are written, and on columns that some lack."""
        found = [note for table in self.sites.values() for note in table.notes]
        for site, table in self.sites.items():
            absent = [name for name in self.names if name not in table.names]
            if absent:
                more = f" and {len(absent) - 8} more" if len(absent) > 8 else ""
                found.append(f"Gaps in all rows of {site}: {', '.join(absent[:8])}{more}.")
        return tuple(found)

    def only(self, site: str) -> PooledTable:
        """Return one site with the columns of all."""
        return PooledTable({site: self.sites[site]}, self.names)

    def parts(self) -> list[SitePart]:
        """Return the pieces of every site in turn."""
        return [
            SitePart(site, part, str(getattr(part, "path", table.where)))
            for site, table in self.sites.items()
            for part in table.parts()
        ]

    def batches(
        self, columns: Sequence[str] | None = None, parts: Sequence[Any] | None = None
    ) -> Iterator[Any]:
        """Yield record batches that have all of the columns."""
        names = list(self.names if columns is None else columns)
        for place in self.parts() if parts is None else parts:
            table = self.sites[place.site]
            known = [name for name in names if name in table.names]
            # Without any column a batch would not tell how many rows it has.
            read = known or [table.names[0]]
            for batch in table.batches(read, [place.part]):
                filled = [
                    batch.column(name) if name in known else pa.nulls(batch.num_rows)
                    for name in names
                ]
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
    if not isinstance(table, PooledTable):
        return [table]
    return [table.only(site) for site in table.sites]
