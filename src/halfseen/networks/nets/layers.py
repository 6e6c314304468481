"""The few pieces every network here is made of."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from halfseen.options import Initialization, Normalization


def normalization(kind: Normalization, features: int, *, image: bool = False) -> nn.Module:
    if kind == "batch":
        return nn.BatchNorm2d(features) if image else nn.BatchNorm1d(features)
    return nn.Identity()


def mlp(
    inputs: int,
    widths: Sequence[int],
    outputs: int,
    *,
    normalize: Normalization = "none",
    normalize_output: bool = False,
    output_activation: nn.Module | None = None,
    dropout: float = 0.0,
) -> nn.Sequential:
    """Return a fully connected network: hidden ReLU layers of the given widths, then the output.

    Dropout follows the first hidden layer alone, as in the paper's classifier.
    """
    layers: list[nn.Module] = []
    for index, width in enumerate(widths):
        layers += [nn.Linear(inputs, width), normalization(normalize, width), nn.ReLU()]
        if dropout and index == 0:
            layers.append(nn.Dropout(dropout))
        inputs = width
    layers.append(nn.Linear(inputs, outputs))
    if normalize_output:
        layers.append(normalization(normalize, outputs))
    if output_activation is not None:
        layers.append(output_activation)
    kept = (layer for layer in layers if not isinstance(layer, nn.Identity))
    return nn.Sequential(*kept) if normalize == "batch" else RowWise(*kept)


class RowWise(nn.Sequential):
    """Layers in which rows do not meet."""

    is_row_wise = True


def of_both(module: nn.Module, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Return what a network makes of two batches; in one pass where rows do not meet in it.

    Small networks take as long for two batches as for one. Batch normalisation must see each
    batch by itself, and a user's own module may do anything.

    Examples
    --------
    >>> [tuple(out.shape) for out in of_both(mlp(3, [], 2), torch.zeros(4, 3), torch.ones(4, 3))]
    [(4, 2), (4, 2)]
    """
    if first.shape == second.shape and getattr(module, "is_row_wise", False):
        halves: tuple[Tensor, Tensor] = module(torch.cat([first, second], dim=-2)).chunk(2, dim=-2)
        return halves
    return module(first), module(second)


def initialize(module: nn.Module, kind: Initialization) -> None:
    """Draw the initial weights anew.

    ``reference`` is the authors' scheme: Xavier-uniform linear weights with bias 0.01,
    convolution weights N(0, 0.02), batch-norm scales N(1, 0.02). ``torch`` keeps PyTorch's.
    """
    if kind == "torch":
        return
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.constant_(layer.bias, 0.01)
        elif isinstance(layer, nn.Conv2d):
            nn.init.normal_(layer.weight, 0.0, 0.02)
        elif isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
            nn.init.normal_(layer.weight, 1.0, 0.02)
            nn.init.zeros_(layer.bias)
