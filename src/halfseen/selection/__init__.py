"""Choosing a model without target labels: risks and scores as plain functions on arrays.

Each function returns its quantity in its natural sense, a risk as a risk and a density as a
density; :data:`SCORES` says for each whether lower or higher is better. :func:`evaluate`
computes them for trained networks.
"""

from __future__ import annotations

from halfseen.evidence.registry import SCORES, Score
from halfseen.evidence.reverse import reverse_validation
from halfseen.evidence.risk import (
    RiskEstimate,
    deep_embedded_validation,
    importance_weighted_validation,
    source_validation,
)
from halfseen.evidence.scores import (
    agreement,
    entropy_score,
    mutual_information_score,
    soft_neighbourhood_density,
)
from halfseen.selection.choosing import (
    Choice,
    choose,
    choose_epochs_by,
    choose_networks,
    score_model,
    split_held_out,
)
from halfseen.selection.evidence import ONE_FIT_SCORES, Evidence, Observed, evaluate
from halfseen.selection.refits import agreement_of_runs, estimator_fit
from halfseen.selection.scorers import make_scorer
from halfseen.selection.spaces import Range, paper_space
from halfseen.selection.tuning import SearchResult, SearchTrial, search

__all__ = [
    "ONE_FIT_SCORES",
    "SCORES",
    "Choice",
    "Evidence",
    "Observed",
    "Range",
    "RiskEstimate",
    "Score",
    "SearchResult",
    "SearchTrial",
    "agreement",
    "agreement_of_runs",
    "choose",
    "choose_epochs_by",
    "choose_networks",
    "deep_embedded_validation",
    "entropy_score",
    "estimator_fit",
    "evaluate",
    "importance_weighted_validation",
    "make_scorer",
    "mutual_information_score",
    "paper_space",
    "reverse_validation",
    "score_model",
    "search",
    "soft_neighbourhood_density",
    "source_validation",
    "split_held_out",
]
