"""What a member learns from, what it must be able to do, and every kind of member by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt

from halfseen.arrays import Floats, Matrix, Tensor
from halfseen.blocks import Blocks
from halfseen.errors import InputError
from halfseen.progress import Progress
from halfseen.targets import TargetType

Labels = npt.NDArray[Any]
NETWORKS = "networks"
"""The kind that needs PyTorch, which is imported where such a member is made or loaded."""
SIMPLE = ("regression", "boosted_trees", "forest")
"""Members that are a few lines of another library, the simplest first."""


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
    """Something that answers about prepared rows: log-probabilities of classes, or an amount.

    How it becomes nodes of an ONNX graph stands in ``halfseen.export.member_graphs``.
    """

    kind: ClassVar[str]

    def raw_prediction(self, rows: Matrix) -> Floats:
        """Return the numbers of each row's answer, the missing block hidden: (rows, outputs)."""

    def raw_prediction_complete(self, rows: Matrix) -> Floats | None:
        """Return the same for rows whose missing block is there; None if it makes no use of it."""
        return None

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


class Learner(Protocol):
    """Fits one kind of member."""

    @property
    def name(self) -> str:
        """The kind of member."""

    def fit(self, task: TrainingJob) -> Member:
        """Learn from the rows of a task."""


MEMBERS: dict[str, Any] = {}
"""Every kind of member, by the name that folders and settings use."""
LEARNERS: dict[str, Callable[[], Learner]] = {}
"""What fits each kind; networks, which have settings, are fitted by a `NetworksLearner`."""
MEMBER_WORDS: dict[str, str] = {NETWORKS: "networks alone"}
"""How screens and reports call them."""


def words_of(kind: str, target_type: TargetType | type[TargetType]) -> str:
    """Return how a sentence calls a member."""
    words = MEMBER_WORDS.get(kind, kind).partition(",")[0].removesuffix(" alone")
    return target_type.linear_words if kind == "regression" else words


def register(member: type[Any], learner: Callable[[], Learner] | None, words: str) -> None:
    """Make a kind of member known to settings, commands and folders.

    Parameters
    ----------
    member
        A class that follows :class:`~halfseen.members.Member`; its `kind` is its name.
    learner
        Makes what fits it; None where settings of the fit are needed for that.
    words
        How screens and reports call it.
    """
    MEMBERS[member.kind], MEMBER_WORDS[member.kind] = member, words
    if learner is not None:
        LEARNERS[member.kind] = learner


def member_named(kind: str) -> Any:
    """Return the class of a kind of member, or say that there is none."""
    if kind == NETWORKS:
        import_module("halfseen.members.network_members")
    if kind not in MEMBERS:
        raise InputError(f"there is no member of kind {kind!r} in this version of halfseen.")
    return MEMBERS[kind]
