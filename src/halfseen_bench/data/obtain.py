"""Fetch a data set from its official addresses into a data folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path, PurePosixPath

from halfseen.errors import DownloadError
from halfseen.outputs import atomic_write
from halfseen_bench.data.archives import ArchiveError, members
from halfseen_bench.data.catalog import DataSet, Remote
from halfseen_bench.data.check import Finding, check
from halfseen_bench.data.download import fetch

Progress = Callable[[str, int, int | None], None]
"""Called with the name of what is under way, the bytes at hand and the bytes in all."""


def obtain(
    root: Path, data_set: DataSet, *, progress: Progress | None = None, timeout: float = 30.0
) -> list[Finding]:
    """Fetch what is not there, or wrong; return what was found in the end.

    Whatever is there and may serve is left alone: delete it to have it fetched. Everything is
    gathered in ``.incoming`` under the data folder, checked there as `check` checks a data folder,
    and moved to its place only then. What an interrupted call gathered is used by the next one.
    """
    show = progress or (lambda name, done, total: None)
    before = list(check(root, data_set))
    held = {finding.path for finding in before if finding.is_good}
    if len(held) == len(before):
        return before
    incoming = root / ".incoming"
    for remote in data_set.remotes:
        path = incoming / remote.path
        if remote.path not in held:
            fetch(
                remote.addresses,
                path,
                checksum=data_set.checksum(remote),
                progress=partial(show, path.name),
                timeout=timeout,
            )
        if remote.unpack is not None:
            _unpack(path, remote, data_set, incoming, show)
    arrived = [finding for finding in check(incoming, data_set) if finding.path not in held]
    bad = [finding for finding in arrived if not finding.is_good]
    if not bad:
        _install(incoming, root, [finding.path for finding in arrived])
    shutil.rmtree(incoming / data_set.name, ignore_errors=True)
    if bad:
        raise DownloadError(
            f"What {data_set.remotes[0].addresses[0]} gave is not {data_set.name} as published: "
            f"{bad[0].path}: {bad[0].detail}. Nothing was kept; see {data_set.page}."
        )
    if incoming.is_dir() and not any(incoming.iterdir()):
        incoming.rmdir()
    return list(check(root, data_set))


def _unpack(
    archive: Path, remote: Remote, data_set: DataSet, incoming: Path, show: Progress
) -> None:
    """Unpack the files that the reader wants; a member's own path never leaves `incoming`."""
    inside, here = (PurePosixPath(part) for part in remote.unpack or ("", ""))
    wanted = [official.path for official in data_set.files]
    try:
        for member, size, chunks in members(archive, remote.limit):
            name = PurePosixPath(os.path.normpath(member))
            if ".." in name.parts or not name.is_relative_to(inside):
                continue
            path = (here / name.relative_to(inside)).as_posix()
            if any(path in (w, w.removesuffix(".gz")) or path.startswith(f"{w}/") for w in wanted):
                with atomic_write(incoming / path) as part, part.open("wb") as file:
                    for chunk in chunks:
                        file.write(chunk)
                        show(f"unpack {name.name}", file.tell(), size)
    except ArchiveError as error:
        archive.unlink(missing_ok=True)
        raise DownloadError(
            f"{remote.addresses[0]} gave an archive that cannot be unpacked: {error}. It was "
            "removed; run the command again."
        ) from None


def _install(incoming: Path, root: Path, arrived: list[str]) -> None:
    """Move checked files and folders to their places."""
    try:
        for name in arrived:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            if (root / name).is_dir():
                shutil.rmtree(root / name)
            os.replace(incoming / name, root / name)
    except OSError as error:
        raise DownloadError(f"{root} cannot be written: {error}.") from error
