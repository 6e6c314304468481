"""What a model predicts of each row: one of several classes, or an amount.

All that differs between the two is one object, behind the protocol :class:`LabelKind`: how members'
answers are combined, what a row costs, what is measured, and the words it is shown with. Nothing
else asks which of the two it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from halfseen.labels.amounts import Amounts
from halfseen.labels.classes import Classes, Scalar, class_name
from halfseen.labels.kind import LabelKind, Measure, Target
from halfseen.labels.reach import Reach

__all__ = [
    "LABEL_KINDS",
    "Amounts",
    "Classes",
    "LabelKind",
    "Measure",
    "Reach",
    "Scalar",
    "Target",
    "class_name",
    "kind_of",
]

LABEL_KINDS: dict[str, type[Classes] | type[Amounts]] = {
    kind.task: kind for kind in (Classes, Amounts)
}
"""By the task that settings name."""


def kind_of(metrics: Mapping[str, Any]) -> type[Classes] | type[Amounts]:
    """Return the kind of label that a model's metrics speak of.

    Examples
    --------
    >>> kind_of({}).loss, kind_of({"task": "regression"}).loss
    ('cross_entropy', 'rmse')
    """
    return LABEL_KINDS.get(str(metrics.get("task")), Classes)
