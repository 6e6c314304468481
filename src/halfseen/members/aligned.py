"""Members behind maps of drifted columns: learned on the source's scale, asked on the target's.

First the maps and the choice among them, which reads no label of the target; then the members.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax, softmax

from halfseen.arrays import Floats, Integers, Matrix, Tensor
from halfseen.blocks import Blocks
from halfseen.errors import InputError
from halfseen.evidence.features import SMALLEST, neighbours_of
from halfseen.members.protocol import MEMBERS, Learner, Member, Sample, TrainingJob, member_named
from halfseen.targets import TargetType

LIMIT = 20.0
"""Mapped values are kept within minus and plus this many standard deviations."""
SMALLEST_SPREAD = 1e-12
_NAMES = ("positions", "mean", "scale", "logarithm", "slope", "offset")
MOST_COMPARED = 1_500
USUAL = 0.95
"""A row that is more isolated than so many of the source rows lies outside of the source."""
TEMPERATURE = 0.15
"""How much less plausible, in nats, a map must be to count 1/e as much."""
SHARES, DISTANCE = 0.5, 0.5
"""How much odd class shares, and rows away from the source's, speak against a map."""


@dataclass(frozen=True, eq=False)
class Continuous:
    """Columns that measure: which inputs they are, and the raw values behind them.

    A prepared value x stands for ``scale * x + mean``, which where `logged` is a logarithm already.
    """

    positions: Integers
    """Places among the inputs."""
    mean: Floats
    scale: Floats
    logged: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, chosen: npt.NDArray[np.bool_]) -> Continuous:
        return Continuous(
            self.positions[chosen], self.mean[chosen], self.scale[chosen], self.logged[chosen]
        )


def continuous_columns(measured: Continuous, source: Matrix, target: Matrix) -> Continuous:
    """Return columns that vary in the source and hold more than two values in both together.

    A flag has the same two values in both domains, and never moves.
    """

    def measures(position: int) -> bool:
        before, after = (np.unique(rows[:, position]) for rows in (source, target))
        return len(before) > 1 and len(np.union1d(before, after)) > 2

    return measured[np.array([measures(p) for p in measured.positions], dtype=bool)]


@dataclass(frozen=True, eq=False)
class ColumnMap:
    """``slope * g(scale * x + mean) + offset`` for some columns; the others stay as they are.

    g is the signed logarithm sign(v) log(1 + |v|) where `logarithm`, and else nothing.
    """

    positions: Integers
    mean: Floats
    scale: Floats
    logarithm: npt.NDArray[np.bool_]
    slope: Floats
    offset: Floats

    @classmethod
    def standard(cls, columns: Continuous, rows: Matrix, *, logarithm: bool) -> ColumnMap:
        """Return the map that gives some rows mean zero and standard deviation one."""
        ones, zeros = np.ones(len(columns)), np.zeros(len(columns))
        logs = ~columns.logged & logarithm
        raw = cls(columns.positions, columns.mean, columns.scale, logs, ones, zeros)
        values = raw.values(rows)
        return raw.moved_to(values, np.zeros(len(columns)), np.ones(len(columns)))

    def moved_to(self, values: Floats, mean: Floats, deviation: Floats) -> ColumnMap:
        """Return the map that gives some values of g a mean and a standard deviation."""
        spread = values.std(axis=0)
        varied = spread > SMALLEST_SPREAD
        slope = np.where(varied, deviation / np.maximum(spread, SMALLEST_SPREAD), 1.0)
        return replace(self, slope=slope, offset=mean - slope * values.mean(axis=0))

    def values(self, rows: Matrix) -> Floats:
        raw = self.scale * rows[:, self.positions].astype(np.float64) + self.mean
        raw_values: Floats = np.where(self.logarithm, np.sign(raw) * np.log1p(np.abs(raw)), raw)
        return raw_values

    def mapped(self, values: Floats) -> Floats:
        clipped: Floats = np.clip(self.slope * values + self.offset, -LIMIT, LIMIT)
        return clipped

    def __call__(self, rows: Matrix) -> Matrix:
        """Return rows with the columns mapped."""
        moved = rows.copy()
        moved[:, self.positions] = self.mapped(self.values(rows))
        return moved

    def tensors(self) -> dict[str, Tensor]:
        """Return copies of all arrays by name: maps share some, and files may not."""
        return {name: getattr(self, name).copy() for name in _NAMES}

    @classmethod
    def restored(cls, tensors: Mapping[str, Tensor], inputs: int) -> ColumnMap:
        """Rebuild a map from tensors that somebody else may have written."""
        if set(tensors) != set(_NAMES):
            raise InputError(f"a map of columns has the tensors {_NAMES}, not {sorted(tensors)}.")
        arrays = {name: tensors[name] for name in _NAMES}
        positions = arrays["positions"]
        kinds = [a.dtype for a in arrays.values()]
        wanted: Sequence[Any] = [np.int64, np.float64, np.float64, np.bool_, *[np.float64] * 2]
        if kinds != list(wanted) or any(a.shape != (len(positions),) for a in arrays.values()):
            raise InputError("the arrays of a map of columns do not fit together.")
        if ((positions < 0) | (positions >= inputs)).any() or len(set(positions)) < len(positions):
            raise InputError(f"a map of columns names inputs beyond the {inputs} there are.")
        return cls(**arrays)


