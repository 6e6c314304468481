"""Class proportions of a table that is scored, from labelled rows the model was not fitted on."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from halfseen.errors import InputError
from halfseen.evidence import PriorEstimate, estimate_target_prior
from halfseen.front.files import TableFiles
from halfseen.front.labels import count_labels, label_positions
from halfseen.front.schema import class_name
from halfseen.model.model import Model

__all__ = ["MOST_ROWS", "estimate_table_prior"]

MOST_ROWS = 5_000
"""About so many rows of each table are looked at; more would hardly narrow the intervals."""

Matrix = npt.NDArray[np.float64]


def estimate_table_prior(model: Model, held_out: TableFiles, table: TableFiles) -> PriorEstimate:
    """Estimate a table's class proportions, and check whether they can be used.

    Parameters
    ----------
    model
        Its probabilities are what is compared.
    held_out
        Labelled source rows that the model was *not* fitted on. Their missing block is not
        looked at.
    table
        The rows to be scored.
    """
    label = model.schema.label
    if label not in held_out.names:
        raise InputError(
            f"{held_out.path} has no column {label!r}: proportions are estimated from labelled "
            "source rows that the model was not fitted on."
        )
    source, labels = _sample(model, held_out, label)
    target, _ = _sample(model, table, None)
    return estimate_target_prior(source, labels, target, random_state=model.seed)


def _sample(
    model: Model, table: TableFiles, label: str | None
) -> tuple[Matrix, npt.NDArray[np.int64]]:
    """Return the probabilities of some rows, drawn from the whole table, and their labels."""
    names = [column.name for column in model.schema.observed]
    absent = [name for name in names if name not in table.names]
    if absent:
        raise InputError(f"{table.path} lacks column {absent[0]!r}, which the model observes.")
    rows = sum(batch.num_rows for batch in table.batches(names[:1]))
    random = np.random.default_rng(model.seed)
    scores, labels, first_row, where = [], [], 1, str(table.path)
    for batch in table.batches([*names, *([label] if label else [])]):
        chosen = np.flatnonzero(random.random(batch.num_rows) < MOST_ROWS / max(rows, 1))
        taken = batch.take(chosen)
        scores.append(model.predict_proba(taken, where=where, first_row=first_row))
        if label:
            _check_labels(model, batch.column(label), where, first_row)
            labels.append(label_positions(model.schema, taken.column(label), where))
        first_row += batch.num_rows
    if not sum(map(len, scores)):
        raise InputError(f"{table.path} has no rows to estimate class proportions from.")
    return np.concatenate(scores), np.concatenate(labels) if label else np.empty(0, np.int64)


def _check_labels(model: Model, column: Any, where: str, first_row: int) -> None:
    label, known = model.schema.label, model.schema.class_names
    for value in count_labels(column, label, where=where, first_row=first_row):
        if class_name(value) not in known:
            raise InputError(
                f"The label {label!r} of {where} has the value {class_name(value)!r}, which is "
                f"none of the model's classes ({', '.join(known)})."
            )
