"""How much each member counts: shares fitted on rows held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from halfseen.arrays import Floats
from halfseen.metrics import Labels
from halfseen.targets import TargetType


@dataclass(frozen=True)
class Weights:
    """The share of each member in the answer, p(y | x1) = Σ w_m p_m(y | x1).

    A mixture and not a product of opinions: on a shifted target one member may run far beyond what
    it was fitted on, and in a product its sureness would outvote the others. Amounts are averaged.

    Examples
    --------
    >>> from halfseen.targets import ClassTarget
    >>> sure, torn = np.log([[0.9, 0.1]]), np.log([[0.5, 0.5]])
    >>> np.exp(Weights((0.5, 0.5)).combined([sure, torn], ClassTarget.of(2))).round(3)
    array([[0.7, 0.3]])
    """

    members: tuple[float, ...]
    """The shares, of sum one."""
    bias: tuple[float, ...] = ()
    """What is added to the answer, where target labels said so."""

    @classmethod
    def equal(cls, count: int) -> Weights:
        return cls((1.0 / count,) * count)

    @classmethod
    def fitted(
        cls,
        answers: Sequence[Floats],
        labels: Labels,
        kind: TargetType,
        weights: Floats | None = None,
        start: Sequence[float] | None = None,
    ) -> Weights:
        """Return the weights that held-out rows advise, by the members' answers about them."""
        return cls(kind.fit_shares(answers, labels, start, weights))

    def combined(self, answers: Sequence[Floats], kind: TargetType) -> Floats:
        """Return the answer that the members give together."""
        alone = self.members == (1.0,)
        answer = answers[0] if alone else kind.mixed(np.array(self.members), np.stack(answers))
        return kind.shifted(answer, np.array(self.bias)) if self.bias else answer


def across_halves(
    answers: Sequence[Floats],
    labels: Labels,
    kind: TargetType,
    weights: Floats | None = None,
    start: Sequence[float] | None = None,
) -> Floats:
    """Return the members' answer about held-out rows; each half by the other's shares."""
    dealt = np.random.default_rng(0).permutation(len(labels))
    halves = dealt[::2], dealt[1::2]
    combined = np.empty_like(answers[0])
    for rows, others in (halves, halves[::-1]):
        fitted = others if len(others) else rows
        counted = None if weights is None else weights[fitted]
        shares = Weights.fitted([m[fitted] for m in answers], labels[fitted], kind, counted, start)
        combined[rows] = kind.mixed(np.array(shares.members), np.stack([m[rows] for m in answers]))
    return combined
