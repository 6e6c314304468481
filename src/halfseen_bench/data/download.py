"""Fetch a file over HTTP, going on from what an earlier attempt left."""

from __future__ import annotations

import hashlib
import http.client
import os
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

from halfseen.errors import DownloadError

Progress = Callable[[int, int | None], None]
"""Called with the bytes at hand and the bytes in all, where the server said how many."""

_CHUNK = 1 << 18


def fetch(
    addresses: str | Sequence[str],
    destination: Path,
    *,
    checksum: str | None = None,
    progress: Progress | None = None,
    timeout: float = 30.0,
) -> Path:
    """Fetch `destination` from the first address that gives it.

    Bytes are gathered under :func:`partial_path`, which a later call continues; `destination`
    appears at the end, complete and verified, or not at all. A file already there is kept, unless
    its checksum is another one. Without a checksum (``sha256:...`` or ``md5:...``) the length that
    the server states must be met: whoever unpacks the file finds out whether its parts belong
    together. After `timeout` seconds without a byte the connection counts as stalled.
    """
    if destination.exists() and _has(destination, checksum):
        return destination
    part = partial_path(destination)
    failures: list[str] = []
    for address in [addresses] if isinstance(addresses, str) else addresses:
        try:
            part.parent.mkdir(parents=True, exist_ok=True)
            # A part may be of another version of the file: then once more, from the start.
            for _ in (False, True) if part.exists() else (True,):
                _transfer(address, part, checksum is not None, progress, timeout)
                if _has(part, checksum):
                    os.replace(part, destination)
                    return destination
                part.unlink()
            failures.append(f"What {address} gave is not the official file, {checksum}.")
        except DownloadError as failure:
            failures.append(str(failure))
        except OSError as error:  # the network's are told apart below: this is the disk's
            raise DownloadError(
                f"{destination} cannot be written ({_reason(error)}); make room or choose another "
                "data folder, and run the command again to go on."
            ) from None
    if part.exists():
        failures.append(f"{part.stat().st_size:,} bytes are kept: run it again to go on.")
    raise DownloadError(" ".join(failures))


def partial_path(destination: Path) -> Path:
    """Return the name under which bytes are gathered until the file is whole."""
    return destination.with_name(f".partial-{destination.name}")


def _has(path: Path, checksum: str | None) -> bool:
    if checksum is None:
        return True
    algorithm, _, expected = checksum.partition(":")
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, algorithm).hexdigest() == expected


def _transfer(
    address: str, part: Path, is_verified: bool, progress: Progress | None, timeout: float
) -> None:
    """Ask for what the part lacks and append it; return when the file is whole."""
    if not address.startswith(("http://", "https://")):
        raise DownloadError(f"{address} is not an http or https address.")
    start = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": "halfseen", "Accept-Encoding": "identity"}
    headers |= {"Range": f"bytes={start}-"} if start else {}
    request = urllib.request.Request(address, headers=headers)
    try:
        answer = urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code == 416:  # the part is as long as the file, or longer: its checksum tells
            return
        raise DownloadError(f"{address} answered {error.code} {error.reason}.") from None
    except (OSError, http.client.HTTPException) as error:
        why = _reason(error.reason if isinstance(error, urllib.error.URLError) else error)
        words = f"{address} cannot be reached ({why}); is there a network?"
        raise DownloadError(words) from None
    with answer, part.open("ab" if answer.status == 206 else "wb") as stream:
        done = start if answer.status == 206 else 0
        length = answer.headers.get("Content-Length") or ""
        total = done + int(length) if length.isdigit() else None
        if total is None and not is_verified:
            raise DownloadError(
                f"{address} does not say how long the file is and no checksum of it is "
                "known: a truncated copy could not be told from a whole one."
            )
        why = "the connection was closed"
        while True:
            try:
                chunk = answer.read1(_CHUNK)
            except (OSError, http.client.HTTPException) as error:
                chunk, why = b"", _reason(error)
            if not chunk:
                break
            stream.write(chunk)
            stream.flush()  # a full disk shows here, and an interruption loses nothing
            done += len(chunk)
            if progress is not None:
                progress(done, total)
        if total is not None and done < total:
            words = f"{address} broke off ({why}): only {done:,} of {total:,} bytes arrived."
            raise DownloadError(words)


def _reason(error: object) -> str:
    if isinstance(error, TimeoutError):
        return "no byte came for too long"
    if isinstance(error, socket.gaierror):
        return "its name is not known here"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__
