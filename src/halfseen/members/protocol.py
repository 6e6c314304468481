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
from halfseen.progress import Progress
from halfseen.targets import TargetType

if TYPE_CHECKING:
    from halfseen.onnx_graph import GraphBuilder

Labels = npt.NDArray[Any]


@dataclass(frozen=True)
class Sample:
    """Prepared source rows, the missing block in them, with their labels."""

    inputs: Matrix
    labels: Labels
    """Class positions or amounts; or soft labels, one row each."""
    weights: Floats | None = None
    """How much each row counts; equally by default."""

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, rows: npt.NDArray[np.intp]) -> Sample:
        weights = None if self.weights is None else self.weights[rows]
        return Sample(self.inputs[rows], self.labels[rows], weights)


@dataclass(frozen=True)
class TrainingJob:
    """One training: the rows, and where its state is kept between epochs.

    The same rows, settings and `seed` give the same member. `checkpoint` is the file that keeps the
    state of a long training, and `progress` makes the display of one training, by its title.
    """

    blocks: Blocks
    target_type: TargetType
    source: Sample
    target: Matrix
    seed: int
    checkpoint: Path | None = None
    progress: Callable[[str], Progress] = field(default=lambda title: Progress())
    title: str = ""


class Member(Protocol):
    """Something that answers about prepared rows: log-probabilities of classes, or an amount."""

    kind: ClassVar[str]

    def raw_prediction(self, rows: Matrix) -> Floats:
        """Return the numbers of each row's answer, the missing block hidden: (rows, outputs)."""

    def raw_prediction_complete(self, rows: Matrix) -> Floats | None:
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
        target_type: TargetType,
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

    def fit(self, task: TrainingJob) -> Member:
        """Learn from the rows of a task."""
