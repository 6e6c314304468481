"""The training loop and what it is made of."""

from __future__ import annotations

from halfseen.training.augmentation import AffineImages, Augmentation, MaskNoise, SwapNoise
from halfseen.training.batches import Batch, Batches, LabelledRows, ResidentBatches, Rows
from halfseen.training.choice import EpochChoice, chosen_epochs
from halfseen.training.loop import EpochHook, History, Trainer, derived_seed
from halfseen.training.phases import Phase, plan_phases
from halfseen.training.progress import NoProgress, Progress, ProgressBar
from halfseen.training.schedules import annealed_rate, ramp

__all__ = [
    "AffineImages",
    "Augmentation",
    "Batch",
    "Batches",
    "EpochChoice",
    "EpochHook",
    "History",
    "LabelledRows",
    "MaskNoise",
    "NoProgress",
    "Phase",
    "Progress",
    "ProgressBar",
    "ResidentBatches",
    "Rows",
    "SwapNoise",
    "Trainer",
    "annealed_rate",
    "chosen_epochs",
    "derived_seed",
    "plan_phases",
    "ramp",
]
