"""A linear classifier beside the networks, blended with f at prediction."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

__all__ = ["Shortcut"]


class Shortcut(nn.Module):
    """Blends f's logits with a linear map of the observed inputs: a f(ẑ) + W x1 + b.

    On small or wide tables a regularised logistic regression is hard to beat, and a network's
    probabilities are too sure. The blend is fitted after training, on rows that were held out
    (:mod:`halfseen.weights.blending`); until then it changes nothing. Its numbers are buffers, so
    that no gradient step moves them.

    Parameters
    ----------
    inputs, classes
        Width of x1 and number of classes.
    """

    weight: Tensor
    bias: Tensor
    scale: Tensor
    complete_scale: Tensor

    def __init__(self, inputs: int, classes: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.zeros(classes, inputs))
        self.register_buffer("bias", torch.zeros(classes))
        self.register_buffer("scale", torch.ones(()))
        self.register_buffer("complete_scale", torch.ones(()))

    def forward(self, logits: Tensor, observed: Tensor) -> Tensor:
        """Return the blended logits of rows whose missing block is imputed."""
        return self.scale * logits + linear(observed, self.weight, self.bias)

    def complete(self, logits: Tensor) -> Tensor:
        """Return the logits of rows whose missing block is there, at their own temperature."""
        return self.complete_scale * logits
