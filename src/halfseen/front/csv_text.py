"""How a CSV file is written: delimiter, encoding, decimal point, types, and numbers with signs."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from halfseen.errors import InputError

NULLS = ("", "NA", "N/A", "n/a", "<NA>", "NaN", "nan", "null", "NULL", "None", "#N/A", "?")
"""Texts that stand for no value."""
DATES = [pa.csv.ISO8601, "%Y/%m/%d", "%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S"]
"""How dates are written; with slashes, 05/06/2024 may begin with the day or the month."""
BLOCK = 4 * 2**20
NOT_UTF8 = "the text is not UTF-8. Convert the file first, for example with iconv -t UTF-8."
WIDER = {"null": pa.int64(), "int64": pa.float64()}
"""What a column becomes when a later value does not fit; all else becomes text."""
_SIGNS = r"(?:[$€£¥%]|USD|EUR|GBP|CHF)"


@dataclass(frozen=True)
class CsvFormat:
    """How the files of one table are read."""

    delimiter: str = ","
    decimal: str = "."
    encodings: Mapping[Path, str] = field(default_factory=dict)
    """Of files that are not UTF-8."""
    types: Mapping[str, Any] = field(default_factory=dict)
    signed: tuple[str, ...] = ()
    """Columns of numbers that have thousands separators, percent or currency signs."""

    @property
    def number(self) -> str:
        """A number with signs, as a regular expression."""
        thousands, point = (r"[.' ]", ",") if self.decimal == "," else (r"[,' ]", r"\.")
        digits = rf"(?:\d{{1,3}}(?:{thousands}\d{{3}})+|\d+)(?:{point}\d+)?"
        return rf"^\s*[-+]?\s*{_SIGNS}?\s*[-+]?{digits}\s*{_SIGNS}?\s*$"

    def unsigned(self, texts: Any) -> Any:
        """Return texts that match :attr:`number` as numbers."""
        kept = "[^0-9,+-]" if self.decimal == "," else "[^0-9.+-]"
        plain = pc.replace_substring_regex(texts, pattern=kept, replacement="")
        return pc.replace_substring(plain, pattern=",", replacement=".").cast(pa.float64())


def open_csv(path: Path, format: CsvFormat, columns: Sequence[str] | None = None) -> Any:
    """Return a reader of one file; what ends in .gz is unpacked."""
    return pa.csv.open_csv(
        path,
        read_options=pa.csv.ReadOptions(
            use_threads=False, block_size=BLOCK, encoding=format.encodings.get(path, "utf8")
        ),
        parse_options=pa.csv.ParseOptions(delimiter=format.delimiter, newlines_in_values=True),
        convert_options=pa.csv.ConvertOptions(
            column_types=dict(format.types),
            null_values=list(NULLS),
            strings_can_be_null=True,
            include_columns=columns,
            decimal_point=format.decimal,
            timestamp_parsers=DATES,
        ),
    )


def read_csv(path: Path, format: CsvFormat, columns: Sequence[str]) -> Iterator[Any]:
    """Yield record batches, numbers with signs as numbers."""
    for batch in open_csv(path, format, columns):
        for name in format.signed:
            if name in columns:
                place = batch.schema.get_field_index(name)
                batch = batch.set_column(place, name, format.unsigned(batch.column(place)))
        yield batch


def find_format(files: Sequence[Path]) -> tuple[CsvFormat, tuple[str, ...]]:
    """Read files through once; return how they are written, and sentences on what is unusual."""
    encodings = {file: code for file in files if (code := _encoding(file))}
    called = {"cp1252": "Windows-1252 (Western European)", "utf-16": "UTF-16"}
    notes = [
        f"{file} is not UTF-8; it was read as {called[code]}." for file, code in encodings.items()
    ]
    delimiter = header_format(files[0]).delimiter
    format = CsvFormat(delimiter, encodings=encodings)
    sample = _FirstTexts(files[0], format)
    if sample.have_decimal_commas(delimiter):
        format = replace(format, decimal=",")
        notes.append(f"{files[0]} writes numbers with decimal commas.")
    # Numbers that begin with 0 would lose it, and those of twenty digits their last ones.
    led = sample.matching(r"^0\d|^\d{20}", every=False)
    texts = [name for name in sample.matching(r"^\d+$") if name in led]
    types = _types(files, replace(format, types=dict.fromkeys(texts, pa.string())))
    if texts:
        notes.append(
            "Kept as text, because numbers in them begin with 0 or are too long: "
            f"{', '.join(texts)}."
        )
    format = replace(format, types=types)
    candidates = set(sample.matching(format.number)) - set(texts)
    signed = [n for n, kind in types.items() if pa.types.is_string(kind) and n in candidates]
    for file in files:
        for batch in open_csv(file, format, signed) if signed else ():
            matches = (pc.match_substring_regex(c, format.number) for c in batch.columns)
            fitting = dict(zip(batch.schema.names, map(pc.all, matches), strict=True))
            signed = [name for name in signed if fitting[name].as_py() is not False]
    if signed:
        notes.append(
            "Read as numbers without thousands separators, percent and currency signs: "
            f"{', '.join(signed)}."
        )
    return replace(format, signed=tuple(signed)), tuple(notes)


class _FirstTexts:
    """The first batch of a file with every column as text, without gaps."""

    def __init__(self, path: Path, format: CsvFormat) -> None:
        try:
            types = dict.fromkeys(open_csv(path, format).schema.names, pa.string())
            batch = next(iter(open_csv(path, replace(format, types=types))), None)
        except (pa.ArrowException, UnicodeDecodeError, OSError):
            batch = None  # said by whoever reads all of it
        pairs = () if batch is None else zip(batch.schema.names, batch.columns, strict=True)
        self.columns = {name: column.drop_null() for name, column in pairs}

    def matching(self, pattern: str, *, every: bool = True) -> list[str]:
        """Return the columns of which every text, or any, matches."""
        count = pc.all if every else pc.any
        found = {n: pc.match_substring_regex(c, pattern) for n, c in self.columns.items()}
        return [name for name, matches in found.items() if len(matches) and count(matches).as_py()]

    def have_decimal_commas(self, delimiter: str) -> bool:
        """Whether some column has decimal commas, and none has decimal points.

        Where commas also part the columns, 1,234 in quotes may be a thousand.
        """
        comma = r",(\d{1,2}|\d{4,})$" if delimiter == "," else r"\d,\d"
        commas = self.matching(CsvFormat(decimal=",").number)
        points = self.matching(r"^[-+]?\d+(\.\d+)?$")
        if set(points) & set(self.matching(r"\.", every=False)) - set(commas):
            return False
        return bool(set(commas) & set(self.matching(comma, every=False)))


def header_format(path: Path) -> CsvFormat:
    """Return how the first line of a file is written: its delimiter and encoding."""
    with pa.input_stream(str(path)) as file:
        start = file.read(BLOCK)
    code = _marked(start, path)
    header = start.partition(b"\n")[0] if code is None else start
    if code is None:
        try:
            header.decode("utf-8")
        except UnicodeDecodeError:
            code = "cp1252"
    text = header.decode(code or "utf-8", errors="ignore").partition("\n")[0]
    is_tab = path.name.lower().endswith((".tsv", ".tsv.gz"))
    delimiter = "\t" if is_tab else max((",", ";", "\t", "|"), key=text.count)
    return CsvFormat(delimiter, encodings={path: code} if code else {})


def _encoding(path: Path) -> str | None:
    """Return what a file is written in where it is not UTF-8; one with zero bytes is no text."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with pa.input_stream(str(path)) as file:
        chunk = file.read(BLOCK)
        code = _marked(chunk, path)
        while chunk and code is None:
            if b"\x00" in chunk:
                raise InputError(f"{path}: {NOT_UTF8}")
            try:
                decoder.decode(chunk)
            except UnicodeDecodeError:
                code = "cp1252"
            chunk = file.read(BLOCK)
    return code


