"""What a member learns from, and what it must be able to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt

from halfseen.arrays import Floats, Matrix, Tensor
from halfseen.blocks import Blocks
from halfseen.labels import LabelKind
from halfseen.progress import Progress

if TYPE_CHECKING:
    from halfseen.graph import GraphBuilder
    from halfseen.networks.training.batches import Batches

Labels = npt.NDArray[Any]


@dataclass(frozen=True)
class Sample:
    """Prepared source rows with their labels.

    Parameters
    ----------
    inputs
        One row each, the missing block in it.
    labels
        Class positions or amounts; or soft labels, one row each.
    weights
        How much each row counts; equally by default.
    """

    inputs: Matrix
    labels: Labels
    weights: Floats | None = None

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, rows: npt.NDArray[np.intp]) -> Sample:
        weights = None if self.weights is None else self.weights[rows]
        return Sample(self.inputs[rows], self.labels[rows], weights)


@dataclass(frozen=True)
class Task:
    """One training: the rows, and where its state is kept between epochs.

    Parameters
    ----------
    blocks, label_kind
        Which inputs are missing, and what is predicted.
    source, target
        Rows in memory: all that are trained on, or a sample of them where there is a `stream`.
    stream
        Batches of all rows, with how many there are of the smaller domain.
    seed
        Same rows, settings and seed: the same member.
    fingerprint
        What tells the rows from others.
    checkpoint
        File that keeps the state of a long training.
    progress
        Makes the display of one training, by its title.
    title
        What is trained, for that display.
    """

    blocks: Blocks
    label_kind: LabelKind
    source: Sample
    target: Matrix
    seed: int
    stream: tuple[Batches, int] | None = None
    fingerprint: str = ""
    checkpoint: Path | None = None
    progress: Callable[[str], Progress] = field(default=lambda title: Progress())
    title: str = ""


class Member(Protocol):
    """Something that answers about prepared rows: log-probabilities of classes, or an amount."""

    kind: ClassVar[str]

    def answer(self, rows: Matrix) -> Floats:
        """Return the numbers of each row's answer, the missing block hidden: (rows, outputs)."""

    def complete_answer(self, rows: Matrix) -> Floats | None:
        """Return the same for rows whose missing block is there; None if it makes no use of it."""

    def describe(self) -> dict[str, Any]:
        """Return all but the tensors, as plain data."""

    def tensors(self) -> dict[str, Tensor]:
        """Return what was learned, by name."""

    @classmethod
    def restored(
        cls,
        description: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
        blocks: Blocks,
        label_kind: LabelKind,
        **given: Any,
    ) -> Self:
        """Rebuild a member; refuse what does not fit together."""

    def add_to_graph(self, builder: GraphBuilder, rows: str) -> str:
        """Add the member to an ONNX graph; return the name of its logits or amounts."""


class Learner(Protocol):
    """Fits one kind of member."""

    @property
    def name(self) -> str:
        """The kind of member."""

    def fit(self, task: Task) -> Member:
        """Learn from the rows of a task."""
