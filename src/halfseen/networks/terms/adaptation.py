"""L1: source and target latents are to look alike."""

from __future__ import annotations

from typing import Any, ClassVar

from halfseen.networks.divergences import make_divergence, scale_gradient
from halfseen.networks.terms.state import PhaseName, State
from halfseen.networks.terms.term import Losses, Part, Setup, Term

__all__ = ["Adaptation"]


class Adaptation(Term):
    """L1 = D(ẑ_S, ẑ_T), with any registered divergence D (section 4.2)."""

    words: ClassVar = {"adaptation": "adaptation (L1: source against target latents)"}

    def __init__(self, setup: Setup, settings: Any = None) -> None:
        super().__init__(setup)
        self.options = setup.options
        name = self.options.objective.divergence
        self.divergence = make_divergence(name, setup.networks.latent_size, self.options)

    def forward(self, state: State) -> Losses:
        """Return L1; the ramp scales what it sends into the latents, not what a critic learns."""
        source = scale_gradient(state.latents.source, state.strength)
        target = scale_gradient(state.latents.target, state.strength)
        return {"adaptation": self.divergence(source, target)}

    def weights(self, phase: PhaseName) -> dict[str, float]:
        """λ1."""
        return {"adaptation": self.options.objective.adaptation_weight}

    def parts(self) -> list[Part]:
        """D1."""
        return [Part("adaptation", self.divergence, self.options.training.rate_decay)]
