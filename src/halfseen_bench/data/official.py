"""Official files: where they lie under the data folder, and how their content is read."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from halfseen.errors import InputError


@dataclass(frozen=True)
class OfficialFile:
    """One file, or folder, of a data set's official distribution."""

    path: str
    """Where it lies, relative to the data folder."""
    sha256: str | None = None
    """Of the content *after* decompression, so that packing does not matter; where it is known."""
    instead: tuple[str, ...] = ()
    """Files that serve as well when all of them are there."""


def locate(root: Path, *candidates: str) -> Path:
    """Return the first candidate under `root` that exists, packed (``.gz``) or not."""
    for candidate in candidates:
        for name in (candidate, f"{candidate}.gz", candidate.removesuffix(".gz")):
            if (Path(root) / name).exists():
                return Path(root) / name
    wanted = " or ".join(repr(c) for c in candidates)
    raise InputError(
        f"{wanted} is not in the data folder {root}; `halfseen data list` says where it comes from."
    )


def _chunks(path: Path) -> Iterator[bytes]:
    """Yield the content, decompressed where the name says so."""
    unpackers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
    try:
        with unpackers.get(path.suffix, open)(path, "rb") as stream:
            while chunk := stream.read(1 << 20):
                yield chunk
    except EOFError:
        raise InputError(
            f"{path} is truncated: the compressed data end too early. Fetch the file again."
        ) from None
    except (OSError, zlib.error) as error:
        raise InputError(f"{path} cannot be read: {error}.") from error


def content(path: Path, limit: int = 1 << 30) -> bytes:
    """Return the whole content, decompressed where the name says so, of at most `limit` bytes."""
    chunks, size = [], 0
    for chunk in _chunks(path):
        chunks.append(chunk)
        size += len(chunk)
        if size > limit:
            raise InputError(f"{path} unpacks to more than {limit:,} bytes: it is no such file.")
    return b"".join(chunks)


def content_sha256(path: Path) -> str:
    """Return the hash that :class:`OfficialFile` records, without holding the content."""
    digest = hashlib.sha256()
    for chunk in _chunks(path):
        digest.update(chunk)
    return digest.hexdigest()
