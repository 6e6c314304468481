"""What a model knows of the value of measuring: of sets of missing columns, and row by row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from halfseen.arrays import Floats, Matrix
from halfseen.data.column_spec import similar
from halfseen.errors import InputError, OptionError

if TYPE_CHECKING:
    from halfseen.model.model import Model


def measured_sets(
    model: Model, columns: Sequence[str], costs: Mapping[str, float]
) -> list[dict[str, Any]]:
    """Return what each set of missing columns brings, that of the greatest gain per cost first."""
    _check_columns(model, [*columns, *costs])
    for name, cost in costs.items():
        if not (math.isfinite(cost) and cost > 0.0):
            raise OptionError(f"The cost {name}={cost:g} must be a number above zero.")
    loss = model.target_type.loss
    told = [
        {
            "columns": list(each["columns"]),
            "cost": sum(costs.get(name, 1.0) for name in each["columns"]) if costs else None,
            "gains": {name: list(gain) for name, gain in each["gains"].items()},
        }
        for each in _sets(model)
        if not columns or {*each["columns"]} <= {*columns}
    ]
    return sorted(told, key=lambda each: -each["gains"][loss][0] / (each["cost"] or 1.0))


def value_of_rows(model: Model, rows: Matrix, columns: Sequence[str]) -> Floats:
    """Return how much surer measuring columns makes the answer about each prepared row."""
    _check_columns(model, columns)
    sets = [{*each["columns"]} for each in _sets(model)]
    wanted = {*columns} or {column.name for column in model.schema.missing}
    if wanted not in sets:
        known = "; ".join(", ".join(sorted(each)) for each in sets)
        raise InputError(
            f"What {', '.join(columns)} together bring to a row is not known; it is of {known}."
        )
    answer = model.value_by_row[sets.index(wanted)].raw_prediction(rows)
    return np.maximum(answer[:, 0], 0.0)


def _sets(model: Model) -> list[dict[str, Any]]:
    found = model.metrics.get("value_of_measuring")
    if not found:
        raise InputError(
            "This model does not know what measuring would bring: fit it again with "
            "--value-of-missing (in Python value_of_missing=True)."
        )
    sets: list[dict[str, Any]] = found["sets"]
    return sets


def _check_columns(model: Model, columns: Sequence[str]) -> None:
    missing = [column.name for column in model.schema.missing]
    looked_at = {name for each in _sets(model) for name in each["columns"]}
    for name in columns:
        if name not in missing:
            raise OptionError(
                f"{name!r} is not a column that is missing on the target"
                f"{similar(name, missing)}: those are {', '.join(missing)}."
            )
        if name not in looked_at:
            raise OptionError(f"{name!r} was not looked at: others tell more of what x1 leaves.")
