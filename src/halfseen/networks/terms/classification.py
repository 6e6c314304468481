"""L3: the classifier is to find the source's labels."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor
from torch.nn.functional import cross_entropy

from halfseen.networks.terms.state import PhaseName, State
from halfseen.networks.terms.term import Losses, Setup, Term

__all__ = ["Classification", "classification_loss"]


class Classification(Term):
    """L3, on the latent that ``objective.classifier_latent`` names (section 4.2).

    In the warm-up, and for a model that does not adapt, that is the true one: f(z_S1, z_S2).
    """

    words: ClassVar = {"classification": "classification (L3: cross-entropy on the source)"}
    phases = ("warm-up", "joint", "refine")
    needs_target = False

    def __init__(self, setup: Setup, settings: Any = None) -> None:
        super().__init__(setup)
        self.options = setup.options

    def forward(self, state: State) -> Losses:
        """Return L3."""
        shown = self.options.objective.classifier_latent

        def loss(logits: Tensor) -> Tensor:
            return classification_loss(logits, state.labels, state.weights)

        one_latent = not state.pairs_domains or state.latents.missing_source is None
        if one_latent or shown == "imputed":
            return {"classification": loss(state.source_logits)}
        on_true = loss(state.complete_source_logits)
        if shown == "true":
            return {"classification": on_true}
        return {"classification": 0.5 * (on_true + loss(state.source_logits))}

    def weights(self, phase: PhaseName) -> dict[str, float]:
        """λ3; in refinement the weight of the source's term."""
        if phase == "refine":
            return {"classification": self.options.refinement.source_weight}
        return {"classification": self.options.objective.classification_weight}


def classification_loss(logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    r"""Return the mean over rows of :math:`-w_i \sum_k y_{ik} \log p_{ik}`.

    Labels are class positions or class probabilities y_i. Weights should be one on average over
    all rows, not over each batch: else a batch of unimportant rows would count as any other.

    Examples
    --------
    >>> import torch
    >>> logits = torch.tensor([[0.0, 0.0], [0.0, 0.0]])
    >>> hard, soft = torch.tensor([0, 1]), torch.tensor([[0.5, 0.5], [0.0, 1.0]])
    >>> [round(float(classification_loss(logits, labels)), 4) for labels in (hard, soft)]
    [0.6931, 0.6931]
    >>> round(float(classification_loss(logits, hard, torch.tensor([0.5, 0.0]))), 4)
    0.1733
    """
    if logits.ndim == 3:  # of a stack of networks, each with rows of its own
        logits, labels = logits.flatten(0, 1), labels.flatten(0, 1)
        weights = None if weights is None else weights.flatten()
    if weights is None:
        return cross_entropy(logits, labels)
    return (weights * cross_entropy(logits, labels, reduction="none")).mean()
