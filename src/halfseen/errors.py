"""Errors a person can act on: each message says what was wrong, where, and what to do."""

from __future__ import annotations

__all__ = [
    "DownloadError",
    "HalfseenError",
    "InputError",
    "OptionError",
    "TrainingDivergedError",
    "capitalized",
]


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


def capitalized(phrase: str) -> str:
    """Return a phrase as a sentence begins with it; a path stays as it is.

    Examples
    --------
    >>> capitalized("the source"), capitalized("a.csv")
    ('The source', 'a.csv')
    """
    return f"T{phrase[1:]}" if phrase.startswith("the ") else phrase
