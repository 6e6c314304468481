"""The networks of a fitted model as ONNX nodes: ẑ_T = (g1(x1), r(g1(x1))), then f.

Written by hand, not by ``torch.onnx.export``: that needs onnxscript beside onnx, writes an opset
that older servers do not read, and gives a graph of its own, where columns, trees and networks of
one model are to be one graph.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from halfseen.errors import InputError
from halfseen.networks.encoders import ConvEncoder, VectorEncoder
from halfseen.networks.modules import CONTRAST, Networks

if TYPE_CHECKING:
    from halfseen.onnx_graph import GraphBuilder


def add_networks(builder: GraphBuilder, networks: Networks, rows: str) -> str:
    """Add what :meth:`Networks.forward` computes in evaluation mode; return the logits.

    `rows` names the float matrix of target rows, or the tensor of images, with all columns or
    pixels, the missing block at any value.
    """
    blocks, view = networks.blocks, networks.method.target_view
    shown = _add_evened(builder, networks, rows) if networks.standardize else rows
    if blocks.is_table and view == "ignore":
        positions = builder.constant(np.array(blocks.observed, dtype=np.int64))
        shown = builder.node("Gather", shown, positions, axis=1)
    elif not blocks.is_table or view == "zero":
        table = np.isin(np.arange(blocks.length), blocks.missing)
        hidden = builder.constant(table if blocks.is_table else blocks.mask)
        fill = builder.constant(np.array(blocks.fill, dtype=np.float32))
        shown = builder.node("Where", hidden, fill, shown)
    latent = _add(builder, networks.encoder, shown)
    if networks.generator is not None:
        imputed = _add(builder, networks.generator, latent)
        latent = builder.node("Concat", latent, imputed, axis=1)
    return _add(builder, networks.classifier, latent)


def _add_evened(builder: GraphBuilder, networks: Networks, images: str) -> str:
    """Add what brings each image to mean 0 and spread 1 of its measured pixels."""
    blocks = networks.blocks
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


def _add(builder: GraphBuilder, layer: nn.Module, value: str) -> str:
    """Add one layer, or the layers that it is made of."""

    def constants(*tensors: torch.Tensor) -> list[str]:
        return [builder.constant(_array(tensor)) for tensor in tensors]

    match layer:
        case nn.Sequential():
            for inner in layer:
                value = _add(builder, inner, value)
            return value
        case VectorEncoder():
            latent = _add(builder, layer.layers, value)
            if layer.linear is not None:
                latent = builder.node("Add", latent, _add(builder, layer.linear, value))
            return _add(builder, layer.activation, latent)
        case ConvEncoder():
            return builder.node("Flatten", _add(builder, layer.layers, value), axis=1)
        case nn.Conv2d():
            padding = "SAME_UPPER" if layer.padding == "same" else "VALID"
            assert layer.bias is not None
            learned = constants(layer.weight, layer.bias)
            return builder.node("Conv", value, *learned, auto_pad=padding)
        case nn.MaxPool2d():
            assert isinstance(layer.kernel_size, int)
            sides = [layer.kernel_size] * 2
            return builder.node("MaxPool", value, kernel_shape=sides, strides=sides)
        case nn.Linear():
            return builder.node("Gemm", value, *constants(layer.weight, layer.bias), transB=1)
        case nn.BatchNorm1d() | nn.BatchNorm2d():
            assert layer.running_mean is not None
            assert layer.running_var is not None
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


def _array(tensor: torch.Tensor) -> npt.NDArray[np.float32]:
    array: npt.NDArray[np.float32] = tensor.detach().cpu().float().numpy()
    return array
