"""Which epoch of a phase to keep, by a number that is measured after each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from halfseen.networks.objective import Objective

__all__ = ["BestEpoch", "EpochChoice", "chosen_epochs"]

CHOSEN_PHASES = frozenset({"joint", "refine"})
"""Phases whose best epoch is kept; a warm-up ends before the model it prepares exists."""


@dataclass(frozen=True)
class BestEpoch:
    """The best epoch of a phase so far."""

    epoch: int
    """Its number, from one."""
    score: float
    model: Mapping[str, Tensor]
    """A copy of all tensors of the objective at its end."""


@dataclass(frozen=True)
class EpochChoice:
    """The rule by which an epoch is kept."""

    name: str
    """What the number is called; part of a run's fingerprint."""
    score: Callable[[Objective], float]
    """Measures an objective after an epoch. A number that is NaN is never the best."""
    higher_is_better: bool = False
    patience: int | None = None
    """How many epochs without a better number end a phase; None runs them all."""

    def better(
        self, best: BestEpoch | None, epoch: int, score: float, objective: Objective
    ) -> BestEpoch | None:
        """Return the better of the best so far and the objective as it is; the first of equals."""
        if np.isnan(score):
            return best
        if best is not None and not (
            score > best.score if self.higher_is_better else score < best.score
        ):
            return best
        copies = {name: tensor.detach().clone() for name, tensor in objective.state_dict().items()}
        return BestEpoch(epoch, score, copies)

    def is_exhausted(self, best: BestEpoch | None, epochs: int) -> bool:
        """Whether the phase has waited for a better epoch as long as it may."""
        return (
            best is not None and self.patience is not None and epochs - best.epoch >= self.patience
        )


def chosen_epochs(history: list[dict[str, Any]]) -> dict[str, int]:
    """Return the epoch whose weights each phase ended with: the chosen one, or the last.

    Examples
    --------
    >>> first = {"phase": "joint", "epoch": 1, "score": 0.4, "chosen": True}
    >>> chosen_epochs([first, {"phase": "joint", "epoch": 2, "score": 0.5}])
    {'joint': 1}
    """
    last = {record["phase"]: record["epoch"] for record in history}
    return last | {r["phase"]: r["epoch"] for r in history if r.get("chosen")}
