"""One pair of batches in, named losses out: L1, L2, L3 and the refinement loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from halfseen.blocks import Blocks
from halfseen.errors import OptionError
from halfseen.networks.divergences import make_divergence, scale_gradient
from halfseen.networks.methods import Method
from halfseen.networks.nets import EncoderFactory, Latents, Networks, build_networks
from halfseen.options import Options

__all__ = [
    "Losses",
    "Objective",
    "PhaseName",
    "build_objective",
    "reconstruction_loss",
    "refinement_losses",
    "select_by_prior",
    "select_confident",
]

PhaseName = Literal["warm-up", "joint", "refine"]
Losses = dict[str, Tensor]


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
    return difference.square().sum(1).mean()


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
        "pseudo_label": _mean_where(
            selected, cross_entropy(target_logits, label, reduction="none")
        ),
        "entropy": _mean_where(~selected, -(log_probability.exp() * log_probability).sum(1)),
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


class Objective(nn.Module):
    """The networks with their divergences, giving every loss of a step in one forward pass.

    Parameters
    ----------
    networks
        g1, g2, r, f.
    adaptation
        The divergence of L1, or None for a model that does not adapt.
    imputation
        The divergence of L2, or None for a model that does not impute.
    options
        Weights and forms of the losses.
    """

    def __init__(
        self,
        networks: Networks,
        adaptation: nn.Module | None,
        imputation: nn.Module | None,
        options: Options,
    ) -> None:
        super().__init__()
        self.networks = networks
        self.adaptation = adaptation
        self.imputation = imputation
        self.options = options
        self.target_prior: Tensor | None = None
        """Class proportions on the target, which ``refinement.selection="prior"`` needs."""

    def forward(
        self, phase: PhaseName, source: Tensor, labels: Tensor, target: Tensor, strength: float
    ) -> Losses:
        """Return the named losses of one step.

        `strength` in [0, 1] is the ramp of λ1 and λ2: it scales the gradients that the
        divergences send into the latents, and leaves the critics at full strength.
        """
        if phase == "warm-up":
            return self.warm_up(source, labels)
        if phase == "joint":
            return self.joint(source, labels, target, strength)
        return self.refine(source, labels, target)

    def warm_up(self, source: Tensor, labels: Tensor) -> Losses:
        """L3 with the true latents, f(z_S1, z_S2): before adaptation and imputation start."""
        logits = self.networks.classifier(self.networks.source_latent(source))
        return {"classification": cross_entropy(logits, labels)}

    def joint(self, source: Tensor, labels: Tensor, target: Tensor, strength: float) -> Losses:
        """L1, L2 and L3 (section 4.2)."""
        if self.adaptation is None and self.imputation is None:
            return self.warm_up(source, labels)
        latents = self._latents(source, target)
        losses: Losses = {}
        if self.adaptation is not None:
            losses["adaptation"] = self.adaptation(
                scale_gradient(latents.source, strength), scale_gradient(latents.target, strength)
            )
        if self.imputation is not None:
            losses |= self._imputation_losses(latents, strength)
        losses["classification"] = self._classification_loss(latents, labels)
        return losses

    def refine(self, source: Tensor, labels: Tensor, target: Tensor) -> Losses:
        """L_R (section 5.2): source labels, confident predictions, and entropy for the rest."""
        latents = self._latents(source, target)
        logits = self.networks.classifier(latents.target)
        return {
            "classification": self._classification_loss(latents, labels),
            **refinement_losses(logits, *self._pseudo_labels(logits)),
        }

    def total(self, phase: PhaseName, losses: Losses) -> Tensor:
        """Return the weighted sum that is minimised."""
        weights = self.weights(phase)
        return torch.stack([weights[name] * loss for name, loss in losses.items()]).sum()

    def weights(self, phase: PhaseName) -> Mapping[str, float]:
        """Return the weight of every named loss in a phase."""
        options = self.options
        if phase == "refine":
            return {
                "classification": options.refinement.source_weight,
                "pseudo_label": 1.0,
                "entropy": options.refinement.entropy_weight,
            }
        return {
            "adaptation": options.objective.adaptation_weight,
            "imputation": options.objective.imputation_weight,
            "reconstruction": options.objective.reconstruction_weight,
            "classification": options.objective.classification_weight,
        }

    def modules_by_name(self) -> dict[str, nn.Module]:
        """Return the trained parts, which have one learning rate each: g1, g2, r, f, D1, D2."""
        parts = {
            "encoder": self.networks.encoder,
            "missing_encoder": self.networks.missing_encoder,
            "generator": self.networks.generator,
            "classifier": self.networks.classifier,
            "adaptation": self.adaptation,
            "imputation": self.imputation,
        }
        return {name: part for name, part in parts.items() if part is not None}

    def _latents(self, source: Tensor, target: Tensor) -> Latents:
        return self.networks.latents(
            source, target, detach_generator_input=self.options.objective.detach_generator_input
        )

    def _pseudo_labels(self, target_logits: Tensor) -> tuple[Tensor, Tensor]:
        """Return which target rows are selected, and their labels."""
        if self.options.refinement.selection == "confidence":
            return select_confident(target_logits, self.options.refinement.threshold)
        if self.target_prior is None:
            raise OptionError(
                "refinement.selection='prior' needs the class proportions on the target; set the "
                "objective's target_prior before refining."
            )
        prior = self.target_prior.to(target_logits.device)
        return select_by_prior(target_logits, prior, self.options.refinement.share)

    def _imputation_losses(self, latents: Latents, strength: float) -> Losses:
        """L2 = divergence(ẑ_S2, z_S2) + λ_MSE L_MSE."""
        assert self.imputation is not None
        assert latents.missing_source is not None
        assert latents.imputed_source is not None
        true, imputed = latents.missing_source, latents.imputed_source
        if self.options.objective.detach_true_latent:
            true = true.detach()
        ramped = scale_gradient(imputed, strength), scale_gradient(true, strength)
        ramp_all = self.options.objective.ramp_reconstruction
        return {
            "imputation": self.imputation(*ramped),
            "reconstruction": reconstruction_loss(
                *(ramped if ramp_all else (imputed, true)),
                form=self.options.objective.reconstruction,
            ),
        }

    def _classification_loss(self, latents: Latents, labels: Tensor) -> Tensor:
        """L3 on the latent that the options name; without imputation there is only one."""
        shown = self.options.objective.classifier_latent
        if latents.missing_source is None or shown == "imputed":
            return cross_entropy(self.networks.classifier(latents.source), labels)
        on_true = cross_entropy(self.networks.classifier(latents.complete_source), labels)
        if shown == "true":
            return on_true
        return 0.5 * (on_true + cross_entropy(self.networks.classifier(latents.source), labels))


def build_objective(
    blocks: Blocks,
    method: Method,
    n_classes: int,
    options: Options,
    encoder: nn.Module | EncoderFactory | None = None,
) -> Objective:
    """Return networks and divergences of one model, sized for its inputs."""
    networks = build_networks(blocks, method, n_classes, options, encoder)
    adaptation = imputation = None
    if method.adapts:
        adaptation = make_divergence(options.objective.divergence, networks.latent_size, options)
    if method.imputes:
        name = options.objective.divergence_of_imputation
        imputation = make_divergence(name, networks.missing_size, options)
    return Objective(networks, adaptation, imputation, options)


def _mean_where(chosen: Tensor, values: Tensor) -> Tensor:
    """Mean over the chosen rows; zero, still with a gradient, when there is none."""
    return (values * chosen).sum() / chosen.sum().clamp_min(1)
