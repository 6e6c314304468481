"""What members say of held-out source rows: how good they are, and how much each should count."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from halfseen.arrays import Floats
from halfseen.errors import HalfseenError
from halfseen.evidence import fit_density_ratio, overlap
from halfseen.evidence.density_ratio import ENOUGH_OVERLAP
from halfseen.evidence.risk import RiskEstimate, importance_weighted_validation
from halfseen.fitting.prepared_rows import Fold, PreparedRows
from halfseen.members import Member
from halfseen.targets import Target, TargetType
from halfseen.weights import Weights, across_halves

MOST_WEIGHED = 5_000
"""Rows of each domain that the domain classifier of :func:`held_out_weights` is fitted on."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What members say of source rows that they were not fitted on."""

    target_type: TargetType
    labels: npt.NDArray[Any]
    answers: tuple[Floats, ...]
    """Each member's answer, the missing block hidden."""
    complete: Floats | None
    """The answer with the missing block, where a member uses it."""
    counted: Floats | None = None
    """How much each row counts; equally by default."""
    start: tuple[float, ...] | None = None
    """The shares that members have before these rows speak; equal ones by default."""

    @staticmethod
    def joined(parts: Sequence[HeldOut]) -> HeldOut:
        """Return the rows of several folds together."""
        complete = [part.complete for part in parts if part.complete is not None]
        members = range(len(parts[0].answers))
        counted = [part.counted for part in parts if part.counted is not None]
        return HeldOut(
            parts[0].target_type,
            np.concatenate([part.labels for part in parts]),
            tuple(np.concatenate([part.answers[m] for part in parts]) for m in members),
            np.concatenate(complete) if complete else None,
            np.concatenate(counted) if counted else None,
        )

    def weights(self) -> Weights:
        """Return how much each member should count."""
        return Weights.fitted(self.answers, self.labels, self.target_type, self.counted, self.start)

    @cached_property
    def raw_prediction(self) -> Floats:
        """The members' answer together; each half by weights fitted on the other."""
        return across_halves(self.answers, self.labels, self.target_type, self.counted, self.start)

    def to_predictions(self, metrics: Mapping[str, Any] | None = None) -> Floats:
        """Return the answer as the model shows it."""
        return self.target_type.to_predictions(self.raw_prediction, metrics)


def ask(groups: Sequence[Sequence[Member]], prepared: PreparedRows, fold: Fold) -> HeldOut:
    """Ask members, those of several seeds together, about the rows that a fold holds out."""
    rows, blocks, kind = fold.held_out, prepared.blocks, prepared.target_type
    hidden = blocks.hide(rows.inputs) if blocks.missing else rows.inputs

    def together(answers: Sequence[Floats | None]) -> Floats | None:
        given = [answer for answer in answers if answer is not None]
        return Weights.equal(len(given)).combined(given, kind) if given else None

    complete = [
        together([m.raw_prediction_complete(rows.inputs) for m in group]) for group in groups
    ]
    answers = [together([member.raw_prediction(hidden) for member in group]) for group in groups]
    return HeldOut(
        kind,
        rows.labels,
        tuple(answer for answer in answers if answer is not None),
        next((answer for answer in complete if answer is not None), None),
        rows.weights,
    )


def held_out_metrics(
    held_out: HeldOut, kinds: Sequence[str], weigh: Callable[[], Floats]
) -> dict[str, Any]:
    """Measure a model on held-out rows, hidden and complete, and each member by itself."""
    labels, kind = held_out.labels, held_out.target_type

    def target() -> Target | None:
        try:
            weights = weigh()
        except HalfseenError:  # a handful of rows
            return None
        return Target(weights, overlap(weights) >= ENOUGH_OVERLAP)

    kept = {"task": kind.task, **kind.learned(held_out.to_predictions(), labels, target)}
    found = {"without_missing_block": kind.metrics_of(held_out.to_predictions(kept), labels)}
    if held_out.complete is not None:
        found["with_missing_block"] = kind.metrics_of(
            kind.to_predictions(held_out.complete), labels
        )
    answers = zip(kinds, held_out.answers, strict=True)
    members = {
        name: kind.metrics_of(kind.to_predictions(answer), labels) for name, answer in answers
    }
    return {**kept, "held_out_source": found, "members": members}


def held_out_weights(rows: PreparedRows) -> Floats:
    """Return how much more often each held-out row's observed columns occur on the target.

    w = p_T(x1) / p_S(x1), from a classifier that tells the domains apart; it is fitted on rows
    that are not held out, so that no model matters to it.
    """
    random = np.random.default_rng(0)

    def observed(inputs: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        return rows.blocks.flat(inputs, "observed")

    def some(inputs: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        return observed(inputs[random.permutation(len(inputs))[:MOST_WEIGHED]])

    return np.concatenate(
        [
            fit_density_ratio(some(rows.beside(fold.training)), some(rows.target)).weights(
                observed(fold.held_out.inputs)
            )
            for fold in rows.folds
        ]
    )


def target_risk(held_out: HeldOut, weights: Floats) -> RiskEstimate:
    """Estimate the mean loss on the target from weighted source rows; no target label."""
    losses = held_out.target_type.row_losses(held_out.to_predictions(), held_out.labels)
    return importance_weighted_validation(losses, weights)
