"""The file of a search's trials: Optuna's journal, with what goes wrong said in a sentence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halfseen.atomic_files import locked, write_text
from halfseen.errors import HalfseenError, InputError, reason

if TYPE_CHECKING:
    from optuna.storages import JournalStorage

_BEGINNING = b'{"op_code":'
"""How every line of Optuna's begins."""


@contextmanager
def open_journal(path: Path) -> Iterator[JournalStorage]:
    """Give a journal, or begin one; a file that is damaged or something else is refused."""
    try:
        if not path.exists():
            write_text(path, "")
        _check(path)
        yield _read(path)
    except OSError as error:
        raise HalfseenError(f"The trials cannot be kept in {path}: {reason(error)}") from error


def _read(path: Path) -> JournalStorage:
    import optuna
    from optuna.storages.journal import JournalFileBackend

    lock: Any = _Lock(path)
    try:
        storage = optuna.storages.JournalStorage(JournalFileBackend(str(path), lock))
        for name in optuna.get_all_study_names(storage):
            for trial in optuna.load_study(study_name=name, storage=storage).trials:
                float(trial.value or 0.0)
    except OSError:
        raise
    except Exception as error:  # whatever a line that says something else leads to
        raise _damaged(path, error) from error
    return storage


def _damaged(path: Path, error: Exception) -> InputError:
    return InputError(
        f"{path} is damaged ({error!r}): put a copy of it back, or delete it to begin anew."
    )


@dataclass(frozen=True)
class _Lock:
    """A lock that ends with its process: Optuna's own are files, which a kill leaves behind."""

    path: Path
    held: ExitStack = field(default_factory=ExitStack)

    def acquire(self) -> bool:
        self.held.enter_context(locked(self.path))
        return True

    def release(self) -> None:
        self.held.close()


def _check(path: Path) -> None:
    """Refuse what is no journal, and cut off the incomplete last line that a kill leaves.

    Optuna would write on in the same line, and could read neither part again.
    """
    with locked(path):
        content = path.read_bytes()
        if not (content.startswith(_BEGINNING) or _BEGINNING.startswith(content)):
            raise InputError(
                f"{path} is not the journal of a search, so no trials are kept in it: give the "
                "search a storage of its own."
            )
        whole = content.rfind(b"\n") + 1
        try:
            for line in content[:whole].splitlines():
                json.loads(line)
        except (ValueError, RecursionError) as error:
            raise _damaged(path, error) from error
        with path.open("rb+") as file:
            file.truncate(whole)
