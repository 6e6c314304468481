"""Options of runs that were logged when all options had one flat list of names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from halfseen.options import Inputs, nested

__all__ = ["in_groups"]

NAMES = {
    "channels": "images.channels",
    "kernel_size": "images.kernel_size",
    "padding": "images.padding",
    "pools": "images.pools",
    "encoder_widths": "tables.widths",
    "encoder_dropout": "tables.dropout",
    "linear_path": "tables.linear_path",
    "latent_size": "tables.latent_size",
    "latent_activation": "networks.latent_activation",
    "classifier_widths": "networks.classifier_widths",
    "dropout": "networks.classifier_dropout",
    "critic_widths": "networks.critic_widths",
    "normalization": "networks.normalization",
    "critic_normalization": "networks.critic_normalization",
    "initialization": "networks.initialization",
    "batch_statistics": "networks.batch_statistics",
    "prediction_statistics": "networks.prediction_statistics",
    "generator_widths": "generator.widths",
    "noise_size": "generator.noise_size",
    "prediction_samples": "generator.prediction_samples",
    "divergence": "objective.divergence",
    "imputation_divergence": "objective.imputation_divergence",
    "adaptation_weight": "objective.adaptation_weight",
    "imputation_weight": "objective.imputation_weight",
    "reconstruction_weight": "objective.reconstruction_weight",
    "classification_weight": "objective.classification_weight",
    "reconstruction": "objective.reconstruction",
    "ramp_reconstruction": "objective.ramp_reconstruction",
    "classifier_latent": "objective.classifier_latent",
    "detach_generator_input": "objective.detach_generator_input",
    "detach_true_latent": "objective.detach_true_latent",
    "learning_rate": "training.learning_rate",
    "joint_rate_factor": "training.joint_rate_factor",
    "rate_decay": "training.rate_decay",
    "imputation_rate_decay": "training.imputation_rate_decay",
    "betas": "training.betas",
    "weight_decay": "training.weight_decay",
    "gradient_clip": "training.gradient_clip",
    "batch_size": "training.batch_size",
    "warmup_batch_size": "training.warmup_batch_size",
    "balanced": "training.balanced",
    "warmup_epochs": "training.warmup_epochs",
    "joint_epochs": "training.joint_epochs",
    "augmentation": "training.augmentation",
    "refine_epochs": "refinement.epochs",
    "refine_threshold": "refinement.threshold",
    "refine_thresholds": "refinement.selection",
    "refine_share": "refinement.share",
    "refine_entropy_weight": "refinement.entropy_weight",
    "refine_source_weight": "refinement.source_weight",
    "refine_rate_factor": "refinement.rate_factor",
    "refine_modules": "refinement.modules",
}
"""Every former name, and where its option is now."""
DROPPED = {"standardize", "shortcut"}
"""Steps that are no part of the networks any more."""


def in_groups(options: Mapping[str, Any], inputs: Inputs) -> dict[str, Any]:
    """Return logged options as nested groups; those that have groups already stay as they are.

    Examples
    --------
    >>> in_groups({"learning_rate": 0.1, "channels": [8], "refine_thresholds": "fixed"}, "table")
    {'training': {'learning_rate': 0.1}, 'refinement': {'selection': 'confidence'}, 'images': None}
    """
    if "training" in options:
        return dict(options)
    found = nested({NAMES.get(n, n): v for n, v in options.items() if n not in DROPPED})
    if found.get("refinement", {}).get("selection") == "fixed":
        found["refinement"]["selection"] = "confidence"
    found.pop("images" if inputs == "table" else "tables", None)
    return {**found, "images" if inputs == "table" else "tables": None}
