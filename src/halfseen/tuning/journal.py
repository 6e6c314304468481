"""The file of a search's trials: Optuna's journal, with what goes wrong said in a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from halfseen.errors import HalfseenError, InputError, reason
from halfseen.files import write_text

if TYPE_CHECKING:
    from optuna.storages import JournalStorage

_PATIENCE = 10
"""Seconds after which a lock is taken for one that a killed process left."""


def open_journal(path: Path) -> JournalStorage:
    """Open a journal, or begin one; a file that is damaged or something else is refused.

    A process that is killed while it writes leaves an incomplete last line, on which Optuna would
    write on, and read neither part again: so it is cut off first.
    """
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    lock = JournalFileOpenLock(str(path), _PATIENCE)
    try:
        if not path.exists():
            write_text(path, "")
        lock.acquire()
        try:
            content = path.read_bytes()
            opening = b'{"op_code":'  # how Optuna's lines begin
            if not (content.startswith(opening) or opening.startswith(content)):
                raise InputError(
                    f"{path} is not the journal of a search, so no trials are kept in it: give "
                    "the search a storage of its own."
                )
            whole = content.rfind(b"\n") + 1
            for line in content[:whole].splitlines():
                json.loads(line)
            with path.open("rb+") as file:
                file.truncate(whole)
        finally:
            lock.release()
        return JournalStorage(JournalFileBackend(str(path), lock))
    except HalfseenError:
        raise
    except OSError as error:
        raise HalfseenError(f"The trials cannot be kept in {path}: {reason(error)}") from error
    except Exception as error:  # whatever a line that says something else leads to
        raise InputError(
            f"{path} is damaged ({error!r}): put a copy of it back, or delete it to begin anew."
        ) from error
