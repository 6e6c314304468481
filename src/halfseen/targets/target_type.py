"""What both kinds of label speak of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy.typing as npt

from halfseen.arrays import Floats

Labels = npt.NDArray[Any]
"""Class positions or amounts, one each; or soft labels, one row each."""


ClassWeight = str | Mapping[Any, float] | None
"""``balanced``, or a weight for each class."""


class Measure(NamedTuple):
    """Something measured on labelled rows: its words, and its value (None where undefined)."""

    words: str
    of: Callable[[Floats, Labels], float | None]


class Expected(NamedTuple):
    """Something that can be expected on a target: a mean of row losses, read in some way.

    `other` is what a target's mean differs by from what its observed columns let expect, a
    standard deviation found on development problems.
    """

    losses: Floats
    other: float
    read: Callable[[float], float]


class Target(NamedTuple):
    """How held-out source rows stand to a target.

    `weights` say how much more often each occurs there, `covered` whether they are enough to tell
    anything of it.
    """

    weights: Floats
    covered: bool


Look = Callable[[], Target | None]
"""Looks at a target; None where nothing can be told of it."""
