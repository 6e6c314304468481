"""L1: source and target latents are to look alike."""

from __future__ import annotations

from typing import Any, ClassVar

from halfseen.networks.divergences import make_divergence, scale_gradient
from halfseen.networks.terms.state import PhaseName, State
from halfseen.networks.terms.term import Losses, Part, Setup, Term

__all__ = ["Adaptation"]


class Adaptation(Term):
    """L1 = D(ẑ_S, ẑ_T), with any registered divergence D (section 4.2).

    ``objective.adaptation_latent`` may narrow it to z_S1 and z_T1: what r makes of two latents
    that look alike looks alike as well.
    """

    words: ClassVar = {"adaptation": "adaptation (L1: source against target latents)"}

    def __init__(self, setup: Setup, settings: Any = None) -> None:
        super().__init__(setup)
        self.options = setup.options
        name = self.options.objective.divergence
        self.observed_alone = self.options.objective.adaptation_latent == "observed"
        size = setup.networks.latent_size
        if self.observed_alone:
            size -= setup.networks.missing_size
        self.divergence = make_divergence(name, size, self.options)

    def forward(self, state: State) -> Losses:
        """Return L1; the ramp scales what it sends into the latents, not what a critic learns."""
        source, target = state.latents.source, state.latents.target
        if self.observed_alone:
            source, target = state.latents.observed_source, state.latents.observed_target
        source = scale_gradient(source, state.strength)
        target = scale_gradient(target, state.strength)
        return {"adaptation": self.divergence(source, target)}

    def weights(self, phase: PhaseName) -> dict[str, float]:
        """λ1."""
        return {"adaptation": self.options.objective.adaptation_weight}

    def parts(self) -> list[Part]:
        """D1."""
        return [Part("adaptation", self.divergence, self.options.training.rate_decay)]
