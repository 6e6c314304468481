"""A rehearsal on the user's own data: the whole pipeline where labels and missing block are known.

A slice of the source plays the target. Models are trained on the rest and measured on the slice,
and so are the scores that choose between models without labels.
"""

from __future__ import annotations

from halfseen.rehearsal.results import Rehearsal, RehearsedChoice, RehearsedRun
from halfseen.rehearsal.running import MODELS, rehearse
from halfseen.rehearsal.stage import BASELINES

__all__ = [
    "BASELINES",
    "MODELS",
    "Rehearsal",
    "RehearsedChoice",
    "RehearsedRun",
    "rehearse",
]
