"""Excel workbooks: the first sheet as an Arrow table, within bounds."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from halfseen.errors import InputError, installed_by, one_line
from halfseen.front.csv_text import NULLS
from halfseen.labels import class_name

LARGEST = 128 * 2**20
"""Bytes that a workbook may unpack to."""
MOST_CELLS = 5_000_000
"""Cells of a sheet: 28 kB of Excel can stand for fifty million empty ones."""
_ERRORS = ("#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!")


def read_sheet(path: Path) -> tuple[pa.Table, tuple[str, ...]]:
    """Return the first sheet of a workbook, and the names of all; it is read once for all passes.

    Its first row holds the names of the columns.
    """
    stat = path.stat()
    return _read(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=4)
def _read(path: Path, changed: int, size: int) -> tuple[pa.Table, tuple[str, ...]]:
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
            table = _table(path, book.worksheets[0].iter_rows(values_only=True))
            return table, tuple(book.sheetnames)
        finally:
            book.close()
    except InputError:
        raise
    except Exception as error:  # openpyxl lets through what XML and ZIP readers raise
        raise InputError(f"{path} cannot be read as Excel: {one_line(error)}.") from None


def _table(path: Path, cells: Iterable[Sequence[Any]]) -> pa.Table:
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
    columns = [_column([row[k] for row in body]) for k in range(width)]
    return pa.Table.from_arrays(columns, ["" if name is None else str(name) for name in head])


def _column(cells: list[Any]) -> pa.Array:
    """Return cells as one column: of one kind where they are, and else as texts."""
    gaps = {*NULLS, *_ERRORS}
    known = [None if isinstance(c, str) and c.strip() in gaps else c for c in cells]
    try:
        return pa.array(known)
    except pa.ArrowException:
        return pa.array([None if c is None else class_name(c) for c in known])
