"""One pair of batches in, named losses out: the networks with the terms that train them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from halfseen.blocks import Blocks
from halfseen.networks.encoders import EncoderFactory
from halfseen.networks.modules import Networks, build_networks
from halfseen.networks.terms import (
    Batch,
    Losses,
    Part,
    PhaseName,
    Setup,
    State,
    Term,
    Views,
    make_terms,
)
from halfseen.networks.variants import NetworkVariant
from halfseen.options import Options


class Objective(nn.Module):
    """The networks with their terms, giving every loss of a step in one forward pass."""

    def __init__(self, networks: Networks, terms: Mapping[str, Term], options: Options) -> None:
        super().__init__()
        self.networks = networks
        self.terms = nn.ModuleDict(terms)
        self.options = options
        self.views = Views()
        """How rows are augmented."""

    def forward(
        self, phase: PhaseName, batch: Batch, *, progress: float = 0.0, strength: float = 1.0
    ) -> Losses:
        """Return the named losses of one step.

        `progress` in [0, 1] is that through the phase. `strength` in [0, 1] is the ramp of λ1 and
        λ2: it scales the gradients that the divergences send into the latents, and leaves the
        critics at full strength.
        """
        state = State(phase, self.networks, self.options, batch, self.views, progress, strength)
        losses: Losses = {}
        for term in self.terms_in(phase):
            losses |= term(state)
        return losses

    def terms_in(self, phase: PhaseName) -> list[Term]:
        return [term for term in self._terms() if phase in term.phases]

    def total(self, phase: PhaseName, losses: Losses) -> Tensor:
        """Return the sum of the losses, each times its weight."""
        weights = {k: w for term in self.terms_in(phase) for k, w in term.weights(phase).items()}
        return torch.stack([weights[name] * loss for name, loss in losses.items()]).sum()

    def network_parts(self) -> list[Part]:
        """Return g1, g2, r and f, as far as the model has them."""
        training, networks = self.options.training, self.networks
        decays = dict.fromkeys(("encoder", "missing_encoder"), training.rate_decay)
        decays["generator"] = training.imputation_rate_decay
        decays["classifier"] = training.rate_decay
        found = {name: getattr(networks, name) for name in decays}
        return [Part(name, part, decays[name]) for name, part in found.items() if part is not None]

    def after_step(self, phase: PhaseName, progress: float) -> None:
        """Tell every term, also those of other phases, that the weights have moved."""
        for term in self._terms():
            term.after_step(self.networks, phase, progress)

    @contextmanager
    def predicting(self) -> Iterator[None]:
        """Let `networks` be those that would predict if training ended here."""
        trained = self.networks
        try:
            self.networks = self._chosen()
            yield
        finally:
            self.networks = trained

    def settle(self) -> None:
        """Give the networks the weights that are to predict: training has ended."""
        if self._chosen() is not self.networks:
            self.networks.load_state_dict(self._chosen().state_dict())

    def _chosen(self) -> Networks:
        found = (term.predicting() for term in self._terms())
        return next((networks for networks in found if networks is not None), self.networks)

    def _terms(self) -> list[Term]:
        return list(self.terms.values())  # type: ignore[arg-type]


def build_objective(
    blocks: Blocks,
    method: NetworkVariant,
    n_classes: int,
    options: Options,
    encoder: nn.Module | EncoderFactory | None = None,
) -> Objective:
    networks = build_networks(blocks, method, n_classes, options, encoder)
    return Objective(networks, make_terms(Setup(networks, n_classes, options)), options)
