"""How good a model is on held-out source rows, and which of several suits the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from halfseen.selection import importance_weighted_validation
from halfseen.shift import fit_density_ratio
from halfseen.tables.model import TableModel
from halfseen.tables.schema import TableSchema

__all__ = ["Sample", "baseline_metrics", "held_out_metrics", "metrics_of", "target_risk"]

MOST_WEIGHED = 5_000
"""Rows of each table that the domain classifier of :func:`target_risk` is fitted on."""


MOST_REGRESSED = 100_000
"""Rows that logistic regression is fitted on: more would not change what it says."""


@dataclass(frozen=True)
class Sample:
    """Prepared source rows with their labels."""

    inputs: npt.NDArray[np.float32]
    labels: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.inputs)


def metrics_of(
    probability: npt.NDArray[np.float64], labels: npt.NDArray[np.int64]
) -> dict[str, Any]:
    """Return accuracy, balanced accuracy, cross-entropy and AUC of predictions.

    The AUC speaks of the last class, or is the mean over pairs of classes where there are more
    than two; it is None where only one class is present.

    Examples
    --------
    >>> metrics_of(np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]), np.array([0, 1, 1]))
    {'rows': 3, 'accuracy': 0.6667, 'balanced_accuracy': 0.75, 'cross_entropy': 0.4149, 'auc': 1.0}
    """
    predicted = probability.argmax(1)
    present = np.unique(labels)
    area = None
    if len(present) == probability.shape[1]:
        score = probability[:, 1] if len(present) == 2 else probability
        area = round(float(roc_auc_score(labels, score, multi_class="ovo")), 4)
    return {
        "rows": len(labels),
        "accuracy": round(float((predicted == labels).mean()), 4),
        "balanced_accuracy": round(_balanced_accuracy(labels, predicted), 4),
        "cross_entropy": round(float(losses_of(probability, labels).mean()), 4),
        "auc": area,
    }


def losses_of(
    probability: npt.NDArray[np.float64], labels: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Return the cross-entropy of each row, in nats."""
    given = probability[np.arange(len(labels)), labels]
    losses: npt.NDArray[np.float64] = -np.log(np.maximum(given, 1e-12))
    return losses


def held_out_metrics(model: TableModel, held_out: Sample) -> dict[str, Any]:
    """Measure a model on source rows, with their missing block hidden and with it."""
    hidden = model.score(model.blocks.hide(held_out.inputs))
    found = {"without_missing_block": metrics_of(hidden, held_out.labels)}
    if model.method.imputes:
        complete = model.score(held_out.inputs, complete=True)
        found["with_missing_block"] = metrics_of(complete, held_out.labels)
    return found


def baseline_metrics(training: Sample, held_out: Sample, schema: TableSchema) -> dict[str, Any]:
    """Measure logistic regression on the observed columns: what a model must not fall below.

    Nothing is measured where a sample of the source holds one class alone.
    """
    if len(np.unique(training.labels)) < 2:
        return {}
    observed = list(schema.blocks.observed)
    some = np.random.default_rng(0).permutation(len(training))[:MOST_REGRESSED]
    classifier = LogisticRegression(max_iter=1000)
    classifier.fit(training.inputs[some][:, observed], training.labels[some])
    probability = np.zeros((len(held_out), len(schema.classes)))
    probability[:, classifier.classes_] = classifier.predict_proba(held_out.inputs[:, observed])
    return metrics_of(probability, held_out.labels)


def target_risk(
    model: TableModel, held_out: Sample, training: Sample, target: npt.NDArray[np.float32]
) -> float:
    """Estimate the cross-entropy on the target from held-out source rows; no target label.

    Each row counts by w = p_T(x1) / p_S(x1), from a classifier that tells the domains apart.
    """
    observed = list(model.blocks.observed)
    random = np.random.default_rng(0)

    def some(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        chosen = random.permutation(len(rows))[:MOST_WEIGHED]
        return rows[chosen][:, observed]

    ratio = fit_density_ratio(some(training.inputs), some(target))
    weights = ratio.weights(held_out.inputs[:, observed])
    losses = losses_of(model.score(model.blocks.hide(held_out.inputs)), held_out.labels)
    return importance_weighted_validation(losses, weights).risk


def _balanced_accuracy(labels: npt.NDArray[np.int64], predicted: npt.NDArray[np.int64]) -> float:
    recalls = [float((predicted[labels == k] == k).mean()) for k in np.unique(labels)]
    return float(np.mean(recalls))
