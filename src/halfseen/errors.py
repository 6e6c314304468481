"""Errors a person can act on: each message says what was wrong, where, and what to do."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError

_REMEDIES = {
    errno.ENOSPC: "free some space, or name a place on another disk",
    errno.EDQUOT: "free some space, or name a place on another disk",
    errno.EFBIG: "name a place that takes files of this size",
    errno.EACCES: "name another place, or ask for the right to this one",
    errno.EPERM: "name another place, or ask for the right to this one",
    errno.EROFS: "name another place",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ELOOP: "name what the links should lead to",
    errno.EMFILE: "allow more open files (ulimit -n)",
}


class HalfseenError(Exception):
    """Base of every error that halfseen raises on purpose."""


class InputError(HalfseenError, ValueError):
    """The data given cannot be used as they are."""


class OptionError(HalfseenError, ValueError):
    """An option has a value that means nothing here."""


class TrainingDivergedError(HalfseenError, RuntimeError):
    """A loss stopped being a finite number."""


class DownloadError(HalfseenError, OSError):
    """A file could not be fetched, or what arrived is not the file."""


class AlarmWarning(UserWarning):
    """Something looks wrong with rows that were given; the answer may be too."""


def outside_of_halfseen() -> int:
    """Return the level of the stack from which halfseen was called, for a warning."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("halfseen."):
        level, frame = level + 1, frame.f_back
    return level


@contextmanager
def installed_by(extra: str, what: str) -> Iterator[None]:
    """Say which extra brings a library that is not there, and what needs it."""
    try:
        yield
    except ImportError as error:
        raise InputError(
            f"{what} needs more libraries ({error}): pip install 'halfseen[{extra}]'"
        ) from None


def capitalized(phrase: str) -> str:
    """Return a phrase as a sentence begins with it; a path stays as it is."""
    return f"T{phrase[1:]}" if phrase.startswith("the ") else phrase


def one_line(error: Exception) -> str:
    r"""Return what a library says, on one line and without a full stop, to be quoted."""
    return " ".join(str(error).split()).rstrip(".")[:300]


def first_fault(error: ValidationError) -> str:
    """Return which field pydantic refuses first, and why."""
    fault = error.errors()[0]
    place = ".".join(str(part) for part in fault["loc"])
    return f"{place}: {fault['msg']}" if place else str(fault["msg"])


def reason(error: OSError) -> str:
    """Return what the system says and what can be done about it, as the end of a sentence."""
    said = (error.strerror or str(error)).rstrip(".")
    remedy = _REMEDIES.get(error.errno or 0)
    return f"{said}; {remedy}." if remedy else f"{said}."
