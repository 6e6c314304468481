"""halfseen: classify a shifted target in which some inputs are never measured."""

from __future__ import annotations

from halfseen.artifact import load
from halfseen.blocks import Blocks
from halfseen.errors import HalfseenError, InputError, OptionError, TrainingDivergedError
from halfseen.estimators import AdaptationImputationClassifier, DomainAdaptationClassifier
from halfseen.options import Options, preset

__version__ = "0.1.0"

__all__ = [
    "AdaptationImputationClassifier",
    "Blocks",
    "DomainAdaptationClassifier",
    "HalfseenError",
    "InputError",
    "OptionError",
    "Options",
    "TrainingDivergedError",
    "__version__",
    "load",
    "preset",
]
