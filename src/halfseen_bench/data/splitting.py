"""Seeded choices of rows that the readers share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from halfseen.errors import OptionError
from halfseen.splitting import check_share

Rows = npt.NDArray[np.int64]
Evaluation = Literal["transductive", "split"]
"""Whether a target without an official split is predicted on the rows it was adapted on."""


def check_choice(name: str, value: object, allowed: Sequence[object]) -> None:
    """Reject an option's value that is none of the allowed ones."""
    if value not in allowed:
        choices = ", ".join(repr(a) for a in allowed)
        raise OptionError(f"{name}={value!r} is unknown; choose one of {choices}.")


def check_domains(source: str, target: str, domains: Sequence[str]) -> None:
    """Reject an unknown domain, and a pair that is one domain twice."""
    check_choice("source", source, domains)
    check_choice("target", target, domains)
    if source == target:
        raise OptionError(f"Source and target are both {source!r}; choose two domains.")


def subset(count: int, limit: int | None, seed: int) -> Rows | slice:
    """Return `limit` seeded rows out of `count` in their order, or all of them."""
    if limit is not None and limit < 1:
        raise OptionError(f"A limit of {limit} rows leaves nothing; give at least 1.")
    if limit is None or limit >= count:
        return slice(None)
    return np.sort(np.random.default_rng(seed).choice(count, limit, replace=False))


def target_rows(count: int, evaluation: Evaluation, seed: int) -> tuple[Rows, Rows]:
    """Return (train, test) rows of a target that has no official split.

    ``transductive``: all rows are adapted on, without labels, and all are predicted. ``split``:
    a seeded half of each; chosen without looking at labels.
    """
    check_choice("evaluation", evaluation, get_args(Evaluation))
    rows = np.arange(count)
    return (rows, rows) if evaluation == "transductive" else random_split(count, 0.5, seed)


def random_split(count: int, fraction: float, seed: int) -> tuple[Rows, Rows]:
    """Return (kept, held out) rows, chosen without looking at anything."""
    check_share("test_fraction", fraction)
    rows = np.random.default_rng(seed).permutation(count)
    held = round(fraction * count)
    return np.sort(rows[held:]), np.sort(rows[:held])
