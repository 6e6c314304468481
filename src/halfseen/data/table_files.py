"""Tables on disk, CSV, Parquet, Arrow or Excel, read as record batches of bounded size.

Files are read one after another and batch by batch, with no read-ahead, so that memory does not
depend on their length.
"""

from __future__ import annotations

import hashlib
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.parquet

from halfseen.data.csv_files import NOT_UTF8, CsvFormat, csv_error, csv_format, read_cells, read_csv
from halfseen.data.tables import BATCH_ROWS
from halfseen.data.values import cells_of, check_alike, composed_name
from halfseen.errors import InputError, installed_by, one_line

Format = Literal["CSV", "Parquet", "Arrow", "Excel"]
FORMATS: dict[str, Format] = {
    ".csv": "CSV",
    ".tsv": "CSV",
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".arrow": "Arrow",
    ".feather": "Arrow",
    ".ipc": "Arrow",
    ".xlsx": "Excel",
}
PANDAS_INDEX = "__index_level_0__"
INDEX_NAMES = ("", "Unnamed: 0", PANDAS_INDEX)
"""What pandas calls an index that it writes with a table."""


@dataclass(frozen=True)
class TableFiles:
    """One table in one or more files: `path` is what the user named.

    Columns are in the order of the first file. `renames` go from the file's names to the user's,
    and `notes` say how it is written, where that is unusual.
    """

    path: Path
    files: tuple[Path, ...]
    format: Format
    names: tuple[str, ...] = ()
    csv: Mapping[Path, CsvFormat] = field(default_factory=dict)
    """How each file of texts is written."""
    notes: tuple[str, ...] = ()
    renames: Mapping[str, str] = field(default_factory=dict)
    first_row: int = 1

    @property
    def where(self) -> str:
        return str(self.path)

    @property
    def texts(self) -> frozenset[str]:
        if self.format == "CSV":
            return frozenset(self.names)
        if self.format != "Excel":
            return frozenset()
        mixed = {name for file in self.files for name in read_sheet(file).mixed}
        return frozenset(self.renames.get(name, name) for name in mixed)

    @property
    def is_european(self) -> bool:
        return any(format.delimiter != "," for format in self.csv.values())

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        names = list(self.names if columns is None else columns)
        stored = {new: old for old, new in self.renames.items()}
        wanted = [stored.get(name, name) for name in names]
        for file in self.files:
            with _reading(file, self.format):
                for batch in self._read(file, wanted):
                    batch = batch.rename_columns(names) if stored else batch
                    for start in range(0, batch.num_rows, BATCH_ROWS):
                        yield batch.slice(start, BATCH_ROWS)

    def renamed(self, renames: Mapping[str, str]) -> TableFiles:
        """Return the table with other names for those of the columns that it has."""
        stored = {new: old for old, new in self.renames.items()}
        pairs = [(stored.get(name, name), name) for name in self.names]
        names = [renames.get(name, renames.get(old, name)) for old, name in pairs]
        _check_names(self.path, names)
        own = {old: new for (old, _), new in zip(pairs, names, strict=True) if old != new}
        return replace(self, names=tuple(names), renames=own)

    def fingerprint(self) -> dict[str, Any]:
        files = []
        for file in self.files:
            with file.open("rb") as opened:
                digest = hashlib.file_digest(opened, "sha256").hexdigest()
            files.append({"name": file.name, "bytes": file.stat().st_size, "sha256": digest})
        return {"files": files}

    def _read(self, path: Path, columns: list[str]) -> Iterator[Any]:
        if self.format == "CSV":
            yield from read_csv(path, self.csv[path], columns)
        elif self.format == "Parquet":
            from halfseen.data.untrusted_files import read_parquet

            yield from read_parquet(path, columns, BATCH_ROWS)
        elif self.format == "Excel":
            yield from read_sheet(path).table.select(columns).to_batches()
        else:
            from halfseen.data.untrusted_files import arrow_batches

            for batch in arrow_batches(path):
                chosen = batch.select(columns)
                # Arrow takes offsets on trust, and those that point outside read other memory.
                chosen.validate(full=True)
                yield chosen


