"""A rehearsal on the user's own data: the whole pipeline where labels and missing block are known.

A slice of the source plays the target. Models are trained on the rest and measured on the slice,
and so are the scores that choose between models without labels. Of several sources each plays the
target in turn.
"""

from __future__ import annotations

from halfseen.rehearsal.results import Rehearsal, RehearsedChoice, RehearsedRun
from halfseen.rehearsal.running import MODELS, rehearse, rehearse_sites
from halfseen.rehearsal.stage import BASELINES

__all__ = [
    "BASELINES",
    "MODELS",
    "Rehearsal",
    "RehearsedChoice",
    "RehearsedRun",
    "rehearse",
    "rehearse_sites",
]
