"""Choosing without target labels: the scores of a trained model, and a scorer.

The formulas stand in :mod:`halfseen.evidence`, and :data:`SCORES` says for each whether lower or
higher is better. Here they are computed for models: :func:`evaluate` gives the numbers,
:func:`make_scorer` makes one of them a scikit-learn scorer. A search over settings is
:func:`halfseen.tuning.search`.
"""

from __future__ import annotations

from halfseen.evidence.registry import SCORES
from halfseen.selection.scorers import make_scorer
from halfseen.selection.scoring import ONE_FIT_SCORES, Evidence, Observed, evaluate

__all__ = [
    "ONE_FIT_SCORES",
    "SCORES",
    "Evidence",
    "Observed",
    "evaluate",
    "make_scorer",
]
