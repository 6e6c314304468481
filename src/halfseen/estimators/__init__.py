"""The scikit-learn faces of the one model: of classes, and of amounts."""

from __future__ import annotations

from halfseen.estimators.classifier import AdaptationImputationClassifier
from halfseen.estimators.regressor import AdaptationImputationRegressor

__all__ = ["AdaptationImputationClassifier", "AdaptationImputationRegressor"]
