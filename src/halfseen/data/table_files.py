"""Tables on disk, CSV, Parquet or Arrow, read as record batches of bounded size.

Files are read one after another and batch by batch, with no read-ahead, so that memory does not
depend on their length; and in parts (row groups, record batches) that can be visited in any order.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.parquet

from halfseen.data import arrow_files, excel, parquet_files
from halfseen.data.csv_files import NOT_UTF8, CsvFormat, csv_error, csv_format, read_cells, read_csv
from halfseen.data.tables import BATCH_ROWS
from halfseen.data.values import check_alike, composed_name
from halfseen.errors import InputError, one_line

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
INDEX_NAMES = ("", "Unnamed: 0", "__index_level_0__")
"""What pandas calls an index that it writes with a table."""


class FilePart(NamedTuple):
    """A piece of a table that can be read by itself: a row group, a batch, or a whole file."""

    path: Path
    number: int | None


@dataclass(frozen=True)
class TableFiles:
    """One table in one or more files: `path` is what the user named.

    Columns are in the order of the first file. `renames` go from the file's names to the user's,
    and `notes` say how it is written, where that is unusual.
    """

    path: Path
    files: tuple[Path, ...]
    format: Format
    names: tuple[str, ...]
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
        mixed = {name for file in self.files for name in excel.read_sheet(file).mixed}
        return frozenset(self.renames.get(name, name) for name in mixed)

    @property
    def is_european(self) -> bool:
        """Whether commas do not part the columns, so that they may be decimal signs."""
        return any(format.delimiter != "," for format in self.csv.values())

    def parts(self) -> list[FilePart]:
        found: list[FilePart] = []
        for file in self.files:
            count: int | None = None
            with _reading(file, self.format):
                if self.format == "Parquet":
                    count = pa.parquet.read_metadata(file).num_row_groups
                elif self.format == "Arrow":
                    with arrow_files.opened(file) as reader:  # a stream does not tell
                        count = getattr(reader, "num_record_batches", None)
            numbers = [None] if count is None else range(count)
            found += [FilePart(file, number) for number in numbers]
        return found

    def batches(
        self, columns: Sequence[str] | None = None, parts: Sequence[FilePart] | None = None
    ) -> Iterator[Any]:
        names = list(self.names if columns is None else columns)
        stored = {new: old for old, new in self.renames.items()}
        wanted = [stored.get(name, name) for name in names]
        for part in self.parts() if parts is None else parts:
            with _reading(part.path, self.format):
                for batch in self._read(part, wanted):
                    batch = batch.rename_columns(names) if stored else batch
                    for start in range(0, batch.num_rows, BATCH_ROWS):
                        yield batch.slice(start, BATCH_ROWS)

    def renamed(self, renames: Mapping[str, str]) -> TableFiles:
        """Return the table with other names for those of the columns that it has."""
        stored = {new: old for old, new in self.renames.items()}
        written = [stored.get(name, name) for name in self.names]
        names = [
            renames.get(name, renames.get(old, name))
            for name, old in zip(self.names, written, strict=True)
        ]
        _check_names(self.path, names)
        own = {old: new for old, new in zip(written, names, strict=True) if old != new}
        return replace(self, names=tuple(names), renames=own)

    def fingerprint(self) -> dict[str, Any]:
        found = []
        for file in self.files:
            with file.open("rb") as opened:
                digest = hashlib.file_digest(opened, "sha256").hexdigest()
            found.append({"name": file.name, "bytes": file.stat().st_size, "sha256": digest})
        return {"files": found}

    def _read(self, part: FilePart, columns: list[str]) -> Iterator[Any]:
        if self.format == "CSV":
            yield from read_csv(part.path, self.csv[part.path], columns)
        elif self.format == "Parquet":
            yield from parquet_files.read_batches(part.path, part.number or 0, columns, BATCH_ROWS)
        elif self.format == "Excel":
            yield from excel.read_sheet(part.path).table.select(columns).to_batches()
        else:
            with arrow_files.opened(part.path) as reader:
                for batch in reader if part.number is None else [reader.get_batch(part.number)]:
                    chosen = batch.select(columns)
                    # Arrow takes offsets on trust, and those that point outside read other memory.
                    chosen.validate(full=True)
                    yield chosen


def open_table(path: str | Path) -> TableFiles:
    r"""Open a CSV, Parquet or Arrow file, or a folder of files of one of these kinds.

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
    table = TableFiles(path, files, format, ())
    if format == "CSV":
        found = {}
        for file in files:
            with _reading(file, format):
                found[file] = csv_format(file)
        notes = tuple(format.note for format in found.values() if format.note)
        table = replace(table, csv=found, notes=notes)
    elif format == "Excel":
        sheets = {file: excel.read_sheet(file).names for file in files}
        notes = tuple(
            f"{file} has {len(names)} sheets; the first, {names[0]!r}, was read."
            for file, names in sheets.items()
            if len(names) > 1
        )
        table = replace(table, notes=notes)
    written = [_names(table, file) for file in files]
    names = [_without_index(those) for those in written]
    for file, those in zip(files, names, strict=True):
        _check_names(file, those)
        if set(those) != set(names[0]):
            different = sorted(set(those) ^ set(names[0]))[0]
            raise InputError(
                f"{files[0]} and {file} do not have the same columns: {different!r} is in only "
                "one of them."
            )
        if format == "Arrow":
            arrow_files.check_batches(file)
    opened = _respelled(replace(table, names=tuple(names[0])))
    if len(written[0]) > len(names[0]):
        note = f"The first column of {path} is taken for an index, and left out."
        opened = replace(opened, notes=(*opened.notes, note))
    with _reading(path, format):
        has_rows = (
            any(pa.parquet.read_metadata(file).num_rows for file in files)
            if format == "Parquet"
            else next(opened.batches(), None) is not None
        )
    if not has_rows:
        raise InputError(f"{path} holds column names and no rows.")
    return opened


