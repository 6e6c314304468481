"""One small model for all tests: tiny networks and few epochs."""

from __future__ import annotations

from typing import Any

from halfseen import AdaptationImputationClassifier

NETWORKS: dict[str, Any] = {
    "tables.widths": (8,),
    "tables.latent_size": 4,
    "generator.widths": (8,),
    "networks.classifier_widths": (8,),
    "networks.critic_widths": (8,),
}
"""Sizes of the networks of tables."""
TINY: dict[str, Any] = NETWORKS | {
    "training.warmup_epochs": 1,
    "training.joint_epochs": 2,
    "refinement.epochs": 1,
}
"""Options of tables whose networks train in a moment."""
EPOCHS = {name: value for name, value in TINY.items() if "epochs" in name}
"""The same few epochs for images, whose networks a test sizes itself."""


def classifier(**given: Any) -> AdaptationImputationClassifier:
    """Return a small estimator of networks alone, which fits once instead of fold by fold.

    Options are added to those of :data:`TINY`.
    """
    image = bool(given.pop("image", False))
    options = (EPOCHS if image else TINY) | given.pop("options", {})
    settings = {"random_state": 0, "device": "cpu"} | given
    return AdaptationImputationClassifier(options=options, **settings)
