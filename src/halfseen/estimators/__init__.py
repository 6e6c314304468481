"""The scikit-learn faces: the whole model of classes and of amounts, and the paper's method."""

from __future__ import annotations

from halfseen.estimators.classifier import AdaptationImputationClassifier, HalfSeenClassifier
from halfseen.estimators.regressor import AdaptationImputationRegressor, HalfSeenRegressor

__all__ = [
    "AdaptationImputationClassifier",
    "AdaptationImputationRegressor",
    "HalfSeenClassifier",
    "HalfSeenRegressor",
]
