"""The preprocessing of a table as ONNX nodes: raw observed columns to inputs of the networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto

from halfseen.data import CategoryColumn, NumberColumn, TableSchema
from halfseen.onnx_graph import GraphBuilder

GAP = ""
"""How a categorical input says that a value is missing; ONNX has no null."""


def add_preprocessing(builder: GraphBuilder, schema: TableSchema) -> tuple[str, str | None]:
    """Add one input per observed column and what :func:`halfseen.preprocessor.transform` computes.

    Numbers come in double precision, as the preprocessing has them, with NaN for a gap;
    categories as text, with :data:`GAP` for one. Inputs of the missing block are 0.
    Returns the name of the float matrix with a column for each of ``schema.inputs``, and that of
    a column that is NaN in rows with an infinity, which a graph cannot refuse, and 0 in others.
    """
    numbers = [column for column in schema.observed if isinstance(column, NumberColumn)]
    categories = [column for column in schema.observed if isinstance(column, CategoryColumn)]
    parts: list[str] = []
    places: dict[str, list[int]] = {}
    refused = None
    if numbers:
        *inputs, refused = _add_numbers(builder, numbers, schema.clip)
        parts += inputs
        for place, number in enumerate(numbers):
            places[number.name] = [place, place + len(numbers)][: len(number.inputs)]
    width = 2 * len(numbers)
    for category in categories:
        parts.append(_add_category(builder, category))
        places[category.name] = list(range(width, width + len(category.inputs)))
        width += len(category.inputs)
    parts.append(_add_zeros(builder, schema.observed[0].name))
    order = [
        place
        for column in schema.columns
        for place in places.get(column.name, [width] * len(column.inputs))
    ]
    joined = builder.node("Concat", *parts, axis=1)
    return builder.node("Gather", joined, builder.constant(np.array(order)), axis=1), refused


def _add_numbers(
    builder: GraphBuilder, columns: Sequence[NumberColumn], clip: float
) -> tuple[str, str, str]:
    """Fill, take logarithms and scale all columns at once; return them, gaps and infinities."""
    axis = builder.constant(np.array([1], dtype=np.int64))
    raw = [
        builder.node("Unsqueeze", builder.input(column.name, TensorProto.DOUBLE), axis)
        for column in columns
    ]

    def constant(values: Sequence[float]) -> str:
        return builder.constant(np.array(values, dtype=np.float64))

    values = builder.node("Concat", *raw, axis=1)
    gaps = builder.node("IsNaN", values)
    values = builder.node("Where", gaps, constant([column.fill for column in columns]), values)
    nothing = builder.node("Sub", values, values)  # NaN where a value is infinite
    refused = builder.node("ReduceSum", nothing, axis, keepdims=1)
    if any(column.log for column in columns):
        size = builder.node("Add", builder.node("Abs", values), constant([1.0]))
        logs = builder.node("Mul", builder.node("Sign", values), builder.node("Log", size))
        chosen = builder.constant(np.array([column.log for column in columns]))
        values = builder.node("Where", chosen, logs, values)
    values = builder.node("Sub", values, constant([column.mean for column in columns]))
    values = builder.node("Div", values, constant([column.scale for column in columns]))
    limits = [builder.constant(np.array(limit, dtype=np.float64)) for limit in (-clip, clip)]
    values = builder.node("Clip", values, *limits)
    return (
        builder.node("Cast", values, to=TensorProto.FLOAT),
        builder.node("Cast", gaps, to=TensorProto.FLOAT),
        builder.node("Cast", refused, to=TensorProto.FLOAT),
    )


def _add_category(builder: GraphBuilder, column: CategoryColumn) -> str:
    """Look the text up among the known ones, then look up the inputs that it becomes."""
    known = [category for category in column.categories if category != GAP]
    codes = [column.categories.index(category) for category in known]
    unseen, gap = len(column.categories), len(column.categories) + 1
    code = builder.node(
        "LabelEncoder",
        builder.input(column.name, TensorProto.STRING),
        domain="ai.onnx.ml",
        keys_strings=[*known, GAP],
        values_int64s=[*codes, gap],
        default_int64=unseen,
    )
    return builder.node("Gather", builder.constant(_category_inputs(column)), code, axis=0)


def _category_inputs(column: CategoryColumn) -> npt.NDArray[np.float32]:
    """Return the inputs of each category, then those of an unseen one, then those of a gap."""
    count = len(column.categories)
    table = np.zeros((count + 2, len(column.inputs)), dtype=np.float32)
    table[:count, :count] = np.eye(count)
    if column.other:
        table[count, count] = 1.0
    filled = column.categories.index(column.fill) if column.fill in column.categories else count
    table[count + 1] = table[filled]
    if column.indicator:
        table[count + 1, -1] = 1.0
    return table


def _add_zeros(builder: GraphBuilder, first_input: str) -> str:
    """Return a column of zeros, one for each row."""
    rows = builder.node("Shape", first_input)
    one = builder.constant(np.array([1], dtype=np.int64))
    return builder.node("ConstantOfShape", builder.node("Concat", rows, one, axis=0))


def graph_values(values: Any) -> npt.NDArray[Any]:
    """Return a column that was read as the graph takes it: numbers with NaN, or texts with GAP."""
    if isinstance(values, np.ndarray):
        return values
    filled: npt.NDArray[Any] = np.array(values.fill_null(GAP).to_pylist(), dtype=object)
    return filled
