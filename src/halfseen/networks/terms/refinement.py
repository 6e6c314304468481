"""L_R: self-training on the target (section 5.2)."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor
from torch.nn.functional import cross_entropy

from halfseen.networks.terms.state import PhaseName, State
from halfseen.networks.terms.term import Losses, Setup, Term, mean_where

__all__ = ["Refinement", "refinement_losses", "select_confident"]


class Refinement(Term):
    """Confident predictions become labels; the entropy of the others is lowered."""

    words: ClassVar = {
        "pseudo_label": "pseudo-labels (refinement)",
        "entropy": "entropy of target predictions (refinement)",
    }
    phases = ("refine",)

    def __init__(self, setup: Setup, settings: Any = None) -> None:
        super().__init__(setup)
        self.options = setup.options.refinement

    def forward(self, state: State) -> Losses:
        """Return the losses of the selected rows and of the others."""
        logits = state.target_logits
        return refinement_losses(logits, *select_confident(logits, self.options.threshold))

    def weights(self, phase: PhaseName) -> dict[str, float]:
        """One, and λ of the entropy."""
        return {"pseudo_label": 1.0, "entropy": self.options.entropy_weight}


def refinement_losses(target_logits: Tensor, selected: Tensor, label: Tensor) -> Losses:
    """Self-training on one target batch (section 5.2).

    The selected rows are trained towards their label; the entropy of the others is lowered (it
    enters with a plus sign: the paper's printed sign would raise it).

    Examples
    --------
    >>> import torch
    >>> logits = torch.tensor([[9.0, 0.0], [0.0, 0.0]])
    >>> losses = refinement_losses(logits, *select_confident(logits, threshold=0.95))
    >>> {name: round(float(value), 4) for name, value in losses.items()}
    {'pseudo_label': 0.0001, 'entropy': 0.6931}
    """
    log_probability = target_logits.log_softmax(1)
    return {
        "pseudo_label": mean_where(selected, cross_entropy(target_logits, label, reduction="none")),
        "entropy": mean_where(~selected, -(log_probability.exp() * log_probability).sum(1)),
    }


def select_confident(target_logits: Tensor, threshold: float) -> tuple[Tensor, Tensor]:
    """Return which rows have a probability of at least the threshold, and every row's class.

    Examples
    --------
    >>> import torch
    >>> select_confident(torch.tensor([[9.0, 0.0], [0.0, 0.1]]), threshold=0.95)
    (tensor([ True, False]), tensor([0, 1]))
    """
    confidence, prediction = target_logits.detach().softmax(1).max(1)
    return confidence >= threshold, prediction