def _without_index(names: list[str]) -> list[str]:
    """Return the names without that of an index, as pandas writes it."""
    if len(names) > 1 and names[0] in INDEX_NAMES:
        return names[1:]
    return [name for name in names if name != "__index_level_0__"] if len(names) > 1 else names


def _respelled(table: TableFiles) -> TableFiles:
    """Return the table with names in one Unicode form, without spaces around them.

    Spaces stay where names would not be different without them.
    """
    bare = {name: composed_name(name).strip() for name in table.names}
    if len(set(bare.values())) < len(bare):
        bare = {name: composed_name(name) for name in table.names}
    bare = {name: other for name, other in bare.items() if name != other}
    if not bare:
        return table
    stripped = [new for old, new in bare.items() if composed_name(old) != new]
    note = f"Read without the spaces around their names: {', '.join(stripped)}."
    return replace(table.renamed(bare), notes=(*table.notes, *([note] if stripped else [])))


def column_names(path: Path) -> list[str]:
    """Return the columns of one file, without reading it through."""
    files, format = _find(path)
    with _reading(path, format):
        csv = {path: csv_format(path)} if format == "CSV" else {}
    return _names(TableFiles(path, files, format, (), csv), path)


def _find(path: Path) -> tuple[tuple[Path, ...], Format]:
    if path.is_dir():
        inside = sorted(p for p in path.iterdir() if not p.name.startswith((".", "_")))
        files = tuple(p for p in inside if _ending(p) in FORMATS and p.is_file())
        if not files:
            raise InputError(f"The folder {path} holds no file that ends in {_endings()}.")
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
        raise InputError(f"{path} does not end in {_endings()}, so its kind is not known.")
    if not path.stat().st_size:
        raise InputError(f"{path} is empty.")
    return (path,), FORMATS[_ending(path)]


def _ending(path: Path) -> str:
    """Return how a file's name ends; packed CSV ends as CSV does."""
    name = path.name.lower()
    packed = name.endswith((".csv.gz", ".tsv.gz"))
    return Path(name.removesuffix(".gz") if packed else name).suffix


def _endings() -> str:
    *most, last = FORMATS
    return f"{', '.join(most)} or {last}"


def _names(table: TableFiles, file: Path) -> list[str]:
    """Return the column names of one file, duplicates included."""
    with _reading(file, table.format):
        if table.format == "CSV":
            return _without_end(file, table.csv[file])
        if table.format == "Parquet":
            return list(pa.parquet.read_schema(file).names)
        if table.format == "Excel":
            return list(excel.read_sheet(file).table.column_names)
        with arrow_files.opened(file) as reader:
            return list(reader.schema.names)


def _without_end(file: Path, format: CsvFormat) -> list[str]:
    """Return the names of a CSV file, less empty columns that separators at line ends make."""
    names = list(format.names)
    while len(names) > 1 and not names[-1]:
        names.pop()
    ends = range(len(names), len(format.names))
    first = next(read_cells(file, format, ends), None) if ends else None
    if first is None or all(column.null_count == first.num_rows for column in first.columns):
        return names
    return list(format.names)


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
