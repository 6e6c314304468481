"""Reasons for a whole model's answers about rows: what each column adds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from halfseen.arrays import Matrix
from halfseen.data.preprocessors import TablePreprocessor
from halfseen.errors import InputError
from halfseen.explain import (
    TYPICAL,
    Explanation,
    outside_columns,
    shapley_values,
    typical_rows,
)
from halfseen.members.aligned import Aligned

if TYPE_CHECKING:
    from halfseen.model.model import Model


def explain(model: Model, X: Any, *, seed: int, where: str) -> Explanation:
    """Explain a model's answers about rows (:meth:`halfseen.model.model.Model.explain`)."""
    preprocessor = model.preprocessor
    if not isinstance(preprocessor, TablePreprocessor):
        raise InputError(
            "Reasons speak of columns, and this model takes images: `halfseen explain` says which "
            "regions move its answers."
        )
    schema = preprocessor.schema
    read = preprocessor.read(X, complete=model.needs_complete_target, where=where)
    rows = preprocessor.inputs(read)
    if not len(rows):
        raise InputError(f"{where} holds no rows to explain.")
    background, compared_with = _background(model, rows, seed)
    ends = np.cumsum([0, *(len(column.inputs) for column in schema.columns)])
    columns = {
        column.name: range(start, stop)
        for column, start, stop in zip(schema.columns, ends[:-1], ends[1:], strict=True)
        if column.role == "observed"
    }
    shapley = shapley_values(
        lambda inputs: model.target_type.explained(model.raw_prediction(inputs.astype(np.float32))),
        rows,
        background,
        list(columns.values()),
        seed=seed,
    )
    shown, outputs = model.score(rows), model.target_type.outputs
    # The one amount, the second of two classes, or the predicted one of more.
    spoken_of = np.full(len(rows), outputs - 1) if outputs <= 2 else shown.argmax(1)
    place = np.arange(len(rows))
    return Explanation(
        tuple(columns),
        tuple(zip(*(_plain(read.columns[name]) for name in columns), strict=True)),
        schema.class_names,
        shown,
        spoken_of,
        shapley.base[spoken_of],
        shapley.values[place, :, spoken_of],
        shapley.errors[place, :, spoken_of],
        outside_columns(schema, read),
        compared_with,
    )


def _plain(values: Any) -> list[Any]:
    """Return a column that was read as Python's values, None for a gap."""
    return (
        [
            None if value != value else int(value) if value.is_integer() else value
            for value in values.tolist()
        ]
        if isinstance(values, np.ndarray)
        else list(values.to_pylist())
    )


def _background(model: Model, rows: Matrix, seed: int) -> tuple[Matrix, str]:
    """Return rows to compare with, on the scale that the members expect of a target's rows."""
    if any(isinstance(member, Aligned) for member in model.members):
        # Columns have drifted: members map what they are asked about, and source rows need none.
        if len(rows) < TYPICAL:
            raise InputError(
                f"Columns of this model's target have drifted, so its rows are compared with each "
                f"other, and {len(rows)} are too few: give at least {TYPICAL}."
            )
        return rows[np.random.default_rng(seed).permutation(len(rows))[:TYPICAL]], "each other"
    return typical_rows(model.schema, seed=seed), "rows of the source's quantiles"
