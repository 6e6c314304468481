"""What every reader gives: a source, a target, and labels sealed until evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from halfseen.blocks import Blocks
from halfseen.errors import InputError

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

    def __getitem__(self, rows: npt.NDArray[np.int64]) -> Labelled:
        return Labelled(self.inputs[rows], self.labels[rows])


class Sealed(Generic[T]):
    """A value that only an evaluation may see.

    It does not print itself and no training function accepts it; `open` names the moment at
    which it was looked at, so that a reader of the code can find every such place.
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


@dataclass(frozen=True)
class DomainPair:
    """One problem: learn on the source, predict on the target.

    Labels of the target are sealed; `target_train_labels` are for the supervised ceiling alone, and
    `complete_target` (train, test) for the paper's Full models, where its x2 was measured.
    """

    name: str
    source_train: Labelled
    source_test: Labelled
    target_train: Inputs  # with the missing block at the blocks' fill value
    target_test: Inputs
    target_test_labels: Sealed[Labels]
    blocks: Blocks
    classes: tuple[str, ...]  # labels are positions in it
    card: Card
    complete_target: Sealed[tuple[Inputs, Inputs]] | None = None
    target_train_labels: Sealed[Labels] | None = None
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What the codes of a column stand for, where an exported table should show it as text."""

    @classmethod
    def hiding(
        cls,
        name: str,
        source: Sequence[Labelled],
        target: Sequence[Labelled],
        *,
        blocks: Blocks,
        is_complete: bool,
        **about: Any,
    ) -> DomainPair:
        """Return a problem of labelled parts, train and test: what the target lacks is hidden here.

        `is_complete` says that it was measured all the same.
        """
        (train, test), whole = target, (target[0].inputs, target[1].inputs)
        return cls(
            name,
            source_train=source[0],
            source_test=source[1],
            target_train=blocks.hide(whole[0]),
            target_test=blocks.hide(whole[1]),
            target_test_labels=Sealed(test.labels),
            blocks=blocks,
            complete_target=Sealed(whole) if is_complete else None,
            target_train_labels=Sealed(train.labels),
            **about,
        )

    def frame(self, inputs: Inputs) -> pd.DataFrame:
        """Return rows as a table: codes as words, and None where there is no value."""
        columns = {}
        for name, values in zip(
            self.blocks.names_of(range(inputs.shape[1])), inputs.T, strict=True
        ):
            words = self.categories.get(name)
            if words is not None:
                known = np.array(words, dtype=object)[np.nan_to_num(values).astype(int)]
                values = np.where(np.isnan(values), None, known)
            columns[name] = values
        return pd.DataFrame(columns)