def open_table(path: str | Path) -> TableFiles:
    r"""Open a CSV, Parquet, Arrow or Excel file, or a folder of files of one of these kinds.

    Reads headers alone. Cells of CSV are texts, whatever they look like.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("age;shop\n63;x\n;y\n")
    >>> table = open_table(path)
    >>> table.names, next(table.batches()).to_pydict()
    (('age', 'shop'), {'age': ['63', None], 'shop': ['x', 'y']})
    """
    path = Path(path)
    files, format = _find(path)
    csv, notes, named = {}, [], list[list[str]]()
    for file in files:
        with _reading(file, format):
            if format == "CSV":
                csv[file] = csv_format(file)
                notes += [csv[file].note] if csv[file].note else []
            elif format == "Excel" and len(sheets := read_sheet(file).names) > 1:
                notes.append(
                    f"{file} has {len(sheets)} sheets; the first, {sheets[0]!r}, was read."
                )
            written = _written_names(file, format, csv.get(file))
        has_index = len(written) > 1 and written[0] in INDEX_NAMES
        names = written[1:] if has_index else [n for n in written if n != PANDAS_INDEX]
        if not named and len(names) < len(written):
            notes.append(f"The first column of {path} is taken for an index, and left out.")
        _check_names(file, names)
        named.append(names)
        if different := sorted({*names} ^ {*named[0]}):
            raise InputError(
                f"{files[0]} and {file} do not have the same columns: {different[0]!r} is in only "
                "one of them."
            )
        if format == "Arrow":
            from halfseen.data.untrusted_files import check_arrow

            check_arrow(file)
    opened = _respelled(TableFiles(path, files, format, tuple(named[0]), csv, tuple(notes)))
    with _reading(path, format):
        has_rows = (
            any(pa.parquet.read_metadata(file).num_rows for file in files)
            if format == "Parquet"
            else next(opened.batches(), None) is not None
        )
    if not has_rows:
        raise InputError(f"{path} holds column names and no rows.")
    return opened


def _respelled(table: TableFiles) -> TableFiles:
    """Return the table with names in one Unicode form, without spaces around them.

    Spaces stay where names would not be different without them.
    """
    bare = {name: composed_name(name).strip() for name in table.names}
    if len(set(bare.values())) < len(bare):
        bare = {name: composed_name(name) for name in table.names}
    if all(name == other for name, other in bare.items()):
        return table
    stripped = [new for old, new in bare.items() if composed_name(old) != new]
    note = f"Read without the spaces around their names: {', '.join(stripped)}."
    return replace(table.renamed(bare), notes=(*table.notes, *([note] if stripped else [])))


def column_names(path: Path) -> list[str]:
    """Return the columns of one file, without reading it through."""
    _, format = _find(path)
    with _reading(path, format):
        return _written_names(path, format, csv_format(path) if format == "CSV" else None)


def _find(path: Path) -> tuple[tuple[Path, ...], Format]:
    *most, last = FORMATS
    endings = f"{', '.join(most)} or {last}"
    if path.is_dir():
        inside = sorted(p for p in path.iterdir() if not p.name.startswith((".", "_")))
        files = tuple(p for p in inside if _ending(p) in FORMATS and p.is_file())
        if not files:
            raise InputError(f"The folder {path} holds no file that ends in {endings}.")
        formats = {FORMATS[_ending(p)] for p in files}
        if len(formats) > 1:
            raise InputError(
                f"The folder {path} holds {' and '.join(sorted(formats))} files; one table is one "
                "kind of file."
            )
        return files, formats.pop()
    if not path.exists():
        raise InputError(f"There is no file {path}.")
    if not path.is_file():
        raise InputError(f"{path} is neither a file nor a folder.")
    if _ending(path) not in FORMATS:
        raise InputError(f"{path} does not end in {endings}, so its kind is not known.")
    if not path.stat().st_size:
        raise InputError(f"{path} is empty.")
    return (path,), FORMATS[_ending(path)]


def _ending(path: Path) -> str:
    """Return how a file's name ends; packed CSV ends as CSV does."""
    name = path.name.lower()
    packed = name.endswith((".csv.gz", ".tsv.gz"))
    return Path(name.removesuffix(".gz") if packed else name).suffix


