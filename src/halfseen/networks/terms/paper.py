"""The paper's own terms: L1, L2 and L3 of joint training (section 4.2), L_R of refinement (5.2)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from halfseen.networks.divergences import make_divergence, scale_gradient
from halfseen.networks.terms import BUILT_IN, Losses, Part, PhaseName, Setup, State, Term


class Adaptation(Term):
    """L1 = D(ẑ_S, ẑ_T), with any registered divergence D (section 4.2).

    ``objective.adaptation_latent`` may narrow it to z_S1 and z_T1: what r makes of two latents
    that look alike looks alike as well.
    """

    words: ClassVar = {"adaptation": "adaptation (L1: source against target latents)"}

    def __init__(self, setup: Setup, settings: Any = None) -> None:
        super().__init__(setup)
        objective, networks = self.options.objective, setup.networks
        self.observed_alone = objective.adaptation_latent == "observed"
        size = networks.latent_size - (networks.missing_size if self.observed_alone else 0)
        self.divergence = make_divergence(objective.divergence, size, self.options)

    def forward(self, state: State) -> Losses:
        """Return L1; the ramp scales what it sends into the latents, not what a critic learns."""
        source, target = state.latents.source, state.latents.target
        if self.observed_alone:
            source, target = state.latents.observed_source, state.latents.observed_target
        strength = state.strength
        if self.options.objective.fading_adaptation:
            strength *= 1.0 - state.progress
        ramped = scale_gradient(source, strength), scale_gradient(target, strength)
        return {"adaptation": self.divergence(*ramped)}

    def weights(self, phase: PhaseName) -> dict[str, float]:
        return {"adaptation": self.options.objective.adaptation_weight}

    def parts(self) -> list[Part]:
        return [Part("adaptation", self.divergence, self.options.training.rate_decay)]


class Imputation(Term):
    """L2 = D(ẑ_S2, z_S2) + λ_MSE L_MSE (section 4.2)."""

    words: ClassVar = {
        "imputation": "imputation (L2: imputed against true latents)",
        "reconstruction": "reconstruction (squared error of imputed latents)",
    }

    def __init__(self, setup: Setup, settings: Any = None) -> None:
        super().__init__(setup)
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
        objective = self.options.objective
        return {
            "imputation": objective.imputation_weight,
            "reconstruction": objective.reconstruction_weight,
        }

    def parts(self) -> list[Part]:
        return [Part("imputation", self.divergence, self.options.training.imputation_rate_decay)]


def reconstruction_loss(
    true: Tensor, imputed: Tensor, form: Literal["squared", "norm"] = "squared"
) -> Tensor:
    """L_MSE: the distance between true and imputed latents of the same rows.

    ``squared`` is the paper's E‖z_S2 − ẑ_S2‖²; ``norm`` is the authors' ‖Z_S2 − Ẑ_S2‖_F over
    the whole batch.
    """
    difference = true - imputed
    if form == "norm":
        norm: Tensor = torch.linalg.vector_norm(difference)
        return norm
    return difference.square().sum(-1).mean()


class Classification(Term):
    """L3, on the latent that ``objective.classifier_latent`` names (section 4.2).

    In the warm-up, and for a model that does not adapt, that is the true one: f(z_S1, z_S2).
    """

    words: ClassVar = {"classification": "classification (L3: cross-entropy on the source)"}
    phases = ("warm-up", "joint", "refine")
    needs_target = False

    def forward(self, state: State) -> Losses:
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
    """
    if weights is None:
        return cross_entropy(logits, labels)
    return (weights * cross_entropy(logits, labels, reduction="none")).mean()


class Refinement(Term):
    """Confident predictions become labels; the entropy of the others is lowered."""

    words: ClassVar = {
        "pseudo_label": "pseudo-labels (refinement)",
        "entropy": "entropy of target predictions (refinement)",
    }
    phases = ("refine",)

    def forward(self, state: State) -> Losses:
        return refinement_losses(state.target_logits, self.options.refinement.threshold)

    def weights(self, phase: PhaseName) -> dict[str, float]:
        return {"pseudo_label": 1.0, "entropy": self.options.refinement.entropy_weight}


def refinement_losses(target_logits: Tensor, threshold: float) -> Losses:
    """Self-training on one target batch (section 5.2).

    Rows with a probability of at least the threshold are trained towards their own prediction; the
    entropy of the others is lowered (it enters with a plus sign: the paper's would raise it).
    """
    confidence, label = target_logits.detach().softmax(1).max(1)
    selected = confidence >= threshold
    log_probability = target_logits.log_softmax(1)
    return {
        "pseudo_label": mean_where(selected, cross_entropy(target_logits, label, reduction="none")),
        "entropy": mean_where(~selected, -(log_probability.exp() * log_probability).sum(1)),
    }


def mean_where(chosen: Tensor, values: Tensor) -> Tensor:
    """Mean over the chosen rows; zero, still with a gradient, when there is none."""
    return (values * chosen).sum() / chosen.sum().clamp_min(1)


# Refinement before classification, so that the target passes f first, as it always did.
BUILT_IN |= {
    "adaptation": Adaptation,
    "imputation": Imputation,
    "refinement": Refinement,
    "classification": Classification,
}
