"""Fetch a file with pooch, going on from what an earlier attempt left.

pooch keeps what has the right checksum, verifies what arrives, and only then gives it its name. It
starts a broken download over; the downloader that it is given here continues it by HTTP ranges.
"""

from __future__ import annotations

import errno
import http.client
import os
import re
import shutil
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from email.message import Message
from pathlib import Path

from halfseen.errors import DownloadError
from halfseen_bench.data.official import optional_module

__all__ = ["fetch", "partial_path"]

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
        Where the file goes. A file already there is kept, unless its checksum is another one.
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
    download = _Download(
        partial_path(destination), checksum is not None, progress, timeout, attempts, pause
    )
    failures: list[str] = []
    for address in [addresses] if isinstance(addresses, str) else addresses:
        try:
            _retrieve(address, destination, checksum, download)
            return destination
        except DownloadError as failure:
            failures.append(str(failure))
        except OSError as error:  # the network's are told apart in _Download: this is the disk's
            if error.errno == errno.ENOSPC:
                raise DownloadError(
                    f"No space is left where {destination} is written: free some, or choose "
                    "another data folder, and run the command again to go on."
                ) from None
            raise DownloadError(f"{destination} cannot be written ({_reason(error)}).") from None
    raise DownloadError(" ".join(failures))


def partial_path(destination: Path) -> Path:
    """Return the name under which bytes are gathered until the file is whole.

    Examples
    --------
    >>> partial_path(Path("mnist/train-images-idx3-ubyte.gz")).name
    '.partial-train-images-idx3-ubyte.gz'
    """
    return destination.with_name(f".partial-{destination.name}")


def _retrieve(address: str, destination: Path, checksum: str | None, download: _Download) -> None:
    """Let pooch have the file downloaded, verified and named."""
    pooch = optional_module("pooch", "Fetching data")
    pooch.get_logger().setLevel("WARNING")
    # A part may be of another version of the file: then once more, from the start.
    for last in (False, True) if download.part.exists() else (True,):
        try:
            folder = destination.parent
            pooch.retrieve(address, checksum, destination.name, folder, downloader=download)
            return
        except ValueError as mismatch:
            if last:
                raise DownloadError(
                    f"{address} did not give the official file: {mismatch}"
                ) from None


@dataclass(frozen=True)
class _Download:
    """A downloader for pooch that continues a part; see :func:`fetch`."""

    part: Path
    is_verified: bool
    progress: Progress | None
    timeout: float
    attempts: int
    pause: float

    def __call__(self, address: str, output: str, _pooch: object) -> None:
        """Bring the part to the whole file, however often the transfer breaks off; hand it over."""
        if not address.startswith(("http://", "https://")):
            raise DownloadError(f"{address} is not an http or https address.")
        furthest, failed = _size(self.part), 0
        while True:
            try:
                self._transfer(address)
                break
            except _BrokenOffError as broken:
                reached = _size(self.part)
                failed = 1 if reached > furthest else failed + 1
                furthest = max(furthest, reached)
                if failed >= self.attempts:
                    raise DownloadError(
                        f"{address} broke off again and again ({broken}). {reached:,} bytes are "
                        f"kept in {self.part}: run the command again to go on from there."
                    ) from None
                time.sleep(self.pause * 2 ** (failed - 1))
        os.replace(self.part, output)
        _forget(self.part)

    def _transfer(self, address: str) -> None:
        """Make one request and append what it brings; return when the file is whole."""
        tag = _read_tag(self.part)
        start = _size(self.part) if self.is_verified or tag else 0
        headers = {"User-Agent": "halfseen", "Accept-Encoding": "identity"}
        if start:
            headers |= {"Range": f"bytes={start}-"} | ({"If-Range": tag} if tag else {})
        answer = self._ask(address, headers, start)
        if answer is None:
            return
        with answer:
            start = start if answer.status == 206 else 0
            total = _announced(answer, start)
            if total is None and not self.is_verified:
                raise DownloadError(
                    f"{address} does not say how long the file is and no checksum of it is "
                    "known: a truncated copy could not be told from a whole one."
                )
            _check_space(self.part, total, start)
            if not start:
                _forget(self.part)
                _write_tag(self.part, answer.headers)
            self._append(answer, start, total)

    def _ask(
        self, address: str, headers: dict[str, str], start: int
    ) -> http.client.HTTPResponse | None:
        """Open the connection; None means that the part is already as long as the file."""
        request = urllib.request.Request(address, headers=headers)
        try:
            answer: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=self.timeout)
            return answer
        except urllib.error.HTTPError as error:
            if error.code == 416 and error.headers.get("Content-Range") == f"bytes */{start}":
                return None
            if error.code == 416:
                _forget(self.part)
            if error.code in (408, 416, 429) or error.code >= 500:
                raise _BrokenOffError(f"it answered {error.code} {error.reason}") from None
            raise DownloadError(f"{address} answered {error.code} {error.reason}.") from None
        except urllib.error.URLError as error:
            if isinstance(error.reason, TimeoutError | ConnectionResetError):
                raise _BrokenOffError(_reason(error.reason)) from None
            raise DownloadError(
                f"{address} cannot be reached ({_reason(error.reason)}); is there a network?"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            raise _BrokenOffError(_reason(error)) from None

    def _append(self, answer: http.client.HTTPResponse, start: int, total: int | None) -> None:
        """Write the body behind the first `start` bytes of the part."""
        done = start
        with self.part.open("r+b" if start else "wb") as stream:
            stream.seek(start)
            while chunk := _received(answer):
                stream.write(chunk)
                stream.flush()  # a full disk shows here, and an interruption loses nothing
                done += len(chunk)
                if self.progress is not None:
                    self.progress(done, total)
        if total is not None and done < total:
            raise _BrokenOffError(f"only {done:,} of {total:,} bytes arrived")


def _received(answer: http.client.HTTPResponse) -> bytes:
    try:
        return answer.read1(_CHUNK)
    except (OSError, http.client.HTTPException) as error:
        raise _BrokenOffError(_reason(error)) from None


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


def _check_space(part: Path, total: int | None, start: int) -> None:
    free = shutil.disk_usage(part.parent).free
    if total is not None and total - start > free:
        raise DownloadError(
            f"{part.parent} has {free:,} bytes free and {total - start:,} more are needed: free "
            "some space, or choose another data folder."
        )


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
        _tag_path(part).write_text(tag, encoding="ascii")


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _tag_path(part).unlink(missing_ok=True)
