"""Criteo's text file to Parquet: a stream in, numbered parts out, resumed where it stopped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from halfseen.atomic_files import atomic_write
from halfseen.errors import InputError
from halfseen_bench.data.criteo_file import line_blocks, parsed, schema
from halfseen_bench.data.official import optional_module, read_chunks

__all__ = ["Conversion", "convert", "finished_conversion", "read_batches"]

_MANIFEST = "conversion.json"


@dataclass
class Conversion:
    """What a folder of parts holds: written after every part, so that work can go on from it."""

    source: dict[str, str | int]
    """Name, size and a hash of the head: enough to tell another file."""
    parts: list[str] = field(default_factory=list)
    rows: int = 0
    end: int = 0
    """How much of the content the parts cover, in bytes."""
    complete: bool = False

    @classmethod
    def read(cls, folder: Path) -> Conversion | None:
        """Return what an earlier run left in `folder`, if anything."""
        path = folder / _MANIFEST
        if not path.exists():
            return None
        try:
            return cls(**json.loads(path.read_text()))
        except (OSError, ValueError, TypeError) as error:
            raise InputError(
                f"{path} cannot be read ({error}); delete the folder and convert again."
            ) from error

    def write(self, folder: Path) -> None:
        """Replace the folder's manifest."""
        with atomic_write(folder / _MANIFEST) as partial:
            partial.write_text(json.dumps(asdict(self), indent=1))


def convert(
    path: Path,
    folder: Path,
    *,
    block_bytes: int = 16 << 20,
    part_bytes: int = 256 << 20,
    progress: bool = True,
) -> Conversion:
    """Write the rows of `path` as Parquet parts in `folder`, with memory bounded by a block.

    A part appears under its name when it is whole. Called again after an interruption, the
    function goes on after the last whole part; a finished folder is left alone.

    Parameters
    ----------
    path
        ``train.txt``, packed or not.
    folder
        Where ``part-00000.parquet`` and its successors go, with a manifest.
    block_bytes, part_bytes
        Text parsed at a time, and text that goes into one part.
    progress
        Whether to show a bar.
    """
    path, folder = Path(path), Path(folder)
    source = _fingerprint(path)
    state = Conversion.read(folder) or Conversion(source)
    if state.source != source:
        raise InputError(
            f"{folder} holds a conversion of another file ({state.source['name']}); "
            "choose another folder, or delete it."
        )
    lost = [name for name in state.parts if not (folder / name).exists()]
    if lost:
        raise InputError(f"{folder} has lost {lost[0]}; delete the folder and convert again.")
    if state.complete:
        return state
    parquet = optional_module("pyarrow.parquet", "Writing Parquet")
    with _bar(progress) as bar:
        task = bar.add_task(f"{path.name} to Parquet", total=path.stat().st_size, rows=state.rows)
        blocks = line_blocks(
            path,
            size=block_bytes,
            start=state.end,
            first_line=state.rows + 1,
            on_position=lambda position: bar.update(task, completed=position),
        )
        for first in blocks:
            name = f"part-{len(state.parts):05d}.parquet"
            end, rows = state.end, state.rows
            with (
                atomic_write(folder / name) as partial,
                parquet.ParquetWriter(partial, schema(), compression="zstd") as writer,
            ):
                for block in chain([first], blocks):
                    writer.write_table(parsed(block, path))
                    end, rows = block.end, rows + block.lines
                    bar.update(task, rows=rows)
                    if end - state.end >= part_bytes:
                        break
            state.parts.append(name)
            state.end, state.rows = end, rows
            state.write(folder)
    if not state.parts:
        raise InputError(f"{path} holds no rows.")
    state.complete = True
    state.write(folder)
    return state


def finished_conversion(folder: Path) -> Conversion:
    """Return the conversion in `folder`; refuse one that is absent or half done."""
    state = Conversion.read(folder)
    if state is None:
        raise InputError(f"{folder} holds no conversion of Criteo's file; make it with convert().")
    if not state.complete:
        raise InputError(
            f"The conversion in {folder} stopped after {state.rows} rows; run convert() again."
        )
    return state


def read_batches(path: Path, columns: Sequence[str]) -> Iterator[Any]:
    """Yield Arrow tables of some columns, from a folder of parts or from the text itself."""
    if not path.is_dir():
        for block in line_blocks(path):
            yield parsed(block, path, columns)
        return
    arrow = optional_module("pyarrow", "Reading Parquet")
    parquet = optional_module("pyarrow.parquet", "Reading Parquet")
    for name in finished_conversion(path).parts:
        try:
            with parquet.ParquetFile(path / name) as part:
                for batch in part.iter_batches(batch_size=1 << 16, columns=list(columns)):
                    yield arrow.Table.from_batches([batch])
        except (OSError, arrow.ArrowInvalid) as error:
            raise InputError(
                f"{path / name} cannot be read ({error}); delete {path} and convert again."
            ) from error


def _fingerprint(path: Path) -> dict[str, str | int]:
    head = next(read_chunks(path), b"")
    return {
        "name": path.name,
        "bytes": path.stat().st_size,
        "head": hashlib.sha256(head).hexdigest(),
    }


def _bar(shown: bool) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %  {task.fields[rows]:,} rows"),
        TimeRemainingColumn(),
        disable=not shown,
    )
