"""What a model predicts of each row: one of several classes, or an amount.

All that differs between the two is one object, :class:`ClassTarget` or
:class:`RegressionTarget`, with the same methods: how members' answers are combined, what a row
costs, what is measured, and its words. Members give an *answer*, some numbers for each row:
log-probabilities of classes, or an amount. It is shown as probabilities, or as the amount with its
interval.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from halfseen.targets.classification import ClassTarget, ClassWeight, Scalar, class_name
from halfseen.targets.regression import IntervalReach, RegressionTarget, Target

__all__ = [
    "LABEL_KINDS",
    "ClassTarget",
    "ClassWeight",
    "IntervalReach",
    "RegressionTarget",
    "Scalar",
    "Target",
    "TargetType",
    "class_name",
    "target_type_of",
]

TargetType = ClassTarget | RegressionTarget
LABEL_KINDS: dict[str, type[TargetType]] = {
    kind.task: kind for kind in (ClassTarget, RegressionTarget)
}
"""By the task that settings name."""


def target_type_of(metrics: Mapping[str, Any]) -> type[TargetType]:
    """Return the kind of label that a model's metrics speak of."""
    return LABEL_KINDS.get(str(metrics.get("task")), ClassTarget)
