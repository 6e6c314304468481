"""The filling of gaps as nodes of a graph: the same steps as in ``halfseen.data.gap_filling``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from onnx import TensorProto

from halfseen.data.gap_filling import SMALLEST, STEPS, GapFilling, fills
from halfseen.data.schema import CategoryColumn, TableSchema
from halfseen.export.onnx_graph import GraphBuilder


def add_gap_filling(
    builder: GraphBuilder,
    filling: GapFilling,
    schema: TableSchema,
    rows: str,
    are_gaps: Mapping[str, str],
) -> str:
    """Fill the gaps of rows; `are_gaps` says in 0 and 1 which are, by column, and "" in none.

    Nothing is computed where there are no gaps, because most requests have none.
    """
    columns, places = list(are_gaps), []
    for column in schema.columns:
        name = column.name if fills(column) else ""
        places += [columns.index(name)] * len(column.inputs)
    flags = builder.node("Concat", *are_gaps.values(), axis=1)
    spread = builder.node("Gather", flags, builder.constant(np.array(places)), axis=1)
    gaps = builder.node("Cast", spread, to=TensorProto.BOOL)
    one_more = builder.constant(np.zeros((1, len(places)), dtype=np.float32))  # of no rows, no most
    most = builder.node("ReduceMax", builder.node("Concat", spread, one_more, axis=0), keepdims=0)
    is_any = builder.node("Cast", most, to=TensorProto.BOOL)
    return builder.only_if(
        is_any, rows, partial(_filled, builder, filling, schema, rows, gaps), TensorProto.FLOAT
    )


def _filled(
    builder: GraphBuilder, filling: GapFilling, schema: TableSchema, rows: str, gaps: str
) -> str:
    """Take the steps of conjugate gradients, then the likeliest of each column's categories."""
    width, observed = len(schema.inputs), list(schema.blocks.observed)
    mean, scale, links = np.zeros(width), np.ones(width), np.eye(width)
    mean[observed], scale[observed] = filling.mean, filling.scale
    links[np.ix_(observed, observed)] = filling.links
    node = builder.node
    of_mean, of_scale, of_links, zero, smallest = map(
        builder.constant, (mean, scale, links, np.zeros(()), np.array(SMALLEST))
    )
    axis = builder.constant(np.array([1], dtype=np.int64))

    def summed(first: str, second: str) -> str:
        return node("ReduceSum", node("Mul", first, second), axis, keepdims=1)

    def divided(first: str, second: str) -> str:
        return node("Div", first, node("Max", second, smallest))

    inputs = node("Cast", rows, to=TensorProto.DOUBLE)
    found = node("Where", gaps, zero, node("Div", node("Sub", inputs, of_mean), of_scale))
    left = node("Where", gaps, node("Neg", node("MatMul", found, of_links)), zero)
    step, size = left, summed(left, left)
    for _ in range(STEPS):
        along = node("Where", gaps, node("MatMul", step, of_links), zero)
        length = divided(size, summed(step, along))
        found = node("Add", found, node("Mul", length, step))
        left = node("Sub", left, node("Mul", length, along))
        before, size = size, summed(left, left)
        step = node("Add", left, node("Mul", divided(size, before), step))
    limits = [builder.constant(np.array(end)) for end in (-schema.clip, schema.clip)]
    found = node("Clip", node("Add", of_mean, node("Mul", of_scale, found)), *limits)
    found = node("Cast", found, to=TensorProto.FLOAT)
    off_and_on = builder.constant(np.array([0, 1], dtype=np.float32))
    parts, start = [], 0
    for column in schema.columns:
        ends = (np.array([end], dtype=np.int64) for end in (start, start + len(column.inputs)))
        part = node("Slice", found, *map(builder.constant, ends), axis)
        start += len(column.inputs)
        if fills(column) and isinstance(column, CategoryColumn):
            likeliest = node("ArgMax", part, axis=1, keepdims=0)
            count = builder.constant(np.array(len(column.inputs), dtype=np.int64))
            part = node("OneHot", likeliest, count, off_and_on, axis=1)
        parts.append(part)
    return node("Where", gaps, node("Concat", *parts, axis=1), rows)
