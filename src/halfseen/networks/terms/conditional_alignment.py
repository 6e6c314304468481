"""Conditional alignment: latents are to look alike within each class, as f sees the classes."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import softplus

from halfseen.networks.divergences import reverse_gradient, scale_gradient
from halfseen.networks.encoders import initialize, mlp
from halfseen.networks.terms import Losses, Part, Setup, State, Term, TermSettings, register


class ConditionalAlignmentSettings(TermSettings):
    entropy: bool = Field(default=True, description="whether sure rows count more")


@register("conditional_alignment")
class ConditionalAlignment(Term):
    r"""A critic of latents together with class probabilities (CDAN+E).

    .. math:: -\sum_i w_i \log D(T(z_i, p_i)) - \sum_j w_j \log(1 - D(T(z_j, p_j)))

    over rows i of the source and j of the target, with p the probabilities that f gives, without
    gradient, w the :func:`entropy_weights` of each domain, which sum to one, and T(z, p) the outer
    product z ⊗ p. What the critic tells apart is thus p(z | class), where L1 compares p(z) alone.

    References
    ----------
    M. Long, Z. Cao, J. Wang, M. I. Jordan, "Conditional adversarial domain adaptation",
    NeurIPS 2018.
    """

    words: ClassVar = {
        "conditional_alignment": "conditional alignment (latents with class probabilities)"
    }
    Settings = ConditionalAlignmentSettings

    def __init__(self, setup: Setup, settings: Any = None) -> None:
        super().__init__(setup, settings)
        networks, size = setup.options.networks, setup.networks.latent_size * setup.n_classes
        self.critic = mlp(size, networks.critic_widths, 1, normalize=networks.normalization)
        initialize(self.critic, networks.initialization)

    def forward(self, state: State) -> Losses:
        """Return the critic's loss; its gradient reaches the latents ramped and reversed."""
        source_class, target_class = (
            logits.detach().softmax(1) for logits in (state.source_logits, state.target_logits)
        )
        source, target = (
            self.critic(outer_product(reverse_gradient(scale_gradient(z, state.strength)), p))
            for z, p in ((state.latents.source, source_class), (state.latents.target, target_class))
        )
        on_source = self._weights(source_class) * softplus(-source[:, 0])
        on_target = self._weights(target_class) * softplus(target[:, 0])
        return {"conditional_alignment": on_source.sum() + on_target.sum()}

    def parts(self) -> list[Part]:
        return [Part("conditional_alignment", self.critic, self.options.training.rate_decay)]

    def _weights(self, probability: Tensor) -> Tensor:
        if self.settings.entropy:
            return entropy_weights(probability)
        return torch.full_like(probability[:, 0], 1.0 / len(probability))


def outer_product(latent: Tensor, probability: Tensor) -> Tensor:
    """Return z ⊗ p of each row, flat: p_1 z, then p_2 z, and so on."""
    return (probability[:, :, None] * latent[:, None, :]).flatten(1)


def entropy_weights(probability: Tensor) -> Tensor:
    r"""Return :math:`1 + e^{-H(p_i)}`, divided by their sum: sure rows count up to twice."""
    entropy: Tensor = -torch.special.xlogy(probability, probability).sum(1)
    weights = 1.0 + (-entropy).exp()
    return weights / weights.sum()
