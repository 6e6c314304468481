"""Criteo's ``train.txt``: a click, 13 counts and 26 hashed categories a line, read in blocks.

Values stay as they are in the file; memory is bounded by the block, whatever the file's length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from halfseen.errors import InputError
from halfseen_bench.data.official import optional_module, read_chunks

__all__ = ["CATEGORICAL", "FIELDS", "NUMERIC", "Block", "line_blocks", "parsed", "schema"]

NUMERIC = tuple(f"I{i}" for i in range(1, 14))
CATEGORICAL = tuple(f"C{i}" for i in range(1, 27))
FIELDS = ("label", *NUMERIC, *CATEGORICAL)
_PURPOSE = "Reading Criteo's file"


@dataclass(frozen=True)
class Block:
    """Whole lines of a text file."""

    data: bytes
    first_line: int
    end: int
    """Where the content goes on after this block, in bytes."""

    @property
    def lines(self) -> int:
        """How many lines the block holds; the file's last one may lack its newline."""
        return self.data.count(b"\n") + (not self.data.endswith(b"\n"))


def line_blocks(
    path: Path,
    *,
    size: int = 16 << 20,
    start: int = 0,
    first_line: int = 1,
    on_position: Callable[[int], None] = lambda position: None,
) -> Iterator[Block]:
    """Yield blocks of whole lines of about `size` bytes, from byte `start` of the content on."""
    rest = b""
    for chunk in read_chunks(path, start=start, size=size, on_position=on_position):
        whole, newline, tail = chunk.rpartition(b"\n")
        if not newline:
            rest += chunk
            continue
        data, rest = rest + whole + newline, tail
        start += len(data)
        block = Block(data, first_line, start)
        first_line += block.lines
        yield block
    if rest:
        yield Block(rest, first_line, start + len(rest))


def schema() -> Any:
    """Return the Arrow schema of the file: label, counts (may be null), categories."""
    arrow = optional_module("pyarrow", _PURPOSE)
    return arrow.schema(
        [("label", arrow.int8())]
        + [(name, arrow.int32()) for name in NUMERIC]
        + [(name, arrow.string()) for name in CATEGORICAL]
    )


def parsed(block: Block, path: Path, columns: Sequence[str] = FIELDS) -> Any:
    """Return a block as an Arrow table of some columns; a bad line is named by its number."""
    csv = optional_module("pyarrow.csv", _PURPOSE)
    arrow = optional_module("pyarrow", _PURPOSE)
    types = schema()
    try:
        table = csv.read_csv(
            arrow.BufferReader(block.data),
            read_options=csv.ReadOptions(column_names=FIELDS),
            parse_options=csv.ParseOptions(
                delimiter="\t", quote_char=False, ignore_empty_lines=False
            ),
            convert_options=csv.ConvertOptions(
                column_types=types,
                include_columns=columns,
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
    except arrow.ArrowInvalid as error:
        raise _explained(block, path, error) from None
    if "label" in columns and not set(table["label"].unique().to_pylist()) <= {0, 1}:
        raise _explained(block, path, "a label is neither 0 nor 1")
    return table


def _explained(block: Block, path: Path, error: object) -> InputError:
    """Say which line is at fault: the fast parser does not."""
    lines = block.data.decode("utf-8", errors="replace").split("\n")[: block.lines]
    for number, line in enumerate(lines, start=block.first_line):
        where = f"{path}, line {number}"
        fields = line.rstrip("\r").split("\t")
        if len(fields) != len(FIELDS):
            return InputError(
                f"{where} has {len(fields)} fields; a label, {len(NUMERIC)} counts and "
                f"{len(CATEGORICAL)} categories are needed, separated by tabs."
            )
        if fields[0] not in ("0", "1"):
            return InputError(f"{where}: the label {fields[0]!r} is neither 0 nor 1.")
        for name, field in zip(NUMERIC, fields[1:], strict=False):
            if field and not _fits(field):
                return InputError(f"{where}, column {name!r}: {field!r} is not a whole number.")
    return InputError(f"{path}, from line {block.first_line} on, cannot be read: {error}.")


def _fits(field: str) -> bool:
    try:
        return -(2**31) <= int(field) < 2**31
    except ValueError:
        return False
