"""What a model knows of the value of measuring: of sets of missing columns, and row by row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from halfseen.arrays import Floats, Matrix
from halfseen.data.column_spec import listed
from halfseen.errors import InputError, OptionError
from halfseen.evidence.density_ratio import ENOUGH_OVERLAP

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


def evidence_of(model: Model) -> dict[str, Any]:
    """Return what the gains rest on, as figures and as sentences."""
    found = {n: value for n, value in model.metrics["value_of_measuring"].items() if n != "sets"}
    return found | {"says": evidence_sentences(found)}


def evidence_sentences(found: Mapping[str, Any]) -> list[str]:
    """Say what gains rest on, and where that is too little."""
    says = [
        f"From {found['rows']:,} labelled source rows, worth {found['effective_rows']:,.0f} on the "
        "target; intervals of 90 %."
    ]
    if found["overlap"] < ENOUGH_OVERLAP:
        says.append(
            f"Careful: on the target source rows are worth {found['overlap']:.1%} of their number, "
            f"and an estimate needs {ENOUGH_OVERLAP:.0%}."
        )
    if found["left_out"]:
        says.append(f"Not looked at, as they tell least: {listed(found['left_out'])}.")
    return says


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
                f"{name!r} is none of the columns that are missing on the target: "
                f"{listed(missing)}."
            )
        if name not in looked_at:
            raise OptionError(f"{name!r} was not looked at: others tell more of what x1 leaves.")
