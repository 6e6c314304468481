"""Files are written whole or not at all: to a temporary name, then renamed."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from halfseen.errors import HalfseenError

__all__ = ["sync_file", "sync_folder", "temporary_path", "write_text", "written_whole"]


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give a temporary name beside `path`; it becomes `path` when the block ends well.

    It does so when its content has reached the disk: after a power cut, too, there is the old
    file or the new one.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with written_whole(folder / "a.txt") as partial:
    ...     _ = partial.write_text("whole")
    >>> [file.name for file in folder.iterdir()]
    ['a.txt']
    """
    partial = temporary_path(path, "partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        sync_file(partial)
        os.replace(partial, path)
        sync_folder(path.parent)
    except OSError as error:
        raise HalfseenError(f"{path} could not be written: {error}.") from error
    finally:
        with suppress(OSError):
            partial.unlink()


def write_text(path: Path, text: str) -> None:
    """Write a text file in one piece."""
    with written_whole(path) as partial:
        partial.write_text(text, encoding="utf-8")


def temporary_path(path: Path, kind: str) -> Path:
    """Return a hidden name beside `path` that no other process has, on this machine or another.

    Containers that share a folder have the same process ids, so the name is drawn. The ending
    stays last: some writers choose or append a format by it.
    """
    return path.with_name(f".{secrets.token_hex(6)}.{kind}.{path.name}")


def sync_file(path: Path) -> None:
    """Wait until a file's content is on the disk."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk, where the system can do that."""
    with suppress(OSError):  # some file systems have no such thing
        folder = os.open(path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