def _written_names(file: Path, format: Format, csv: CsvFormat | None) -> list[str]:
    """Return the column names of one file, duplicates included.

    Empty columns that separators at the ends of CSV lines make are none.
    """
    if format == "Parquet":
        return list(pa.parquet.read_schema(file).names)
    if format == "Excel":
        return list(read_sheet(file).table.column_names)
    if csv is None:
        from halfseen.data.untrusted_files import open_arrow

        return list(open_arrow(file).schema.names)
    count = len(csv.names)
    while count > 1 and not csv.names[count - 1]:
        count -= 1
    ends = range(count, len(csv.names))
    first = next(read_cells(file, csv, ends), None) if ends else None
    is_empty = first is None or all(c.null_count == first.num_rows for c in first.columns)
    return list(csv.names[:count] if is_empty else csv.names)


def _check_names(file: Path, names: list[str]) -> None:
    if not names:
        raise InputError(f"{file} has no columns.")
    for position, name in enumerate(names, start=1):
        if not name.strip():
            raise InputError(
                f"Column {position} of {file} has no name: the first line must name every column. "
                "An index that pandas wrote? Write the table with index=False."
            )
        try:
            name.encode("utf-8")
        except UnicodeEncodeError:
            raise InputError(f"Column {position} of {file}: {NOT_UTF8}") from None
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"{file} has column {twice[0]!r} more than once; rename one of them.")
    check_alike({str(file): names})


@contextmanager
def _reading(path: Path, format: Format) -> Iterator[None]:
    """Turn what Arrow raises into a sentence."""
    try:
        yield
    except UnicodeDecodeError:
        raise InputError(f"{path}: {NOT_UTF8}") from None
    except (pa.ArrowException, OSError) as error:
        if format == "CSV" and isinstance(error, pa.ArrowInvalid):
            raise csv_error(path, error) from None
        raise InputError(f"{path} cannot be read as {format}: {one_line(error)}.") from None


# --- Excel ------------------------------------------------------------------------------------

LARGEST_WORKBOOK = 128 * 2**20
"""Bytes that a workbook may unpack to."""
MOST_CELLS = 5_000_000
"""Cells of a sheet: 28 kB of Excel can stand for fifty million empty ones."""
_ERRORS = ("#N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!")


class Sheet(NamedTuple):
    """The first sheet of a workbook, the names of all, and columns with cells of several kinds."""

    table: pa.Table
    names: tuple[str, ...]
    mixed: frozenset[str]


def read_sheet(path: Path) -> Sheet:
    """Return the first sheet of a workbook, whose first row names the columns; it is read once."""
    facts = path.stat()
    return _sheet(path, facts.st_mtime_ns, facts.st_size)


@lru_cache(maxsize=4)
def _sheet(path: Path, changed: int, size: int) -> Sheet:
    with installed_by("excel", f"{path} (or save it as CSV)"):
        from openpyxl import load_workbook
    try:
        with zipfile.ZipFile(path) as packed:
            unpacked = sum(part.file_size for part in packed.infolist())
        if unpacked > LARGEST_WORKBOOK:
            raise InputError(
                f"{path} unpacks to {unpacked / 2**20:,.0f} MiB, more than "
                f"{LARGEST_WORKBOOK / 2**20:,.0f}: save it as CSV or Parquet."
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and the like, which are not read
            book = load_workbook(path, read_only=True, data_only=True)
        try:
            table, mixed = _sheet_table(path, book.worksheets[0].iter_rows(values_only=True))
            return Sheet(table, tuple(book.sheetnames), mixed)
        finally:
            book.close()
    except InputError:
        raise
    except Exception as error:  # openpyxl lets through what XML and ZIP readers raise
        raise InputError(f"{path} cannot be read as Excel: {one_line(error)}.") from None


def _sheet_table(path: Path, cells: Iterable[Sequence[Any]]) -> tuple[pa.Table, frozenset[str]]:
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
    columns = [
        cells_of([None if row[k] in _ERRORS else row[k] for row in body]) for k in range(width)
    ]
    mixed = (name for name, (_, is_mixed) in zip(names, columns, strict=True) if is_mixed)
    return pa.Table.from_arrays([column for column, _ in columns], names), frozenset(mixed)
