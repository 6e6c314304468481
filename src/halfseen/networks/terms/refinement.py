"""L_R: self-training on the target (section 5.2)."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from halfseen.errors import OptionError
from halfseen.networks.terms.state import PhaseName, State
from halfseen.networks.terms.term import Losses, Setup, Term, mean_where

__all__ = ["Refinement", "refinement_losses", "select_by_prior", "select_confident"]


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
        self.needs_target_prior = self.options.selection == "prior"

    def forward(self, state: State) -> Losses:
        """Return the losses of the selected rows and of the others."""
        return refinement_losses(state.target_logits, *self._pseudo_labels(state))

    def weights(self, phase: PhaseName) -> dict[str, float]:
        """One, and λ of the entropy."""
        return {"pseudo_label": 1.0, "entropy": self.options.entropy_weight}

    def _pseudo_labels(self, state: State) -> tuple[Tensor, Tensor]:
        """Return which target rows are selected, and their labels."""
        if self.options.selection == "confidence":
            return select_confident(state.target_logits, self.options.threshold)
        if state.target_prior is None:
            raise OptionError(
                "refinement.selection='prior' needs the class proportions on the target; set the "
                "objective's target_prior before refining."
            )
        prior = state.target_prior.to(state.target_logits.device)
        return select_by_prior(state.target_logits, prior, self.options.share)


def refinement_losses(target_logits: Tensor, selected: Tensor, label: Tensor) -> Losses:
    """Self-training on one target batch (section 5.2).

    The selected rows are trained towards their label; the entropy of the others is lowered (it
    enters with a plus sign: the paper's printed sign would raise it).

    Parameters
    ----------
    target_logits
        Of the batch.
    selected, label
        From :func:`select_confident` or :func:`select_by_prior`.

    Examples
    --------
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
    >>> select_confident(torch.tensor([[9.0, 0.0], [0.0, 0.1]]), threshold=0.95)
    (tensor([ True, False]), tensor([0, 1]))
    """
    confidence, prediction = target_logits.detach().softmax(1).max(1)
    return confidence >= threshold, prediction


def select_by_prior(target_logits: Tensor, prior: Tensor, share: float) -> tuple[Tensor, Tensor]:
    r"""Return which rows are the surest of their class, each class by its own threshold.

    Of the batch's n rows, class k may have :math:`m_k = \max(1, \lfloor s \pi_k n \rfloor)`,
    with s the share to be selected and π the class proportions on the target (none where
    :math:`\pi_k = 0`). Its threshold :math:`t_k` is the :math:`m_k`-th largest of the
    probabilities :math:`p_{ik}` of the batch. A row is given the class
    :math:`\arg\max_k p_{ik} / t_k`, and is selected if that quotient is at least one. So a rare
    class is selected from too, even where it is never the most probable one.

    References
    ----------
    Y. Zou, Z. Yu, B. V. K. Vijaya Kumar, J. Wang, "Unsupervised domain adaptation for semantic
    segmentation via class-balanced self-training", ECCV 2018.

    Examples
    --------
    Nobody is likelier positive than not, and one row in five is to be:

    >>> positive = torch.tensor([0.4, 0.1, 0.2, 0.02, 0.3])
    >>> logits = torch.stack([1 - positive, positive], 1).log()
    >>> select_by_prior(logits, torch.tensor([0.8, 0.2]), share=0.5)
    (tensor([ True,  True, False,  True, False]), tensor([1, 0, 0, 0, 0]))
    """
    log_probability = target_logits.detach().log_softmax(1)
    wanted = (share * len(log_probability) * prior).floor().clamp_min(1).long()
    ranked = log_probability.sort(0, descending=True).values
    log_threshold = ranked.gather(0, wanted[None] - 1)[0]
    log_threshold = torch.where(prior > 0, log_threshold, torch.inf)
    certainty, label = (log_probability - log_threshold).max(1)
    return certainty >= 0, label
