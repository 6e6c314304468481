"""The training loop and what it is made of."""

from __future__ import annotations

from halfseen.networks.terms.term import Batch
from halfseen.networks.training.augmentation import AffineImages, Augmentation, MaskNoise
from halfseen.networks.training.batches import Batches, LabelledRows, ResidentBatches
from halfseen.networks.training.loop import EpochHook, History, Trainer, derived_seed
from halfseen.networks.training.phases import Phase, annealed_rate, plan_phases, ramp

__all__ = [
    "AffineImages",
    "Augmentation",
    "Batch",
    "Batches",
    "EpochHook",
    "History",
    "LabelledRows",
    "MaskNoise",
    "Phase",
    "ResidentBatches",
    "Trainer",
    "annealed_rate",
    "derived_seed",
    "plan_phases",
    "ramp",
]
