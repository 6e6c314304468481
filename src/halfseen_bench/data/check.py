"""Whether the files of a data folder are the official ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from halfseen.errors import InputError
from halfseen_bench.data.catalog import DataSet
from halfseen_bench.data.official import OfficialFile, content_sha256, locate


@dataclass(frozen=True)
class Finding:
    """What was found where one official file belongs.

    ``official``: byte for byte the published content. ``other``: something else that may serve,
    as a part of a large file does, or of which no checksum is known; whether it can be read shows
    when it is. ``missing`` and ``wrong`` cannot be used.
    """

    path: str
    verdict: Literal["official", "other", "missing", "wrong"]
    detail: str

    @property
    def is_good(self) -> bool:
        """Whether a reader can use it."""
        return self.verdict in ("official", "other")


def check(root: Path, data_set: DataSet) -> Iterator[Finding]:
    """Yield one finding per official file of a set, in the folder `root`."""
    served = {remote.path: remote.checksum for remote in data_set.remotes if not remote.unpack}
    for official in data_set.files:
        try:
            paths = _located(root, official)
        except InputError:
            yield Finding(official.path, "missing", "not there")
            continue
        for path in paths:
            name = path.relative_to(root).as_posix()
            own = path == paths[0] and len(paths) == 1
            yield _judged(path, name, official.sha256 if own else None, served.get(name))


def _located(root: Path, official: OfficialFile) -> list[Path]:
    """Return the file, or all of those that serve instead."""
    try:
        return [locate(root, official.path)]
    except InputError:
        if not official.instead:
            raise
    return [locate(root, path) for path in official.instead]


def _judged(path: Path, name: str, sha256: str | None, served: str | None) -> Finding:
    if sha256 is not None:
        try:
            found = content_sha256(path)
        except InputError as error:  # a packed file that ends early
            return Finding(name, "wrong", str(error))
        if found == sha256:
            return Finding(name, "official", "sha256 as recorded")
        words = f"the sha256 of its content is {found}, not {sha256}: fetch it again"
        return Finding(name, "wrong", words)
    if served is None or path.is_dir():
        return Finding(name, "other", "there; no checksum is known")
    algorithm, expected = served.split(":")
    with path.open("rb") as stream:
        is_same = hashlib.file_digest(stream, algorithm).hexdigest() == expected
    if is_same:
        return Finding(name, "official", f"{algorithm} as recorded")
    return Finding(name, "other", f"there; its {algorithm} is not that of the published file")
