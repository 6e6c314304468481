"""A member behind maps of drifted columns: learned on the source's scale, asked on the target's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy.special import log_softmax

from halfseen.align import ColumnMap
from halfseen.arrays import Floats, Matrix, Tensor
from halfseen.blocks import Blocks
from halfseen.errors import InputError
from halfseen.labels import LabelKind
from halfseen.members.registry import MEMBERS, member_named
from halfseen.members.tasks import Learner, Member, Sample, Task

if TYPE_CHECKING:
    from halfseen.graph import GraphBuilder


@dataclass(frozen=True, eq=False)
class Aligned:
    """A member that answers about mapped rows.

    Parameters
    ----------
    member
        Learned from source rows under the map `source`.
    source
        The map of source rows.
    maps, weights
        Maps of target rows, and how much the answer under each counts.
    """

    kind: ClassVar[str] = "aligned"
    member: Member
    source: ColumnMap
    maps: tuple[ColumnMap, ...]
    weights: tuple[float, ...]

    def answer(self, rows: Matrix) -> Floats:
        """Return the weighted mean of the member's log-probabilities under each map."""
        answers = [
            weight * self.member.answer(mapped(rows))
            for mapped, weight in zip(self.maps, self.weights, strict=True)
        ]
        found: Floats = log_softmax(np.sum(answers, axis=0), axis=1)
        return found

    def complete_answer(self, rows: Matrix) -> Floats | None:
        """Return nothing: a map speaks of observed columns alone."""
        return None

    def for_source(self) -> Aligned:
        """Return the member as it sees source rows."""
        return replace(self, maps=(self.source,), weights=(1.0,))

    def describe(self) -> dict[str, Any]:
        """Return all but the tensors, as plain data."""
        inner = {"kind": self.member.kind, **self.member.describe()}
        return {"member": inner, "weights": list(self.weights)}

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors of the member and of the maps."""
        parts = {"member": self.member.tensors(), "source": self.source.tensors()}
        parts |= {f"map{number}": mapped.tensors() for number, mapped in enumerate(self.maps)}
        return {f"{part}/{name}": t for part, named in parts.items() for name, t in named.items()}

    @classmethod
    def restored(
        cls,
        description: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
        blocks: Blocks,
        label_kind: LabelKind,
        **given: Any,
    ) -> Self:
        """Rebuild the member and its maps."""
        parts: dict[str, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            part, _, inner = name.partition("/")
            parts.setdefault(part, {})[inner] = tensor
        weights = tuple(float(weight) for weight in description["weights"])
        names = [f"map{number}" for number in range(len(weights))]
        kind = description["member"].get("kind")
        if set(parts) != {"member", "source", *names} or kind not in MEMBERS or kind == cls.kind:
            raise InputError(f"its aligned member of kind {kind!r} lacks parts.")
        if not np.isfinite(weights).all():
            raise InputError(f"the weights {list(weights)} of its maps are no numbers.")
        member = member_named(kind).restored(
            description["member"], parts["member"], blocks, label_kind, **given
        )
        source, *maps = (ColumnMap.restored(parts[n], blocks.length) for n in ("source", *names))
        return cls(member, source, tuple(maps), weights)

    def add_to_graph(self, builder: GraphBuilder, rows: str) -> str:
        """Add the maps, and the member once under each, to an ONNX graph."""
        inputs = self.source_inputs(self.member)
        total = ""
        for mapped, weight in zip(self.maps, self.weights, strict=True):
            moved = mapped.add_to_graph(builder, rows, inputs)
            answer = builder.node("LogSoftmax", self.member.add_to_graph(builder, moved), axis=1)
            share = builder.node(
                "Mul", answer, builder.constant(np.array([weight], dtype=np.float32))
            )
            total = builder.node("Add", total, share) if total else share
        return total

    @staticmethod
    def source_inputs(member: Any) -> int:
        """Return how many inputs a prepared row has."""
        blocks: Blocks = member.blocks
        return blocks.length


@dataclass(frozen=True)
class AlignedLearner:
    """Fits a member on mapped source rows."""

    learner: Learner
    source: ColumnMap
    logarithm: bool

    @property
    def name(self) -> str:
        """The kind of the member inside, and the values it sees."""
        return f"{self.learner.name}, {'logarithms' if self.logarithm else 'values'}"

    def fit(self, task: Task) -> Aligned:
        """Fit on the source's scale; maps of the target are settled later."""
        given = task.source
        source = Sample(self.source(given.inputs), given.labels, given.weights)
        member = self.learner.fit(replace(task, source=source, target=self.source(task.target)))
        return Aligned(member, self.source, (self.source,), (1.0,))


def settled(
    members: Sequence[Aligned], maps: Sequence[ColumnMap], weights: Floats
) -> list[Aligned]:
    """Return members with their maps of target rows."""
    shares = tuple(float(w) for w in weights / weights.sum())
    return [replace(member, maps=tuple(maps), weights=shares) for member in members]
