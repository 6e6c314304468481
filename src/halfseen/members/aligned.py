"""Members behind maps of drifted columns: learned on the source's scale, asked on the target's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import log_softmax

from halfseen.arrays import Floats, Matrix, Tensor
from halfseen.blocks import Blocks
from halfseen.column_maps import ColumnMap
from halfseen.errors import InputError
from halfseen.members.protocol import MEMBERS, Learner, Member, Sample, TrainingJob, member_named
from halfseen.targets import TargetType


class Mapped(NamedTuple):
    """A member, the map of source rows that it learned under, and weighted maps of target rows."""

    member: Member
    source: ColumnMap
    maps: tuple[ColumnMap, ...]
    weights: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Aligned(Member):
    """Members that answer about mapped rows, multiplied: Π p(y | map(x1))^w.

    A product and not a mixture: under a wrong map a member is mostly unsure, and has little to
    say in a product.
    """

    kind: ClassVar[str] = "aligned"
    parts: tuple[Mapped, ...]

    @property
    def title(self) -> str:
        """The kind of the first member, and the values it sees."""
        first = self.parts[0]
        return f"{first.member.kind}, {'logarithms' if first.source.logarithm.any() else 'values'}"

    def raw_prediction(self, rows: Matrix) -> Floats:
        """Return the weighted sum of log-probabilities under each map, normalised."""
        answers = [
            weight * part.member.raw_prediction(mapped(rows))
            for part in self.parts
            for mapped, weight in zip(part.maps, part.weights, strict=True)
        ]
        found: Floats = log_softmax(np.sum(answers, axis=0), axis=1)
        return found

    def for_source(self) -> Aligned:
        """Return the members as they see source rows."""
        return Aligned(
            tuple(p._replace(maps=(p.source,), weights=(sum(p.weights),)) for p in self.parts)
        )

    def alone(self) -> list[tuple[Aligned, float]]:
        """Return each member under each of its maps by itself, with its weight."""
        return [
            (Aligned((part._replace(maps=(mapped,), weights=(1.0,)),)), weight)
            for part in self.parts
            for mapped, weight in zip(part.maps, part.weights, strict=True)
        ]

    def describe(self) -> dict[str, Any]:
        return {
            "parts": [
                {"weights": list(w), "member": {"kind": member.kind, **member.describe()}}
                for member, _, _, w in self.parts
            ]
        }

    def tensors(self) -> dict[str, Tensor]:
        named: dict[str, dict[str, Tensor]] = {}
        for number, part in enumerate(self.parts):
            named[f"member{number}"] = part.member.tensors()
            maps = (part.source, *part.maps)
            named |= {f"map{number}.{k}": mapped.tensors() for k, mapped in enumerate(maps)}
        return {f"{whose}/{name}": t for whose, found in named.items() for name, t in found.items()}

    @classmethod
    def restored(
        cls,
        description: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
        blocks: Blocks,
        target_type: TargetType,
        **given: Any,
    ) -> Self:
        """Rebuild the members and their maps."""
        named: dict[str, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            whose, _, inner = name.partition("/")
            named.setdefault(whose, {})[inner] = tensor
        found: list[Mapped] = []
        for number, part in enumerate(description["parts"]):
            kind = part["member"].get("kind")
            weights = tuple(float(weight) for weight in part["weights"])
            names = [f"map{number}.{k}" for k in range(len(weights) + 1)]
            if kind not in MEMBERS or kind == cls.kind or not named.keys() >= {*names}:
                raise InputError(f"its aligned member of kind {kind!r} lacks parts.")
            if not np.isfinite(weights).all():
                raise InputError(f"the weights {list(weights)} of its maps are no numbers.")
            member = member_named(kind).restored(
                part["member"], named.pop(f"member{number}", {}), blocks, target_type, **given
            )
            source, *maps = (ColumnMap.restored(named.pop(n), blocks.length) for n in names)
            found.append(Mapped(member, source, tuple(maps), weights))
        if named or not found:
            raise InputError(f"its aligned members have no place for {sorted(named)}.")
        return cls(tuple(found))


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

    def fit(self, task: TrainingJob) -> Aligned:
        """Fit on the source's scale; maps of the target are settled later."""
        given = task.source
        source = Sample(self.source(given.inputs), given.labels, given.weights)
        member = self.learner.fit(replace(task, source=source, target=self.source(task.target)))
        return Aligned((Mapped(member, self.source, (self.source,), (1.0,)),))
