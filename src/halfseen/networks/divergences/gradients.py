"""Identities whose backward pass scales the gradient: where ramps and reversal live."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

__all__ = ["reverse_gradient", "scale_gradient"]


class _ScaleGradient(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Tensor, scale: float) -> Tensor:
        context.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0] * context.scale, None


def scale_gradient(x: Tensor, scale: float) -> Tensor:
    """Return `x` unchanged, with its gradient multiplied by `scale` on the way back.

    Examples
    --------
    >>> x = torch.ones(2, requires_grad=True)
    >>> scale_gradient(x, 0.5).sum().backward()
    >>> x.grad
    tensor([0.5000, 0.5000])
    """
    scaled: Tensor = _ScaleGradient.apply(x, scale)  # type: ignore[no-untyped-call]
    return scaled


def reverse_gradient(x: Tensor) -> Tensor:
    """Gradient reversal (Ganin and Lempitsky, 2015): what descends above it ascends below."""
    return scale_gradient(x, -1.0)