class Distance(NamedTuple):
    """How far target rows are from source rows."""

    times: float
    """How many times farther than source rows are from each other, as geometric means."""
    outside: float
    """The share of target rows that are more isolated than all but a few source rows."""


def distance_of(source: Matrix, target: Matrix) -> Distance:
    """Return how far target rows are from source rows.

    A change of how often rows occur leaves few of them outside, even where the source has few
    such rows and those are far from each other; a sensor that reads otherwise does not.
    """
    random = np.random.default_rng(0)
    # Rows of integers repeat, and what repeats is at no distance: each counts once.
    some, others = (
        np.unique(rows[random.permutation(len(rows))[:MOST_COMPARED]], axis=0)
        for rows in (source, target)
    )
    within, across = neighbours_of(some, others)
    logs = [np.log(np.maximum(rows.distance, SMALLEST)).mean() for rows in (within, across)]
    outside = np.mean(across.isolation > np.quantile(within.isolation, USUAL))
    return Distance(float(np.exp(logs[1] - logs[0])), float(outside))


def implausibility(log_probabilities: Floats, prior: Floats, distance: float = 1.0) -> float:
    r"""Return how little a map's answer about the target is to be believed, in nats.

    .. math:: E_x H(Y | x) + \tfrac12 KL(q \| \pi) + \tfrac12 \log d

    with q the mean prediction, π the source's class proportions and d how many times farther
    mapped rows are from source rows than those from each other (:func:`distance_of`). Rows of the
    wrong scale fall between the classes (high entropy), into a few of them (odd shares), or where
    no source row is; each of the three alone is right on some drifts and wrong on others.

    References
    ----------
    A. Krause, P. Perona, R. Gomes, "Discriminative clustering by regularized information
    maximization", NIPS 2010: the same trade of certainty for plausible shares.
    """
    probability = np.exp(log_probabilities)
    entropy = -(probability * log_probabilities).sum(axis=1).mean()
    shares = np.maximum(probability.mean(axis=0), SMALLEST)
    divergence = (shares * np.log(shares / prior)).sum()
    return float(entropy + SHARES * divergence + DISTANCE * np.log(distance))


def judged_weights(implausibilities: Sequence[float] | Floats) -> Floats:
    """Return how much each map should count: clear cases alone, close ones hedged."""
    weights: Floats = softmax(-np.array(implausibilities) / TEMPERATURE)
    return weights


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
        parts: list[Mapped] = []
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
            parts.append(Mapped(member, source, tuple(maps), weights))
        if named or not parts:
            raise InputError(f"its aligned members have no place for {sorted(named)}.")
        return cls(tuple(parts))


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
