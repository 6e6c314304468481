"""Whether the files of a data folder are the official ones, or at least readable."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from halfseen.errors import HalfseenError, InputError
from halfseen_bench.data.catalog import DataSet
from halfseen_bench.data.official import OfficialFile, content_sha256, locate

__all__ = ["Finding", "check"]

Verdict = Literal["official", "readable", "subset", "missing", "wrong"]

_PHOTOS = "b626d29a9653bf7a573863ad2470032b8d6e01a04a88d1c1e4b599055eb60e71"
"""Hash of the 200 BSDS500 training photos, one after the other in the order of their names."""


@dataclass(frozen=True)
class Finding:
    """What was found where one official file belongs.

    ``official``: byte for byte the published content. ``readable``: complete in rows, other bytes.
    ``subset``: readable, with fewer rows. ``missing`` and ``wrong`` cannot be used.
    """

    path: str
    verdict: Verdict
    detail: str

    @property
    def is_good(self) -> bool:
        """Whether a reader can use it."""
        return self.verdict not in ("missing", "wrong")

    @property
    def is_complete(self) -> bool:
        """Whether it has all rows, so that nothing need be fetched."""
        return self.is_good and self.verdict != "subset"


def check(root: Path, data_set: DataSet) -> Iterator[Finding]:
    """Yield one finding per official file of a set, in the folder `root`.

    Where the published content is known, any other content is wrong. Where a part of the file
    is legitimate (SVHN, Criteo, photos), the reader is run over it and the rows are counted.
    """
    served = {remote.path: remote.checksum for remote in data_set.remotes if not remote.unpack}
    for official in data_set.files:
        try:
            paths = _located(root, official)
        except InputError:
            yield Finding(official.path, "missing", "not there")
            continue
        for path in paths:
            name = path.relative_to(root).as_posix()
            try:
                verdict, detail = _judge(root, path, official, data_set, served.get(name))
            except HalfseenError as error:
                verdict, detail = "wrong", str(error)
            yield Finding(name, verdict, detail)


def _located(root: Path, official: OfficialFile) -> list[Path]:
    """Return the file, or all of those that serve instead."""
    try:
        return [locate(root, official.path)]
    except InputError:
        if not official.instead:
            raise
    return [locate(root, path) for path in official.instead]


def _judge(
    root: Path, path: Path, official: OfficialFile, data_set: DataSet, served: str | None
) -> tuple[Verdict, str]:
    if path.is_dir():
        if _folder_sha256(path) == _PHOTOS:
            return "official", f"{data_set.rows[official.path]:,} files, sha256 as recorded"
    elif official.sha256 and path == locate(root, official.path):
        found = content_sha256(path)
        if found == official.sha256:
            return "official", "sha256 as recorded"
        return "wrong", (
            f"the sha256 of its content is {found}, not {official.sha256}: fetch it again"
        )
    elif served:
        algorithm, expected = served.split(":")
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, algorithm).hexdigest()
        if found == expected:
            return "official", f"{algorithm} as recorded"
    rows, complete = _COUNT[data_set.name](root, path), data_set.rows.get(official.path)
    if complete is not None and rows < complete:
        return "subset", f"subset: {rows:,} of {complete:,} rows"
    return "readable", f"{rows:,} rows; {'other bytes' if served else 'no checksum is known'}"


def _folder_sha256(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.iterdir() if not p.name.startswith(".")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _count_usps(root: Path, path: Path) -> int:
    from halfseen_bench.data.digit_files import read_usps

    return len(read_usps(root, "test" if path.name == "usps.t.bz2" else "train")[1])


def _count_svhn(root: Path, path: Path) -> int:
    from halfseen_bench.data.digit_files import read_svhn

    return len(read_svhn(root, "test" if path.name.startswith("test") else "train")[1])


def _count_photos(root: Path, path: Path) -> int:
    from halfseen_bench.data.mnistm import read_photos

    return len(read_photos(root))


def _count_criteo(root: Path, path: Path) -> int:
    from halfseen_bench.data.criteo_file import line_blocks, parsed

    return sum(len(parsed(block, path)) for block in line_blocks(path))


def _count_gas(root: Path, path: Path) -> int:
    from halfseen_bench.data.gas import read_batch

    return len(read_batch(path))


def _count_shoppers(root: Path, path: Path) -> int:
    from halfseen_bench.data.shoppers import read_visits

    return len(read_visits(root))


# Readers are imported when a file is at hand: `halfseen data list` needs none of them.
_COUNT: dict[str, Callable[[Path, Path], int]] = {
    "usps": _count_usps,
    "svhn": _count_svhn,
    "bsds500": _count_photos,
    "criteo": _count_criteo,
    "gas": _count_gas,
    "shoppers": _count_shoppers,
}
