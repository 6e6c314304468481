"""The matrix products inside some work: record them, and run them alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten


class Product(NamedTuple):
    """A (rows, inner) matrix times an (inner, columns) one; either may be a transposed view."""

    rows: int
    inner: int
    columns: int
    first_transposed: bool = False
    second_transposed: bool = False


def products_of(work: Callable[[], Any]) -> list[Product]:
    """Run the work once and return its products, a convolution as the products it amounts to."""
    with _Recorder() as recorder:
        work()
    return recorder.products


def replay(products: list[Product]) -> Callable[[], None]:
    """Return a function that computes products of these shapes, and nothing else."""
    ready = []
    for p in products:
        first = _matrix(p.rows, p.inner, p.first_transposed)
        second = _matrix(p.inner, p.columns, p.second_transposed)
        ready.append((first, second, torch.empty(p.rows, p.columns)))

    def run() -> None:
        for first, second, result in ready:
            torch.mm(first, second, out=result)

    return run


class _Recorder(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.products: list[Product] = []

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        if function is aten.mm.default:
            self._matrices(args[0], args[1])
        elif function is aten.addmm.default:
            self._matrices(args[1], args[2])
        elif function is aten.convolution.default:
            pixels, inner, filters = _convolution(result, args[1])
            self.products.append(Product(pixels, inner, filters, second_transposed=True))
        elif function is aten.convolution_backward.default:
            pixels, inner, filters = _convolution(args[0], args[2])
            of_input, of_weight, _ = args[-1]
            if of_input:
                self.products.append(Product(pixels, filters, inner))
            if of_weight:
                self.products.append(Product(filters, pixels, inner, first_transposed=True))
        return result

    def _matrices(self, first: torch.Tensor, second: torch.Tensor) -> None:
        self.products.append(
            Product(*first.shape, second.shape[1], _transposed(first), _transposed(second))
        )


def _convolution(output: torch.Tensor, weight: torch.Tensor) -> tuple[int, int, int]:
    filters = len(weight)
    return output.numel() // filters, weight.numel() // filters, filters


def _transposed(matrix: torch.Tensor) -> bool:
    return matrix.stride(0) < matrix.stride(1)


def _matrix(rows: int, columns: int, transposed: bool) -> torch.Tensor:
    return torch.randn(columns, rows).T if transposed else torch.randn(rows, columns)
