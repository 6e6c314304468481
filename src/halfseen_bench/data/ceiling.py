"""How well the target can be predicted at all from its observed block."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from halfseen.errors import InputError
from halfseen.splitting import folds
from halfseen_bench.data.pairs import DomainPair

__all__ = ["ceiling"]

_FOLDS = 5


def ceiling(pair: DomainPair, *, seed: int = 0) -> float:
    """Return the accuracy of a logistic regression on x1 that is given the target's own labels.

    Five-fold on the target's training rows. It is what a card states beside a pair; no training
    code may use it. A better model than this one may lie somewhat above it.
    """
    if pair.target_train_labels is None:
        raise InputError(f"The labels of {pair.name}'s training rows are not known.")
    labels = pair.target_train_labels.open("the ceiling that a card states")
    observed = pair.blocks.flat(pair.target_train, "observed")
    if np.isnan(observed).any():
        raise InputError(f"{pair.name} holds gaps; load it with gaps='median' for its ceiling.")
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=1000))
    parts = folds(labels, _FOLDS, seed)
    return float(cross_val_score(model, observed, labels, cv=parts).mean())
