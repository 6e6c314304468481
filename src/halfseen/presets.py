"""The presets: every setting of the networks at once, for a kind of inputs, a divergence, a model.

``preset("paper", ...)`` follows the text, ``preset("reference", ...)`` the authors' code, and
``preset("default", ...)`` is our own choice (docs/method.md says why).
"""

from __future__ import annotations

import math
from typing import Any, Literal

from halfseen.errors import OptionError
from halfseen.options import Inputs, Options, make_options

Preset = Literal["default", "paper", "reference"]


def preset(
    name: Preset = "default",
    *,
    inputs: Inputs = "image",
    divergence: str = "adversarial",
    imputes: bool = True,
    adapts: bool = True,
) -> Options:
    """Return all settings of a preset for one kind of inputs, divergence and model.

    Examples
    --------
    >>> [preset(name).objective.classifier_latent for name in ("reference", "paper")]
    ['true', 'imputed']
    >>> preset("paper", divergence="transport").objective.adaptation_weight
    0.1
    """
    if name not in _PRESETS:
        raise OptionError(f"preset={name!r} is unknown; choose one of {list(_PRESETS)}.")
    transport = divergence == "transport"
    applies = {
        "all": True,
        inputs: True,
        "transport": transport,
        "transport-plain": transport and not imputes,
        f"{inputs}-adapting": adapts,
    }
    settings: dict[str, Any] = {"objective.divergence": divergence}
    for key, is_meant in applies.items():
        settings |= _PRESETS[name].get(key, {}) if is_meant else {}
    return make_options(settings, Options.model_validate({f"{inputs}s": {}}))


def encoder_for(side: int) -> dict[str, Any]:
    """Return what the default encoders of images need where the images are not 32 pixels wide.

    As many convolutions as halve the side to 2 or 3 pixels, for a latent of some 500 values.
    """
    if side == 32:
        return {}
    layers = max(int(math.log2(side)) - 1, 1)
    channels = (32,) * (layers - 1) + (128,)
    return {"images.channels": channels, "images.padding": "same", "images.pools": layers}


_TABLE_NETWORKS: dict[str, Any] = {
    "networks.normalization": "none",
    "networks.classifier_dropout": 0.0,
    "tables.widths": (128, 128),
    "tables.latent_size": 128,
    "networks.classifier_widths": (128,),
    "networks.critic_widths": (128, 128),
    "generator.widths": (256, 256),
}
_ADS: dict[str, Any] = _TABLE_NETWORKS | {
    "training.learning_rate": 1e-6,
    "training.imputation_rate_decay": 30.0,
    "objective.reconstruction_weight": 0.005,
    "training.batch_size": 500,
    "training.warmup_batch_size": 500,
    "training.balanced": False,
    "refinement.entropy_weight": 1.0,
}
"""What the paper and its code share on ads-kaggle. (On Amazon the paper sets λ_MSE to 1.)"""
_TRANSPORT = {"objective.adaptation_weight": 0.1, "objective.imputation_weight": 0.1}
_TRANSPORT_PLAIN = {"training.joint_rate_factor": 0.5, "training.rate_decay": 0.0}
"""Without imputation, transport halves the rate once and does not decay it."""

# Of every model, of a kind of inputs, of transport, of transport without imputation, and of a kind
# of inputs where the model adapts; what comes later replaces what came before.
_PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "paper": {
        "image": {"images.padding": "same", "images.pools": 3},
        "table": _ADS | {"training.warmup_epochs": 5, "training.joint_epochs": 45},
        "transport": _TRANSPORT | {"training.batch_size": 500},
        "transport-plain": _TRANSPORT_PLAIN,
    },
    "reference": {
        "all": {
            "networks.initialization": "reference",
            "objective.classifier_latent": "true",
            "objective.reconstruction": "norm",
            "objective.ramp_reconstruction": False,
        },
        "image": {
            "networks.critic_widths": (500, 100),
            "training.warmup_epochs": 11,
            "training.joint_epochs": 89,
            "refinement.entropy_weight": 0.01,
            "refinement.source_weight": 0.01,
        },
        "table": _ADS
        | {
            "training.warmup_epochs": 6,
            "training.joint_epochs": 44,
            "refinement.rate_factor": 1.0,
            "refinement.modules": "classifier",
        },
        "transport": _TRANSPORT
        | {
            "training.batch_size": 500,
            "training.betas": (0.9, 0.999),
            "objective.detach_generator_input": True,
        },
        "transport-plain": _TRANSPORT_PLAIN,
    },
    "default": {
        "all": {
            "training.batch_size": "auto",
            "training.warmup_batch_size": "auto",
            "training.joint_epochs": "auto",
            "objective.classifier_latent": "both",
            "objective.detach_true_latent": True,
            "networks.prediction_statistics": "target",
            "training.gradient_clip": 10.0,
        },
        "image": {
            "images.channels": (32, 32, 256),
            "networks.classifier_dropout": 0.1,
            "images.standardize": "auto",
            "training.learning_rate": 3e-3,
            "training.warmup_epochs": 0,
            "training.epoch_steps": 100,
            "objective.adaptation_latent": "observed",
            "objective.detach_generator_input": True,
            "training.augmentation": "auto",
            "training.target_augmentation": "auto",
        },
        "image-adapting": {
            "objective.fading_adaptation": True,
            "objective.terms.averaged_teacher": {"start": 0.3, "threshold": 0.6, "view": "plain"},
        },
        "table": _TABLE_NETWORKS
        | {
            "tables.widths": (128,),
            "tables.dropout": 0.6,
            "tables.linear_path": True,
            "tables.latent_size": 32,
            "networks.classifier_widths": (),
            "training.balanced": False,
            "training.augmentation": "mask",
            "training.learning_rate": 3e-3,
            "training.betas": (0.9, 0.999),
            "training.weight_decay": 0.1,
            "training.warmup_epochs": 5,
            "objective.reconstruction_weight": 10.0,
        },
        "transport": _TRANSPORT,
    },
}
