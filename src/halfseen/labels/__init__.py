"""What a model predicts of each row: one of several classes, or an amount.

All that differs between the two is one object, :class:`Classes` or :class:`Amounts`, which have
the same methods: how members' answers are combined, what a row costs, what is measured, and the
words it is shown with. Nothing else asks which of the two it has. Members give an *answer*, some
numbers for each row: log-probabilities of classes, or an amount. It is *shown* as probabilities,
or as the amount with its interval.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from halfseen.labels.amounts import Amounts
from halfseen.labels.classes import Classes, Scalar, class_name
from halfseen.labels.kind import Target
from halfseen.labels.reach import Reach

__all__ = [
    "LABEL_KINDS",
    "Amounts",
    "Classes",
    "LabelKind",
    "Reach",
    "Scalar",
    "Target",
    "class_name",
    "kind_of",
]

LabelKind = Classes | Amounts
LABEL_KINDS: dict[str, type[LabelKind]] = {kind.task: kind for kind in (Classes, Amounts)}
"""By the task that settings name."""


def kind_of(metrics: Mapping[str, Any]) -> type[LabelKind]:
    """Return the kind of label that a model's metrics speak of.

    Examples
    --------
    >>> kind_of({}).loss, kind_of({"task": "regression"}).loss
    ('cross_entropy', 'rmse')
    """
    return LABEL_KINDS.get(str(metrics.get("task")), Classes)
