"""Files are written whole or not at all: to a temporary name, then renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from halfseen.errors import HalfseenError

__all__ = ["write_text", "written_whole"]


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give a temporary name beside `path`; it becomes `path` when the block ends well.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with written_whole(folder / "a.txt") as partial:
    ...     _ = partial.write_text("whole")
    >>> [file.name for file in folder.iterdir()]
    ['a.txt']
    """
    # The ending stays last: some writers choose or append a format by it.
    partial = path.with_name(f".{os.getpid()}.partial.{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        os.replace(partial, path)
    except OSError as error:
        raise HalfseenError(f"{path} could not be written: {error}.") from error
    finally:
        with suppress(OSError):
            partial.unlink()


def write_text(path: Path, text: str) -> None:
    """Write a text file in one piece."""
    with written_whole(path) as partial:
        partial.write_text(text, encoding="utf-8")
