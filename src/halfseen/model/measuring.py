"""What members say of held-out source rows: how good they are, and how much each should count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from halfseen.arrays import Floats
from halfseen.blocks import Blocks
from halfseen.evidence import fit_density_ratio
from halfseen.evidence.risk import RiskEstimate, importance_weighted_validation
from halfseen.members import Member
from halfseen.metrics import metrics_of, row_losses
from halfseen.model.rows import Fold, PreparedRows
from halfseen.weights.combining import Weights, across_halves, fit_weights

__all__ = ["HeldOut", "ask", "held_out_metrics", "held_out_weights", "target_risk"]

MOST_WEIGHED = 5_000
"""Rows of each domain that the domain classifier of :func:`held_out_weights` is fitted on."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What members say of source rows that they were not fitted on.

    Parameters
    ----------
    labels
        Classes of the rows.
    answers
        Each member's log-probabilities, the missing block hidden.
    complete
        Log-probabilities with the missing block, where a member uses it.
    """

    labels: npt.NDArray[np.int64]
    answers: tuple[Floats, ...]
    complete: Floats | None

    @staticmethod
    def joined(parts: Sequence[HeldOut]) -> HeldOut:
        """Return the rows of several folds together."""
        complete = [part.complete for part in parts if part.complete is not None]
        members = range(len(parts[0].answers))
        return HeldOut(
            np.concatenate([part.labels for part in parts]),
            tuple(np.concatenate([part.answers[m] for part in parts]) for m in members),
            np.concatenate(complete) if complete else None,
        )

    def weights(self) -> Weights:
        """Return how much each member should count."""
        return Weights(fit_weights(self.answers, self.labels))

    def probabilities(self) -> Floats:
        """Return the answer as the model gives it; each half by weights fitted on the other."""
        return np.exp(across_halves(self.answers, self.labels))

    def complete_probabilities(self) -> Floats | None:
        """Return the same for rows with their missing block."""
        return None if self.complete is None else np.exp(self.complete)


def ask(members: Sequence[Member], blocks: Blocks, fold: Fold) -> HeldOut:
    """Ask members about the rows that a fold holds out."""
    rows = fold.held_out
    hidden = blocks.hide(rows.inputs) if blocks.missing else rows.inputs
    complete = [member.complete_log_probabilities(rows.inputs) for member in members]
    return HeldOut(
        rows.labels,
        tuple(member.log_probabilities(hidden) for member in members),
        next((answer for answer in complete if answer is not None), None),
    )


def held_out_metrics(held_out: HeldOut, kinds: Sequence[str]) -> dict[str, Any]:
    """Measure a model on held-out rows, hidden and complete, and each member by itself."""
    labels = held_out.labels
    found = {"without_missing_block": metrics_of(held_out.probabilities(), labels)}
    complete = held_out.complete_probabilities()
    if complete is not None:
        found["with_missing_block"] = metrics_of(complete, labels)
    answers = zip(kinds, held_out.answers, strict=True)
    members = {kind: metrics_of(np.exp(answer), labels) for kind, answer in answers}
    return {"held_out_source": found, "members": members}


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
            fit_density_ratio(some(fold.training.inputs), some(rows.target)).weights(
                observed(fold.held_out.inputs)
            )
            for fold in rows.folds
        ]
    )


def target_risk(held_out: HeldOut, weights: Floats) -> RiskEstimate:
    """Estimate the cross-entropy on the target from weighted source rows; no target label."""
    losses = row_losses(held_out.probabilities(), held_out.labels)
    return importance_weighted_validation(losses, weights)
