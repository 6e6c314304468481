"""Rows held out, class by class: the one place where labelled rows are split."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedKFold, train_test_split

from halfseen.arrays import Integers
from halfseen.errors import OptionError


def held_out_share(
    labels: npt.NDArray[np.generic], share: float, seed: int = 0
) -> tuple[Integers, Integers]:
    """Return the rows to train on and the rows held out: the same share of every class, rounded.

    At least one row of each class stays to train on. Both are in their order.
    """
    check_share("held_out", share)
    random = np.random.default_rng(seed)
    is_held_out = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        rows = random.permutation(np.flatnonzero(labels == label))
        is_held_out[rows[: min(round(share * len(rows)), len(rows) - 1)]] = True
    return np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)


def held_out_count(
    labels: npt.NDArray[np.generic], count: int, seed: int = 0
) -> tuple[Integers, Integers]:
    """Return the rows to train on and so many rows held out, classes in proportion."""
    rows = np.arange(len(labels))
    train, held_out = train_test_split(rows, test_size=count, stratify=labels, random_state=seed)
    return train, held_out


def folds(labels: npt.NDArray[np.generic], count: int, seed: int = 0) -> StratifiedKFold:
    """Return folds with classes in proportion: `count`, or as many as the rarest class has rows."""
    return StratifiedKFold(min(count, rarest_class(labels)), shuffle=True, random_state=seed)


def rarest_class(labels: npt.NDArray[np.generic]) -> int:
    """Return how many rows the rarest class has."""
    return int(np.unique(labels, return_counts=True)[1].min())


def check_share(name: str, share: float) -> None:
    """Refuse a share that leaves nothing on one side."""
    if not 0.0 < share < 1.0:
        raise OptionError(f"{name}={share} must lie strictly between 0 and 1.")
