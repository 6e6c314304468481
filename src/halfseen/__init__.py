"""halfseen: predict on a shifted target in which some inputs are never measured."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from halfseen.api import fit
    from halfseen.blocks import Blocks
    from halfseen.errors import (
        AlarmWarning,
        HalfseenError,
        InputError,
        OptionError,
        TrainingDivergedError,
    )
    from halfseen.estimators import (
        AdaptationImputationClassifier,
        AdaptationImputationRegressor,
        HalfSeenClassifier,
        HalfSeenRegressor,
    )
    from halfseen.model.loading import load
    from halfseen.options import Options
    from halfseen.presets import preset

__version__ = "0.2.0.dev0"

__all__ = [
    "AdaptationImputationClassifier",
    "AdaptationImputationRegressor",
    "AlarmWarning",
    "Blocks",
    "HalfSeenClassifier",
    "HalfSeenRegressor",
    "HalfseenError",
    "InputError",
    "OptionError",
    "Options",
    "TrainingDivergedError",
    "__version__",
    "fit",
    "load",
    "preset",
]

# Names are fetched when they are first used: help and completion must not wait for torch.
_HOMES = {
    "AdaptationImputationClassifier": "halfseen.estimators",
    "AdaptationImputationRegressor": "halfseen.estimators",
    "AlarmWarning": "halfseen.errors",
    "Blocks": "halfseen.blocks",
    "HalfSeenClassifier": "halfseen.estimators",
    "HalfSeenRegressor": "halfseen.estimators",
    "HalfseenError": "halfseen.errors",
    "InputError": "halfseen.errors",
    "OptionError": "halfseen.errors",
    "Options": "halfseen.options",
    "TrainingDivergedError": "halfseen.errors",
    "fit": "halfseen.api",
    "load": "halfseen.model.loading",
    "preset": "halfseen.presets",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'halfseen' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
