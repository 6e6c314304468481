"""Batches of source and target rows: which rows a step sees depends on the seed alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from halfseen.errors import InputError
from halfseen.networks.terms.term import Batch


@dataclass(frozen=True)
class LabelledRows:
    """Source rows with their labels: class positions, or class probabilities (soft labels)."""

    inputs: Tensor
    labels: Tensor
    weights: Tensor | None = None

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, rows: Tensor) -> LabelledRows:
        weights = None if self.weights is None else self.weights[rows]
        return LabelledRows(self.inputs[rows], self.labels[rows], weights)

    @property
    def hard_labels(self) -> Tensor:
        """Class positions: of soft labels the most probable one."""
        return self.labels.argmax(1) if self.labels.ndim == 2 else self.labels

    def to(self, device: torch.device) -> LabelledRows:
        weights = None if self.weights is None else self.weights.to(device)
        return LabelledRows(self.inputs.to(device), self.labels.to(device), weights)


class Batches(Protocol):
    """Any stream of batches that the loop can train on."""

    def steps(self, batch_size: int) -> int:
        """Return how many steps an epoch takes."""

    def epoch(self, batch_size: int, seed: int) -> Iterator[Batch]:
        """Yield the batches of one epoch; the same seed yields the same."""


class ResidentBatches:
    """Batches gathered by index from tensors in memory.

    An epoch passes once over the source (oversampled to equal classes when `balanced`), and
    takes as many target rows, reshuffled whenever they run out. The last incomplete batch is
    dropped: the assignment solver and batch normalisation want whole ones. Weights are scaled to
    one on average.
    """

    def __init__(self, source: LabelledRows, target: Tensor, *, balanced: bool) -> None:
        self.source = source
        self.target = target
        self.balanced = balanced
        self._labels = source.hard_labels.cpu().numpy()
        self.weights = None if source.weights is None else source.weights / source.weights.mean()
        """Of the source rows, one on average."""
        counts = np.unique(self._labels, return_counts=True)[1]
        self._epoch_rows = int(counts.max() * len(counts)) if balanced else len(source)

    def steps(self, batch_size: int) -> int:
        self._check(batch_size)
        return self._epoch_rows // batch_size

    def epoch(self, batch_size: int, seed: int) -> Iterator[Batch]:
        source_index, target_index = self.orders(batch_size, seed)
        for first in range(0, len(target_index), batch_size):
            rows = slice(first, first + batch_size)
            chosen = source_index[rows]
            yield Batch(
                self.source.inputs[chosen],
                self.source.labels[chosen],
                self.target[target_index[rows]],
                None if self.weights is None else self.weights[chosen],
            )

    def orders(self, batch_size: int, seed: int) -> tuple[Tensor, Tensor]:
        """Return which rows of the source, and of the target, an epoch shows one after another."""
        random = np.random.default_rng(seed)
        if self.balanced:
            source_order = balanced_order(self._labels, random)
        else:
            source_order = random.permutation(len(self.source))
        shown = self.steps(batch_size) * batch_size
        target_order = _repeated_order(len(self.target), shown, random)
        device = self.source.inputs.device
        return (
            torch.as_tensor(source_order[:shown], device=device),
            torch.as_tensor(target_order, device=device),
        )

    def _check(self, batch_size: int) -> None:
        for name, rows in (("source", len(self.source)), ("target", len(self.target))):
            if rows < batch_size:
                raise InputError(
                    f"The {name} has {rows} rows, fewer than one batch of {batch_size}; "
                    f"set training.batch_size to {max(rows, 2)} or less, or to 'auto'."
                )


def balanced_order(
    labels: npt.NDArray[np.int64], random: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Return row numbers in random order, every class repeated up to the largest one."""
    rows_of = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    largest = max(len(rows) for rows in rows_of)
    order = [rows[_repeated_order(len(rows), largest, random)] for rows in rows_of]
    return random.permutation(np.concatenate(order))


def _repeated_order(rows: int, wanted: int, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """Permutations of the rows, one after another, cut to the wanted length."""
    passes = -(-wanted // rows)
    return np.concatenate([random.permutation(rows) for _ in range(passes)])[:wanted]
