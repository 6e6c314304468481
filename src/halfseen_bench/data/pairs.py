"""What every reader gives: a source, a target, and labels sealed until evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from halfseen.blocks import Blocks
from halfseen.errors import InputError

__all__ = ["Card", "DomainPair", "Labelled", "Sealed"]

Inputs = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]
T = TypeVar("T")


@dataclass(frozen=True)
class Labelled:
    """Inputs with their labels, one label per row."""

    inputs: Inputs
    labels: Labels

    def __post_init__(self) -> None:
        if len(self.inputs) != len(self.labels):
            raise InputError(
                f"{len(self.inputs)} rows of inputs come with {len(self.labels)} labels."
            )

    def __len__(self) -> int:
        return len(self.labels)


class Sealed(Generic[T]):
    """A value that only an evaluation may see.

    It does not print itself and no training function accepts it; `open` names the moment at
    which it was looked at, so that a reader of the code can find every such place.

    Examples
    --------
    >>> sealed = Sealed([1, 0, 1])
    >>> sealed
    Sealed(list)
    >>> sealed.open("evaluation")
    [1, 0, 1]
    """

    def __init__(self, value: T) -> None:
        self.__value = value

    def open(self, purpose: str) -> T:
        """Return the value; `purpose` says why, and must not be empty."""
        if not purpose:
            raise ValueError("Say what the sealed value is opened for.")
        return self.__value

    def __repr__(self) -> str:
        return f"Sealed({type(self.__value).__name__})"


@dataclass(frozen=True)
class Card:
    """What a data set is, for a person: printed by ``halfseen data card``."""

    what: str
    origin: str
    licence: str
    counts: dict[str, int]
    missing: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class DomainPair:
    """One problem: learn on the source, predict on the target.

    Parameters
    ----------
    name
        The pair, as ``usps->mnist``.
    source_train, source_test
        Complete inputs (x1, x2) with labels.
    target_train, target_test
        Inputs with the missing block x2 at the blocks' fill value.
    target_test_labels
        Labels of `target_test`, sealed.
    blocks
        Which inputs the target lacks.
    classes
        Name of each class; labels are positions in it.
    card
        What the data are and where they come from.
    complete_target
        The target with its x2 (train, test), where a benchmark knows it: for the paper's Full
        models alone. None where nature never measured it.
    target_train_labels
        Labels of `target_train`, sealed: for the supervised ceiling alone. None if unknown.
    cardinalities
        For tables whose columns hold codes 0, 1, ... that embeddings can be made of: how many
        codes each column has (None for a column of plain numbers). None if no column has codes.
    categories
        What the codes of a column stand for, where an exported table should show it as text.
    """

    name: str
    source_train: Labelled
    source_test: Labelled
    target_train: Inputs
    target_test: Inputs
    target_test_labels: Sealed[Labels]
    blocks: Blocks
    classes: tuple[str, ...]
    card: Card
    complete_target: Sealed[tuple[Inputs, Inputs]] | None = field(default=None)
    target_train_labels: Sealed[Labels] | None = field(default=None)
    cardinalities: tuple[int | None, ...] | None = field(default=None)
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
