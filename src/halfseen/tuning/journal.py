"""The file that keeps a search's trials: Optuna's journal, made safe against kills and damage."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halfseen.errors import HalfseenError, InputError, reason
from halfseen.files import locked, sync

if TYPE_CHECKING:
    from optuna.storages import JournalStorage

_BEGINNING = b'{"op_code":'
"""How every line of Optuna's begins."""


def open_journal(path: Path) -> JournalStorage:
    """Open a journal, or begin one; a file that is damaged or something else is refused.

    Optuna alone would append to any file, and end in a traceback at a line it cannot read.
    """
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            _check(path)
        else:
            path.touch()
            sync(path.parent)
        lock: Any = _TrimmingLock(path)
        kept: Any = _SealedLines(path, JournalFileBackend(str(path), lock))
        return JournalStorage(kept)
    except HalfseenError:
        raise
    except OSError as error:
        raise HalfseenError(f"The trials cannot be kept in {path}: {reason(error)}") from error
    except Exception as error:  # whatever a line that says something else leads to
        raise InputError(
            f"{path} is damaged: its lines contradict each other ({error!r}). Put a copy of it "
            "back, or delete it to begin anew."
        ) from error


@dataclass(frozen=True)
class _SealedLines:
    """Optuna's journal, each line with a seal: a changed digit would be a changed score."""

    path: Path
    backend: Any

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:
        try:
            yield from self.backend.read_logs(log_number_from)
        except OSError as error:
            raise HalfseenError(f"{self.path} could not be read: {reason(error)}") from error

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        try:
            self.backend.append_logs([{**log, "seal": _seal(log)} for log in logs])
        except OSError as error:
            raise HalfseenError(f"{self.path} could not be written: {reason(error)}") from error


@dataclass(frozen=True)
class _TrimmingLock:
    """A lock on a journal, whose holder first cuts off an incomplete last line.

    A process that is killed while it writes leaves one; Optuna would write on in the same line
    and could read neither part again. Optuna's own locks are files, which a kill leaves behind:
    whoever came next waited for half a minute.
    """

    path: Path
    held: ExitStack = field(default_factory=ExitStack)

    def acquire(self) -> bool:
        try:
            with ExitStack() as held:
                held.enter_context(locked(self.path))
                _trim(self.path)
                self.held.push(held.pop_all())
        except OSError as error:
            raise HalfseenError(f"{self.path} could not be written: {reason(error)}") from error
        return True

    def release(self) -> None:
        self.held.close()


def _seal(log: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(log, sort_keys=True).encode()).hexdigest()[:16]


def _trim(path: Path) -> None:
    with path.open("rb+") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 1))
        if file.read(1) not in (b"", b"\n"):
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)


def _check(path: Path) -> None:
    """Refuse a file with a line that was not written so; an incomplete last one may be anything."""
    *lines, last = path.read_bytes().split(b"\n")
    opening = lines[0] if lines else last
    if not opening.startswith(_BEGINNING) and (lines or not _BEGINNING.startswith(opening)):
        raise InputError(
            f"{path} is not the journal of a search, so no trials are kept in it: give the search "
            "a storage of its own."
        )
    for number, line in enumerate(lines, 1):
        try:
            log = json.loads(line)
            if log.pop("seal") != _seal(log):
                raise ValueError
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
            raise InputError(
                f"{path}: line {number} is damaged. Remove it and all lines after it to go on with "
                "the trials before it, or delete the file to begin anew."
            ) from None
