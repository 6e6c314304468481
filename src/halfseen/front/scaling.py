"""Whether numbers keep their sizes relative to each other, decided on the labelled source."""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np

from halfseen.front.schema import NumberColumn, TableSchema
from halfseen.front.streaming import RowStream
from halfseen.front.tables import Table
from halfseen.networks.training.scaling import FEWEST_COLUMNS, MOST_ROWS, shared_scale

__all__ = ["settle_scales"]


def settle_scales(schema: TableSchema, source: Table, rows: int) -> tuple[TableSchema, str | None]:
    """Return the schema with the scale that suits its columns of measurements, and a note.

    Principal components and embeddings come on one common scale, and their spread says how much
    they matter: scaling each to spread one drowns the first few in noise. Ages and blood
    pressures do not. The source's labels tell the cases apart (:func:`shared_scale`).
    """
    columns = [c for c in schema.columns if _is_measurement(c)]
    if len(columns) < FEWEST_COLUMNS or rows > MOST_ROWS:
        return schema, None
    names = [column.name for column in columns]
    positions = [schema.inputs.index(name) for name in names]
    inputs, labels = RowStream(source, schema, is_source=True).all()
    spreads = np.array([column.scale for column in columns])
    common = shared_scale(inputs[:, positions], labels, spreads)
    if common is None:
        return schema, None
    scaled = tuple(
        c.model_copy(update={"scale": common}) if _is_measurement(c) else c for c in schema.columns
    )
    note = (
        f"{len(names)} columns of measurements share one scale, because the source's labels are "
        "predicted better so: their spreads mean something, as those of principal components do."
    )
    return schema.model_copy(update={"columns": scaled}), note


def _is_measurement(column: Any) -> TypeGuard[NumberColumn]:
    return isinstance(column, NumberColumn) and column.kind == "numeric"
