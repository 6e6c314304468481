"""Each kind of member as nodes of an ONNX graph: `add_member`, by the member's class.

Networks are written by hand, not by ``torch.onnx.export``: that needs onnxscript beside onnx,
writes an opset that older servers do not read, and gives a graph of its own, where columns, trees
and networks of one model are to be one graph.
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto

from halfseen.blocks import Blocks
from halfseen.errors import InputError
from halfseen.export.onnx_graph import GraphBuilder
from halfseen.members import NETWORKS, Aligned, BoostedTrees, Forest, Regression
from halfseen.members.aligned import LIMIT, ColumnMap
from halfseen.members.tree_arrays import TreeArrays
from halfseen.targets import ClassTarget
from halfseen.targets.classification import DOUBT

if TYPE_CHECKING:
    import torch
    from torch import nn

    from halfseen.networks.modules import Networks


@singledispatch
def add_member(member: Any, builder: GraphBuilder, rows: str) -> str:
    """Add a member to an ONNX graph; return the name of its logits or amounts.

    `rows` names the float matrix of target rows, or the tensor of images, with all columns or
    pixels, the missing block at any value.
    """
    if member.kind == NETWORKS:  # not by their class, which would import PyTorch for all
        return _add_networks(builder, member.networks, rows)
    raise InputError(
        f"Members of kind {member.kind!r} have no ONNX graph: write one with "
        "halfseen.export.member_graphs.add_member.register."
    )


def _observed(builder: GraphBuilder, blocks: Blocks, rows: str) -> str:
    positions = builder.constant(np.array(blocks.observed, dtype=np.int64))
    return builder.node("Gather", rows, positions, axis=1)


@add_member.register
def _(member: Regression, builder: GraphBuilder, rows: str) -> str:
    weight, bias, *bounds = (
        builder.constant(tensor.astype(np.float32)) for tensor in member.tensors().values()
    )
    observed = _observed(builder, member.blocks, rows)
    for end, operation in zip(bounds, ("Max", "Min"), strict=False):
        observed = builder.node(operation, observed, end)
    return builder.node("Gemm", observed, weight, bias, transB=1)


@add_member.register
def _(member: Aligned, builder: GraphBuilder, rows: str) -> str:
    answers: list[str] = []
    for part in member.parts:
        for mapped in part.maps:
            inner: Any = part.member
            moved = add_map(mapped, builder, rows, inner.blocks.length)
            logits = add_member(inner, builder, moved)
            answers.append(builder.node("LogSoftmax", logits, axis=1))
    return builder.weighted_sum(answers, [w for part in member.parts for w in part.weights])


@add_member.register
def _(member: BoostedTrees, builder: GraphBuilder, rows: str) -> str:
    return _add_sums(member, builder, rows)


@add_member.register
def _(member: Forest, builder: GraphBuilder, rows: str) -> str:
    means = _add_sums(member, builder, rows)
    if not isinstance(member.target_type, ClassTarget):
        return means
    limits = [builder.constant(np.array(limit, dtype=np.float32)) for limit in (0.0, 1.0)]
    doubt = builder.constant(np.array(DOUBT, dtype=np.float32))
    return builder.node("Log", builder.node("Add", builder.node("Clip", means, *limits), doubt))


def _add_sums(member: BoostedTrees | Forest, builder: GraphBuilder, rows: str) -> str:
    sums = _add_trees(member.trees, builder, _observed(builder, member.blocks, rows))
    if member.mirrored:
        sums = builder.node("Concat", builder.node("Neg", sums), sums, axis=1)
    if member.start is not None:
        sums = builder.node("Add", sums, add_member(member.start, builder, rows))
    return builder.node("Add", sums, builder.constant(member.constant.astype(np.float32)))


def _add_trees(trees: TreeArrays, builder: GraphBuilder, rows: str) -> str:
    """Add trees; return the name of the outputs.

    A threshold becomes the largest number of single precision that is not above it: rows are
    in single precision, so each goes the way it goes in LightGBM.
    """
    nodes: dict[str, list[Any]] = {
        name: []
        for name in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids",
                     "falsenodeids")
    }  # fmt: skip
    leaves: dict[str, list[Any]] = {n: [] for n in ("treeids", "nodeids", "ids", "weights")}
    single = trees.threshold.astype(np.float32)
    below = np.nextafter(single, np.float32(-np.inf))
    single = np.where(single > trees.threshold, below, single)
    for tree, inner, values in trees.each():
        # Leaves come after the inner nodes: leaf k is node size + k.
        size = inner.stop - inner.start
        left, right = (
            np.where(c < 0, size - 1 - c, c) for c in (trees.left[inner], trees.right[inner])
        )
        blank = [0] * (size + 1)
        nodes["treeids"] += [tree] * (2 * size + 1)
        nodes["nodeids"] += list(range(2 * size + 1))
        nodes["featureids"] += [*trees.feature[inner].tolist(), *blank]
        nodes["values"] += [*single[inner].tolist(), *map(float, blank)]
        nodes["modes"] += ["BRANCH_LEQ"] * size + ["LEAF"] * (size + 1)
        nodes["truenodeids"] += [*left.tolist(), *blank]
        nodes["falsenodeids"] += [*right.tolist(), *blank]
        leaves["treeids"] += [tree] * (size + 1)
        leaves["nodeids"] += list(range(size, 2 * size + 1))
        leaves["ids"] += [tree % trees.outputs] * (size + 1)
        leaves["weights"] += values.tolist()
    return builder.node(
        "TreeEnsembleRegressor",
        rows,
        domain="ai.onnx.ml",
        n_targets=trees.outputs,
        **{f"nodes_{name}": values for name, values in nodes.items()},
        **{f"target_{name}": values for name, values in leaves.items()},
    )


def add_map(columns: ColumnMap, builder: GraphBuilder, rows: str, inputs: int) -> str:
    """Add a map of columns; those that it leaves alone pass by."""

    def full(values: Any, other: Any) -> str:
        array = np.full(inputs, other)
        array[columns.positions] = values
        return builder.constant(array)

    raw = builder.node("Cast", rows, to=TensorProto.DOUBLE)
    scaled = builder.node("Mul", raw, full(columns.scale, 1.0))
    raw = builder.node("Add", scaled, full(columns.mean, 0.0))
    if columns.logarithm.any():
        size = builder.node("Add", builder.node("Abs", raw), builder.constant(np.ones(1)))
        logs = builder.node("Mul", builder.node("Sign", raw), builder.node("Log", size))
        raw = builder.node("Where", full(columns.logarithm, False), logs, raw)
    moved = builder.node("Mul", raw, full(columns.slope, 1.0))
    moved = builder.node("Add", moved, full(columns.offset, 0.0))
    limits = [builder.constant(np.array(limit)) for limit in (-LIMIT, LIMIT)]
    moved = builder.node("Cast", builder.node("Clip", moved, *limits), to=TensorProto.FLOAT)
    return builder.node("Where", full(True, False), moved, rows)


def _add_networks(builder: GraphBuilder, networks: Networks, rows: str) -> str:
    """Add what `Networks.forward` computes in evaluation mode: (g1(x1), r(g1(x1))), then f."""
    blocks, view = networks.blocks, networks.method.target_view
    shown = _add_evened(builder, blocks, rows) if networks.standardize else rows
    if blocks.is_table and view == "ignore":
        shown = _observed(builder, blocks, shown)
    elif not blocks.is_table or view == "zero":
        table = np.isin(np.arange(blocks.length), blocks.missing)
        hidden = builder.constant(table if blocks.is_table else blocks.mask)
        fill = builder.constant(np.array(blocks.fill, dtype=np.float32))
        shown = builder.node("Where", hidden, fill, shown)
    latent = _add_layer(builder, networks.encoder, shown)
    if networks.generator is not None:
        imputed = _add_layer(builder, networks.generator, latent)
        latent = builder.node("Concat", latent, imputed, axis=1)
    return _add_layer(builder, networks.classifier, latent)


def _add_evened(builder: GraphBuilder, blocks: Blocks, images: str) -> str:
    """Add what brings each image to mean 0 and spread 1 of its measured pixels."""
    from halfseen.networks.modules import CONTRAST

    numbers = np.arange(math.prod(blocks.shape), dtype=np.int64).reshape(1, *blocks.shape)
    positions = builder.constant(blocks.flat(numbers, "observed")[0])  # type: ignore[type-var]
    measured = builder.node("Gather", builder.node("Flatten", images), positions, axis=1)
    mean = builder.node("ReduceMean", measured, axes=[1])
    away = builder.node("Sub", measured, mean)
    variance = builder.node("ReduceMean", builder.node("Mul", away, away), axes=[1])
    noise = builder.constant(np.array(CONTRAST**2, dtype=np.float32))
    spread = builder.node("Sqrt", builder.node("Add", variance, noise))
    axes = builder.constant(np.array([2, 3], dtype=np.int64))
    centred = builder.node("Sub", images, builder.node("Unsqueeze", mean, axes))
    return builder.node("Div", centred, builder.node("Unsqueeze", spread, axes))


def _add_layer(builder: GraphBuilder, layer: nn.Module, value: str) -> str:
    """Add one layer, or the layers that it is made of."""
    from torch import nn

    from halfseen.networks.encoders import ConvEncoder, VectorEncoder

    def constants(*tensors: torch.Tensor | None) -> list[str]:
        arrays = (t.detach().cpu().float().numpy() for t in tensors if t is not None)
        return [builder.constant(array) for array in arrays]

    match layer:
        case nn.Sequential():
            for inner in layer:
                value = _add_layer(builder, inner, value)
            return value
        case VectorEncoder():
            latent = _add_layer(builder, layer.layers, value)
            if layer.linear is not None:
                latent = builder.node("Add", latent, _add_layer(builder, layer.linear, value))
            return _add_layer(builder, layer.activation, latent)
        case ConvEncoder():
            return builder.node("Flatten", _add_layer(builder, layer.layers, value), axis=1)
        case nn.Conv2d():
            padding = "SAME_UPPER" if layer.padding == "same" else "VALID"
            return builder.node(
                "Conv", value, *constants(layer.weight, layer.bias), auto_pad=padding
            )
        case nn.MaxPool2d():
            assert isinstance(layer.kernel_size, int)
            sides = [layer.kernel_size] * 2
            return builder.node("MaxPool", value, kernel_shape=sides, strides=sides)
        case nn.Linear():
            return builder.node("Gemm", value, *constants(layer.weight, layer.bias), transB=1)
        case nn.BatchNorm1d() | nn.BatchNorm2d():
            learned = constants(layer.weight, layer.bias, layer.running_mean, layer.running_var)
            return builder.node("BatchNormalization", value, *learned, epsilon=layer.eps)
        case nn.ReLU():
            return builder.node("Relu", value)
        case nn.Sigmoid():
            return builder.node("Sigmoid", value)
        case nn.Identity() | nn.Dropout():
            return value
    raise InputError(
        f"A layer of type {type(layer).__name__} cannot be exported to ONNX; the encoders that "
        "halfseen builds itself can."
    )
