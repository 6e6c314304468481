"""Fetch a file: go on from what is there, verify the whole, and only then give it its name."""

from __future__ import annotations

import errno
import hashlib
import http.client
import os
import re
import shutil
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from pathlib import Path

from halfseen.errors import DownloadError

__all__ = ["fetch", "file_digest", "partial_path"]

Progress = Callable[[int, int | None], None]
"""Called with the bytes at hand and the bytes in all, where the server said how many."""

_CHUNK = 1 << 18


class _BrokenOffError(Exception):
    """The connection broke off; what arrived is kept and worth another attempt."""


def fetch(
    addresses: str | Sequence[str],
    destination: Path,
    *,
    checksum: str | None = None,
    progress: Progress | None = None,
    timeout: float = 30.0,
    attempts: int = 4,
    pause: float = 1.0,
) -> Path:
    """Fetch `destination` from the first address that gives it.

    Bytes are gathered under :func:`partial_path`, which a later call continues; `destination`
    appears at the end, complete and verified, or not at all.

    Parameters
    ----------
    addresses
        One or several http or https addresses of the same file.
    destination
        Where the file goes; a file already there is replaced.
    checksum
        ``sha256:...`` or ``md5:...`` of the file. Without one the length that the server states
        must be met, and a part is only continued if the server says that the file is unchanged.
    progress
        Told about every chunk.
    timeout
        Seconds without a byte after which the connection counts as stalled.
    attempts
        Attempts in a row that bring nothing new before an address is given up.
    pause
        Seconds before the second attempt; doubled before each later one.

    Raises
    ------
    DownloadError
        No address gave the file; the message says why, and what is kept.
    """
    part = partial_path(destination)
    with _disk(destination.parent):
        destination.parent.mkdir(parents=True, exist_ok=True)
    failures: list[str] = []
    for address in [addresses] if isinstance(addresses, str) else addresses:
        try:
            _gather(_Order(address, part, checksum, progress, timeout, attempts, pause))
        except DownloadError as failure:
            failures.append(str(failure))
            continue
        with _disk(destination):
            os.replace(part, destination)
            _forget(part)
        return destination
    raise DownloadError(" ".join(failures))


def partial_path(destination: Path) -> Path:
    """Return the name under which bytes are gathered until the file is whole.

    Examples
    --------
    >>> partial_path(Path("mnist/train-images-idx3-ubyte.gz")).name
    '.partial-train-images-idx3-ubyte.gz'
    """
    return destination.with_name(f".partial-{destination.name}")


