"""Teachers that a user brings: any classifier or regressor of scikit-learn's kind.

They are fitted on source rows only and never saved: what is kept is the students.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from halfseen.arrays import Floats, Matrix
from halfseen.blocks import Blocks
from halfseen.errors import OptionError
from halfseen.members.protocol import TrainingJob
from halfseen.targets import TargetType


class Answering(Protocol):
    """What a teacher is, once fitted: it answers about complete rows."""

    def raw_prediction(self, rows: Matrix) -> Floats:
        """Return log-probabilities or amounts: (rows, outputs)."""


class Teacher(Protocol):
    """What fits a teacher: any of our learners, or one of scikit-learn's estimators."""

    def fit(self, task: TrainingJob) -> Answering:
        """Learn from the labelled rows of a task."""


@dataclass(frozen=True)
class GivenTeacher:
    """Fits a copy of a scikit-learn classifier, or regressor of amounts, as a teacher."""

    estimator: Any

    def fit(self, task: TrainingJob) -> _Given:
        """Learn from the observed inputs of labelled rows."""
        kind, source = task.target_type, task.source
        asked = "predict" if kind.outputs == 1 else "predict_proba"
        if not hasattr(self.estimator, asked):
            raise OptionError(
                f"The teacher {type(self.estimator).__name__} has no {asked}: give a "
                f"{'regressor' if kind.outputs == 1 else 'classifier that gives probabilities'}."
            )
        weighed = source.weights is not None and has_fit_parameter(self.estimator, "sample_weight")
        fitted = clone(self.estimator).fit(
            task.blocks.flat(source.inputs, "observed"),
            source.labels,
            **({"sample_weight": source.weights} if weighed else {}),
        )
        return _Given(fitted, task.blocks, kind)


@dataclass(frozen=True)
class _Given:
    fitted: Any
    blocks: Blocks
    target_type: TargetType

    def raw_prediction(self, rows: Matrix) -> Floats:
        observed, kind = self.blocks.flat(rows, "observed"), self.target_type
        if kind.outputs == 1:
            return np.asarray(self.fitted.predict(observed), np.float64).reshape(-1, 1)
        shares = np.zeros((len(rows), kind.outputs))
        shares[:, self.fitted.classes_] = self.fitted.predict_proba(observed)
        return kind.answers_of_means(shares)
