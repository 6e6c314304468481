"""Excel workbooks: the first sheet as an Arrow table, within bounds."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from halfseen.data.values import cells_of
from halfseen.errors import InputError, installed_by, one_line

LARGEST = 128 * 2**20
"""Bytes that a workbook may unpack to."""
MOST_CELLS = 5_000_000
"""Cells of a sheet: 28 kB of Excel can stand for fifty million empty ones."""
_ERRORS = ("#N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!")


class Sheet(NamedTuple):
    """The first sheet of a workbook."""

    table: pa.Table
    names: tuple[str, ...]
    """Of all sheets."""
    mixed: frozenset[str]
    """Columns with cells of several kinds, which are texts here."""


def read_sheet(path: Path) -> Sheet:
    """Return the first sheet of a workbook; it is read once for all passes.

    Its first row holds the names of the columns.
    """
    stat = path.stat()
    return _read(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=4)
def _read(path: Path, changed: int, size: int) -> Sheet:
    with installed_by("excel", f"{path} (or save it as CSV)"):
        from openpyxl import load_workbook
    try:
        with zipfile.ZipFile(path) as packed:
            unpacked = sum(part.file_size for part in packed.infolist())
        if unpacked > LARGEST:
            raise InputError(
                f"{path} unpacks to {unpacked / 2**20:,.0f} MiB, more than {LARGEST / 2**20:,.0f}: "
                "save it as CSV or Parquet."
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and the like, which are not read
            book = load_workbook(path, read_only=True, data_only=True)
        try:
            table, mixed = _table(path, book.worksheets[0].iter_rows(values_only=True))
            return Sheet(table, tuple(book.sheetnames), mixed)
        finally:
            book.close()
    except InputError:
        raise
    except Exception as error:  # openpyxl lets through what XML and ZIP readers raise
        raise InputError(f"{path} cannot be read as Excel: {one_line(error)}.") from None


def _table(path: Path, cells: Iterable[Sequence[Any]]) -> tuple[pa.Table, frozenset[str]]:
    """Return the rows that hold something, less empty columns at the right."""
    rows: list[Sequence[Any]] = []
    count = 0
    for row in cells:
        count += len(row)
        if count > MOST_CELLS:
            raise InputError(f"{path} has over {MOST_CELLS:,} cells: save it as CSV or Parquet.")
        if any(cell is not None for cell in row):
            rows.append(row)
    if not rows:
        raise InputError(f"The first sheet of {path} is empty.")
    width = max(k + 1 for row in rows for k, cell in enumerate(row) if cell is not None)
    head, *body = ((*row[:width], *[None] * (width - len(row))) for row in rows)
    names = ["" if name is None else str(name) for name in head]
    columns, mixed = [], set()
    for place, name in enumerate(names):
        known = [None if row[place] in _ERRORS else row[place] for row in body]
        column, is_mixed = cells_of(known)
        columns.append(column)
        mixed |= {name} if is_mixed else set()
    return pa.Table.from_arrays(columns, names), frozenset(mixed)