def file_digest(path: Path, algorithm: str = "sha256") -> str:
    """Return the hash of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, algorithm).hexdigest()


@dataclass(frozen=True)
class _Order:
    """What is fetched from one address, into which part; see :func:`fetch`."""

    address: str
    part: Path
    checksum: str | None
    progress: Progress | None
    timeout: float
    attempts: int
    pause: float


def _gather(order: _Order) -> None:
    """Bring the part to the whole, verified file."""
    if not order.address.startswith(("http://", "https://")):
        raise DownloadError(f"{order.address} is not an http or https address.")
    continued = order.part.exists()
    _transfer_patiently(order)
    if continued and not _matches(order):
        # The part may have been of another version of the file: once more, from the start.
        _forget(order.part)
        _transfer_patiently(order)
    if not _matches(order):
        algorithm, expected = str(order.checksum).split(":")
        found = file_digest(order.part, algorithm)
        _forget(order.part)
        raise DownloadError(
            f"{order.address} did not give the official file: its {algorithm} is {found}, not "
            f"{expected}. Nothing was kept."
        )


def _transfer_patiently(order: _Order) -> None:
    """Repeat a transfer that breaks off, until several in a row bring nothing new."""
    furthest, failed = _size(order.part), 0
    while True:
        try:
            return _transfer(order)
        except _BrokenOffError as broken:
            reached = _size(order.part)
            failed = 1 if reached > furthest else failed + 1
            furthest = max(furthest, reached)
            if failed >= order.attempts:
                raise DownloadError(
                    f"{order.address} broke off again and again ({broken}). {reached:,} bytes are "
                    f"kept in {order.part}: run the command again to go on from there."
                ) from None
            time.sleep(order.pause * 2 ** (failed - 1))


def _transfer(order: _Order) -> None:
    """Make one request and append what it brings; return when the file is whole."""
    tag = _read_tag(order.part)
    start = _size(order.part) if order.checksum or tag else 0
    headers = {"User-Agent": "halfseen", "Accept-Encoding": "identity"}
    if start:
        headers |= {"Range": f"bytes={start}-"} | ({"If-Range": tag} if tag else {})
    answer = _ask(order, headers, start)
    if answer is None:
        return
    with answer:
        start = start if answer.status == 206 else 0
        total = _announced(answer, start)
        if total is None and order.checksum is None:
            raise DownloadError(
                f"{order.address} does not say how long the file is and no checksum of it is "
                "known: a truncated copy could not be told from a whole one."
            )
        _check_space(order.part, total, start)
        if not start:
            _forget(order.part)
            _write_tag(order.part, answer.headers)
        _append(answer, order, start, total)


def _ask(order: _Order, headers: dict[str, str], start: int) -> http.client.HTTPResponse | None:
    """Open the connection; None means that the part is already as long as the file."""
    request = urllib.request.Request(order.address, headers=headers)
    try:
        answer: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=order.timeout)
        return answer
    except urllib.error.HTTPError as error:
        if error.code == 416 and error.headers.get("Content-Range") == f"bytes */{start}":
            return None
        if error.code == 416:
            _forget(order.part)
        if error.code in (408, 416, 429) or error.code >= 500:
            raise _BrokenOffError(f"it answered {error.code} {error.reason}") from None
        raise DownloadError(f"{order.address} answered {error.code} {error.reason}.") from None
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError | ConnectionResetError):
            raise _BrokenOffError(_reason(error.reason)) from None
        raise DownloadError(
            f"{order.address} cannot be reached ({_reason(error.reason)}); is there a network?"
        ) from None
    except (OSError, http.client.HTTPException) as error:
        raise _BrokenOffError(_reason(error)) from None


def _append(answer: http.client.HTTPResponse, order: _Order, start: int, total: int | None) -> None:
    """Write the body behind the first `start` bytes of the part."""
    done = start
    with _disk(order.part):
        stream = order.part.open("r+b" if start else "wb")
    with stream:
        stream.seek(start)
        while True:
            try:
                chunk = answer.read1(_CHUNK)
            except (OSError, http.client.HTTPException) as error:
                raise _BrokenOffError(_reason(error)) from None
            if not chunk:
                break
            with _disk(order.part):
                stream.write(chunk)
                stream.flush()  # a full disk shows here, and an interruption loses nothing
            done += len(chunk)
            if order.progress is not None:
                order.progress(done, total)
    if total is not None and done < total:
        raise _BrokenOffError(f"only {done:,} of {total:,} bytes arrived")


def _announced(answer: http.client.HTTPResponse, start: int) -> int | None:
    """Return the length of the whole file as the answer's headers state it."""
    if answer.status == 206:
        match = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", answer.headers.get("Content-Range", ""))
        if not match or int(match[1]) != start:
            raise DownloadError(
                f"{answer.url} was asked for the bytes from {start} on and sent others: "
                f"{answer.headers.get('Content-Range')!r}."
            )
        return int(match[2])
    length = answer.headers.get("Content-Length")
    return int(length) if length and length.isdigit() else None


def _matches(order: _Order) -> bool:
    if order.checksum is None:
        return True
    algorithm, expected = order.checksum.split(":")
    return file_digest(order.part, algorithm) == expected


def _check_space(part: Path, total: int | None, start: int) -> None:
    free = shutil.disk_usage(part.parent).free
    if total is not None and total - start > free:
        raise DownloadError(
            f"{part.parent} has {free:,} bytes free and {total - start:,} more are needed: free "
            "some space, or choose another data folder."
        )


@contextmanager
def _disk(path: Path) -> Iterator[None]:
    """Name what fails on the disk as such: it is no fault of the network."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise DownloadError(
                f"No space is left where {path} is written: free some, or choose another data "
                "folder, and run the command again to go on."
            ) from None
        raise DownloadError(f"{path} cannot be written ({_reason(error)}).") from None


def _reason(error: object) -> str:
    if isinstance(error, TimeoutError):
        return "no byte came for too long"
    if isinstance(error, socket.gaierror):
        return "its name is not known here"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _tag_path(part: Path) -> Path:
    """Return where the version of the file that a part belongs to is noted."""
    return part.with_name(f"{part.name}.tag")


def _read_tag(part: Path) -> str:
    path = _tag_path(part)
    return path.read_text(encoding="ascii").strip() if path.exists() and part.exists() else ""


def _write_tag(part: Path, headers: Message) -> None:
    tag = headers.get("ETag") or ""
    if not tag or tag.startswith("W/"):  # a weak tag does not promise the same bytes
        tag = headers.get("Last-Modified") or ""
    if tag.isascii() and tag:
        with _disk(part):
            _tag_path(part).write_text(tag, encoding="ascii")


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _tag_path(part).unlink(missing_ok=True)
