"""Official files: where they lie under the data folder, and how their content is read."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import importlib
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from halfseen.errors import HalfseenError, InputError

__all__ = [
    "OfficialFile",
    "cache_folder",
    "content",
    "content_sha256",
    "locate",
    "optional_module",
    "read_chunks",
]


@dataclass(frozen=True)
class OfficialFile:
    """One file of a data set's official distribution.

    Parameters
    ----------
    path
        Where the file lies, relative to the data folder. A path that names a folder stands for
        everything in it.
    sha256
        Hash of the complete file's content *after* decompression, so that the same value serves
        whether the file was packed again or unpacked. None where no complete file was at hand.
    instead
        Files that serve as well when all of them are there.
    """

    path: str
    sha256: str | None = None
    instead: tuple[str, ...] = ()


def locate(root: Path, *candidates: str) -> Path:
    """Return the first candidate under `root` that exists, packed (``.gz``) or not.

    Examples
    --------
    >>> locate(Path("nowhere"), "heart/processed.va.data")
    Traceback (most recent call last):
    halfseen.errors.InputError: 'heart/processed.va.data' is not in the data folder nowhere; \
`halfseen data list` says where it comes from.
    """
    for candidate in candidates:
        for name in (candidate, f"{candidate}.gz", candidate.removesuffix(".gz")):
            if (Path(root) / name).exists():
                return Path(root) / name
    wanted = " or ".join(repr(c) for c in candidates)
    raise InputError(
        f"{wanted} is not in the data folder {root}; `halfseen data list` says where it comes from."
    )


def read_chunks(
    path: Path,
    *,
    start: int = 0,
    size: int = 1 << 20,
    on_position: Callable[[int], None] = lambda position: None,
) -> Iterator[bytes]:
    """Yield the content from byte `start` on, decompressed where the name says so.

    `on_position` hears how far the file on disk has been read: for a progress bar.
    """
    unpackers: dict[str, Any] = {".gz": _ungzipped, ".bz2": bz2.BZ2File}
    try:
        with path.open("rb") as file:
            stream = unpackers[path.suffix](file) if path.suffix in unpackers else file
            stream.seek(start)
            while chunk := stream.read(size):
                on_position(file.tell())
                yield chunk
    except EOFError:
        raise InputError(
            f"{path} is truncated: the compressed data end too early. Fetch the file again."
        ) from None
    except (OSError, zlib.error) as error:
        raise InputError(f"{path} cannot be read: {error}.") from error


def _ungzipped(file: BinaryIO) -> gzip.GzipFile:
    return gzip.GzipFile(fileobj=file)


def content(path: Path, limit: int = 1 << 30) -> bytes:
    """Return the whole content, decompressed where the name says so, of at most `limit` bytes."""
    chunks, size = [], 0
    for chunk in read_chunks(path):
        chunks.append(chunk)
        size += len(chunk)
        if size > limit:
            raise InputError(f"{path} unpacks to more than {limit:,} bytes: it is no such file.")
    return b"".join(chunks)


def content_sha256(path: Path) -> str:
    """Return the hash that :class:`OfficialFile` records, without holding the content."""
    digest = hashlib.sha256()
    for chunk in read_chunks(path):
        digest.update(chunk)
    return digest.hexdigest()


def optional_module(name: str, purpose: str) -> Any:
    """Import a module of the ``data`` extra, or say how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise HalfseenError(
            f"{purpose} needs {name.split('.')[0]}, which is not installed: "
            "pip install 'halfseen[data]'."
        ) from None


def cache_folder() -> Path:
    """Return this library's folder in the user cache directory."""
    return Path(optional_module("pooch", "Finding the user cache directory").os_cache("halfseen"))