def _marked(start: bytes, path: Path) -> str | None:
    """Return the encoding that a byte order mark tells."""
    if start[:4] in (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff"):  # UTF-32
        raise InputError(f"{path}: {NOT_UTF8}")
    for mark, ending in ((b"\x1f\x8b", ".csv.gz"), (b"PK\x03\x04", ".xlsx")):
        if start.startswith(mark):
            raise InputError(f"{path} is no text but packed: should its name end in {ending}?")
    return "utf-16" if start[:2] in (b"\xff\xfe", b"\xfe\xff") else None


def _types(files: Sequence[Path], format: CsvFormat) -> dict[str, Any]:
    """Return each column's narrowest type that fits every value of all files."""
    types = dict(format.types)
    for file in files:
        while True:
            reader = None
            try:
                reader = open_csv(file, replace(format, types=types))
                for _ in reader:
                    pass
            except pa.ArrowInvalid as error:
                column = re.match(r"In CSV column #(\d+): .*conversion error to", str(error))
                invalid = "invalid UTF8" in str(error)
                if column is None or reader is None or invalid:
                    raise csv_error(file, error) from None
                found = reader.schema.field(int(column[1]))
                types[found.name] = WIDER.get(str(found.type), pa.string())
                continue
            break
        for found in reader.schema:
            if pa.types.is_binary(found.type):
                raise InputError(f"{file}, column {found.name!r}: {NOT_UTF8}")
            types[found.name] = found.type
    return types


def csv_error(path: Path, error: Exception) -> InputError:
    """Return what Arrow says of a CSV file as a sentence."""
    text = " ".join(str(error).split())
    row = re.search(r"Row #(\d+): ", text)
    place = f"{path}, line {row[1]}" if row else str(path)
    ragged = re.search(r"Expected (\d+) columns, got (\d+)", text)
    if ragged:
        return InputError(
            f"{place}: there are {ragged[2]} fields, and the header names {ragged[1]} columns."
        )
    if "UTF8" in text:
        return InputError(f"{place}: {NOT_UTF8}")
    if "Empty CSV" in text:
        with pa.input_stream(str(path)) as file:
            has_header = bool(file.read(BLOCK).strip())
        return InputError(
            f"{path} holds column names and no rows." if has_header else f"{path} is empty."
        )
    if "straddl" in text:
        return InputError(f"{path} has a line of more than {BLOCK:,} bytes; is it CSV?")
    return InputError(f"{place} cannot be read as CSV: {text}.")
