"""L2: imputed latents are to look like true ones, as a whole and row by row."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from halfseen.networks.divergences import make_divergence, scale_gradient
from halfseen.networks.terms.state import PhaseName, State
from halfseen.networks.terms.term import Losses, Part, Setup, Term

__all__ = ["Imputation", "reconstruction_loss"]


class Imputation(Term):
    """L2 = D(ẑ_S2, z_S2) + λ_MSE L_MSE (section 4.2)."""

    words: ClassVar = {
        "imputation": "imputation (L2: imputed against true latents)",
        "reconstruction": "reconstruction (squared error of imputed latents)",
    }

    def __init__(self, setup: Setup, settings: Any = None) -> None:
        super().__init__(setup)
        self.options = setup.options
        name = self.options.objective.divergence_of_imputation
        self.divergence = make_divergence(name, setup.networks.missing_size, self.options)

    def forward(self, state: State) -> Losses:
        """Return both losses of L2, under one ramp unless the reconstruction is to have none."""
        true, imputed = state.latents.missing_source, state.latents.imputed_source
        assert true is not None
        assert imputed is not None
        objective = self.options.objective
        if objective.detach_true_latent:
            true = true.detach()
        ramped = scale_gradient(imputed, state.strength), scale_gradient(true, state.strength)
        compared = ramped if objective.ramp_reconstruction else (imputed, true)
        return {
            "imputation": self.divergence(*ramped),
            "reconstruction": reconstruction_loss(*compared, form=objective.reconstruction),
        }

    def weights(self, phase: PhaseName) -> dict[str, float]:
        """Return that of the divergence, and λ_MSE."""
        objective = self.options.objective
        return {
            "imputation": objective.imputation_weight,
            "reconstruction": objective.reconstruction_weight,
        }

    def parts(self) -> list[Part]:
        """D2."""
        return [Part("imputation", self.divergence, self.options.training.imputation_rate_decay)]


def reconstruction_loss(
    true: Tensor, imputed: Tensor, form: Literal["squared", "norm"] = "squared"
) -> Tensor:
    """L_MSE: the distance between true and imputed latents of the same rows.

    ``squared`` is the paper's E‖z_S2 − ẑ_S2‖²; ``norm`` is the authors' ‖Z_S2 − Ẑ_S2‖_F over
    the whole batch.

    Examples
    --------
    >>> true, imputed = torch.zeros(2, 3), torch.ones(2, 3)
    >>> float(reconstruction_loss(true, imputed)), float(reconstruction_loss(true, imputed, "norm"))
    (3.0, 2.4494898319244385)
    """
    difference = true - imputed
    if form == "norm":
        norm: Tensor = torch.linalg.vector_norm(difference)
        return norm
    return difference.square().sum(-1).mean()
