"""CSV files as texts: what parts their columns, how they are encoded, and nothing else.

Every cell stays the text that it is, and an empty one is a gap; what it means is for the schema
(:mod:`halfseen.data.values`). A cell that is not UTF-8 is read as Windows-1252, each by itself.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv

from halfseen.errors import InputError

BLOCK = 4 * 2**20
NOT_UTF8 = "the text is not UTF-8. Convert the file first, for example with iconv -t UTF-8."


class CsvFormat(NamedTuple):
    """How one file is written."""

    delimiter: str
    encoding: str
    names: tuple[str, ...] = ()
    """Its columns, as its first line has them."""
    note: str = ""
    """A sentence where it is not UTF-8, as far as its start shows."""


def csv_format(path: Path) -> CsvFormat:
    """Return how a file is written, from its start."""
    with pa.input_stream(str(path)) as file:
        start = file.read(BLOCK)
    for mark, ending in ((b"\x1f\x8b", ".csv.gz"), (b"PK\x03\x04", ".xlsx")):
        if start.startswith(mark):
            raise InputError(f"{path} is no text but packed: should its name end in {ending}?")
    is_utf32 = start[:4] in (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")
    is_utf16 = not is_utf32 and start[:2] in (b"\xff\xfe", b"\xfe\xff")
    if is_utf32 or (b"\x00" in start and not is_utf16):
        raise InputError(f"{path}: {NOT_UTF8}")
    encoding, note = "utf-16" if is_utf16 else "utf8", ""
    try:
        codecs.getincrementaldecoder(encoding)().decode(start)
        note = f"{path} is not UTF-8; it was read as UTF-16." if is_utf16 else ""
    except UnicodeDecodeError:
        note = (
            f"{path} is not UTF-8; cells that are not were read as Windows-1252 (Western European)."
        )
    first = start.decode(encoding, errors="replace").lstrip("\r\n").partition("\n")[0]
    is_tab = path.name.lower().endswith((".tsv", ".tsv.gz"))
    delimiter = "\t" if is_tab else max((",", ";", "\t", "|"), key=first.count)
    header = next(_cells(path, CsvFormat(delimiter, encoding)), None)
    if header is None:
        raise InputError(f"{path} is empty.")
    names = tuple(_text(column[0].as_py() or b"") for column in header.columns)
    return CsvFormat(delimiter, encoding, names, note)


def read_csv(path: Path, format: CsvFormat, columns: Sequence[str]) -> Iterator[Any]:
    """Yield record batches of texts; what ends in .gz is unpacked."""
    for batch in read_cells(path, format, [format.names.index(name) for name in columns]):
        yield pa.record_batch([_texts(cells) for cells in batch.columns], names=list(columns))


def read_cells(path: Path, format: CsvFormat, places: Sequence[int]) -> Iterator[Any]:
    """Yield the cells of some columns as bytes, without the line of the names."""
    for number, batch in enumerate(_cells(path, format, [f"f{place}" for place in places])):
        yield batch if number else batch.slice(1)


def _cells(path: Path, format: CsvFormat, places: Sequence[str] | None = None) -> Iterator[Any]:
    """Yield all lines, that of the names too, as bytes: columns are called f0, f1, and so on."""
    read = pa.csv.ReadOptions(
        use_threads=False,
        block_size=BLOCK,
        encoding=format.encoding,
        autogenerate_column_names=True,
    )
    parse = pa.csv.ParseOptions(delimiter=format.delimiter, newlines_in_values=True)
    count = len(format.names) or len(pa.csv.open_csv(path, read, parse).schema.names)
    convert = pa.csv.ConvertOptions(
        column_types={f"f{place}": pa.binary() for place in range(count)},
        null_values=[""],
        strings_can_be_null=True,
        include_columns=places,
    )
    yield from pa.csv.open_csv(path, read, parse, convert)


def _texts(cells: Any) -> Any:
    """Return cells as texts, those that are not UTF-8 from Windows-1252."""
    try:
        return cells.cast(pa.string())
    except pa.ArrowInvalid:
        known = cells.dictionary_encode()
        texts = [_text(cell) for cell in known.dictionary.to_pylist()]
        return pa.array(texts, pa.string()).take(known.indices)


def _text(cell: bytes) -> str:
    try:
        return cell.decode("utf-8")
    except UnicodeDecodeError:
        return cell.decode("cp1252", errors="replace")


def csv_error(path: Path, error: Exception) -> InputError:
    """Return what Arrow says of a CSV file as a sentence."""
    text = " ".join(str(error).split())
    row = re.search(r"Row #(\d+): ", text)
    place = f"{path}, line {row[1]}" if row else str(path)
    ragged = re.search(r"Expected (\d+) columns, got (\d+)", text)
    if ragged:
        says = f"{place}: there are {ragged[2]} fields, and the header names {ragged[1]} columns."
    elif "UTF8" in text or "UTF-16" in text:
        says = f"{place}: {NOT_UTF8}"
    elif "Empty CSV" in text:
        with pa.input_stream(str(path)) as file:
            has_header = bool(file.read(BLOCK).strip())
        says = f"{path} holds column names and no rows." if has_header else f"{path} is empty."
    elif "straddl" in text:
        says = f"{path} has a line of more than {BLOCK:,} bytes; is it CSV?"
    else:
        says = f"{place} cannot be read as CSV: {text}."
    return InputError(says)
