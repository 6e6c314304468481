"""How good a model is on held-out source rows, and which of several suits the target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import log_softmax, softmax

from halfseen.evidence import fit_density_ratio
from halfseen.members.linear import Regression
from halfseen.metrics import metrics_of, row_losses
from halfseen.model.domains import Domains, Sample
from halfseen.networks import nets
from halfseen.networks.nets import Networks
from halfseen.selection import RiskEstimate, importance_weighted_validation
from halfseen.weights.blending import Blend, fit_blend, fit_scale

__all__ = [
    "HeldOut",
    "held_out_metrics",
    "held_out_weights",
    "hold_out",
    "metrics_of",
    "target_risk",
]

Rows = npt.NDArray[np.intp]

MOST_WEIGHED = 5_000
"""Rows of each table that the domain classifier of :func:`held_out_weights` is fitted on."""
SMALLEST = 1e-12


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What a model and a logistic regression say of source rows that neither was trained on.

    Parameters
    ----------
    labels
        Classes of the rows.
    hidden, complete
        The networks' log-probabilities with the missing block hidden, and with it where the
        model imputes.
    regression
        Logits of logistic regression on the observed columns.
    """

    labels: npt.NDArray[np.int64]
    hidden: npt.NDArray[np.float64]
    complete: npt.NDArray[np.float64] | None
    regression: npt.NDArray[np.float64]

    @staticmethod
    def joined(parts: Sequence[HeldOut]) -> HeldOut:
        """Return the rows of several folds together."""
        complete = [part.complete for part in parts if part.complete is not None]
        return HeldOut(
            np.concatenate([part.labels for part in parts]),
            np.concatenate([part.hidden for part in parts]),
            np.concatenate(complete) if complete else None,
            np.concatenate([part.regression for part in parts]),
        )

    def blend(self) -> Blend:
        """Return how much networks and regression should count."""
        return fit_blend(self.hidden, self.regression, self.labels)

    def complete_scale(self) -> float:
        """Return the temperature's inverse for rows with their missing block."""
        return 1.0 if self.complete is None else fit_scale(self.complete, self.labels)

    def blended(self) -> npt.NDArray[np.float64]:
        """Return blended probabilities; each half of the rows by a blend fitted on the other."""
        return self._across(
            lambda rows: fit_blend(self.hidden[rows], self.regression[rows], self.labels[rows]),
            lambda blend, rows: blend.logits(self.hidden[rows], self.regression[rows]),
        )

    def tempered(self) -> npt.NDArray[np.float64]:
        """Return probabilities of complete rows; each half by a scale fitted on the other."""
        assert self.complete is not None
        logits = self.complete
        return self._across(
            lambda rows: fit_scale(logits[rows], self.labels[rows]),
            lambda scale, rows: log_softmax(scale * logits[rows], axis=1),
        )

    def probabilities(self, *, blended: bool) -> npt.NDArray[np.float64]:
        """Return probabilities as the model gives them, the missing block hidden."""
        return self.blended() if blended else np.exp(self.hidden)

    def _across(
        self, fit: Callable[[Rows], Any], apply: Callable[[Any, Rows], npt.NDArray[np.float64]]
    ) -> npt.NDArray[np.float64]:
        dealt = np.random.default_rng(0).permutation(len(self.labels))
        halves = dealt[::2], dealt[1::2]
        probability = np.empty_like(self.hidden)
        for rows, others in (halves, halves[::-1]):
            probability[rows] = np.exp(apply(fit(others if len(others) else rows), rows))
        return probability


def hold_out(
    networks: Networks, rows: Sample, regression: Regression, *, samples: int = 1, seed: int = 0
) -> HeldOut:
    """Ask a model and a regression about rows that were held out from both."""
    blocks = networks.blocks
    hidden = torch.from_numpy(blocks.hide(rows.inputs))
    complete = None
    if networks.method.imputes:
        complete = _logarithm(nets.complete_probabilities(networks, torch.from_numpy(rows.inputs)))
    return HeldOut(
        rows.labels,
        _logarithm(nets.probabilities(networks, hidden, samples=samples, seed=seed)),
        complete,
        regression.logits(rows.inputs[:, list(blocks.observed)]),
    )


def held_out_metrics(held_out: HeldOut, *, blended: bool) -> dict[str, Any]:
    """Measure a model on held-out rows, hidden and complete, beside logistic regression."""
    hidden = held_out.probabilities(blended=blended)
    found = {"without_missing_block": metrics_of(hidden, held_out.labels)}
    if held_out.complete is not None:
        complete = held_out.tempered() if blended else np.exp(held_out.complete)
        found["with_missing_block"] = metrics_of(complete, held_out.labels)
    regression = softmax(held_out.regression, axis=1)
    return {
        "held_out_source": found,
        "logistic_regression": metrics_of(regression, held_out.labels),
    }


def held_out_weights(domains: Domains) -> npt.NDArray[np.float64]:
    """Return how much more often each held-out row's observed columns occur on the target.

    w = p_T(x1) / p_S(x1), from a classifier that tells the domains apart; it is fitted on rows
    that are not held out, so that no model matters to it.
    """
    observed = list(domains.schema.blocks.observed)
    random = np.random.default_rng(0)

    def some(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        chosen = random.permutation(len(rows))[:MOST_WEIGHED]
        return rows[chosen][:, observed]

    return np.concatenate(
        [
            fit_density_ratio(some(fold.training.inputs), some(domains.target)).weights(
                fold.held_out.inputs[:, observed]
            )
            for fold in domains.folds
        ]
    )


def target_risk(
    held_out: HeldOut, weights: npt.NDArray[np.float64], *, blended: bool
) -> RiskEstimate:
    """Estimate the cross-entropy on the target from weighted source rows; no target label."""
    losses = row_losses(held_out.probabilities(blended=blended), held_out.labels)
    return importance_weighted_validation(losses, weights)


def _logarithm(probability: torch.Tensor) -> npt.NDArray[np.float64]:
    logarithm: npt.NDArray[np.float64] = np.log(np.maximum(probability.double().numpy(), SMALLEST))
    return logarithm
