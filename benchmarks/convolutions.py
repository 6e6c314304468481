"""Whether fewer multiplications pay: the digits' 5x5 convolutions directly and by frequency.

Forward and backward of each layer of the default encoder on 64 images, alternately in one process
on one thread: PyTorch's own convolution, and the same product of spectra (rfft2 over tiles that
hold the whole padded image, a complex matrix product for each frequency, irfft2).

    python benchmarks/convolutions.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import conv2d

LAYERS = {"first": (1, 32, 32), "second": (32, 32, 14), "third": (32, 256, 5)}
"""Channels in and out, and the side of the image, without padding."""
IMAGES, KERNEL, TURNS = 64, 5, 15


def by_frequency(images: Tensor, kernel: Tensor) -> Tensor:
    """Return what :func:`conv2d` does, by products of spectra."""
    side = images.shape[-1]
    spectra = torch.fft.rfft2(images, s=(side, side))
    weights = torch.fft.rfft2(kernel.flip(-1, -2), s=(side, side))
    product = torch.einsum("nihw,oihw->nohw", spectra, weights)
    whole = torch.fft.irfft2(product, s=(side, side))
    return whole[..., KERNEL - 1 :, KERNEL - 1 :]


def seconds(convolve: Callable[[Tensor, Tensor], Tensor], images: Tensor, kernel: Tensor) -> float:
    began = time.process_time()
    convolve(images, kernel).square().sum().backward()
    return time.process_time() - began


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print("| layer | direct, ms | by frequency, ms | ratio | largest relative error |")
    print("|---|---|---|---|---|")
    for name, (inputs, outputs, side) in LAYERS.items():
        images = torch.randn(IMAGES, inputs, side, side, requires_grad=True)
        kernel = torch.randn(outputs, inputs, KERNEL, KERNEL, requires_grad=True)
        direct, other = conv2d(images, kernel), by_frequency(images, kernel)
        error = float(((direct - other).abs().max() / direct.abs().max()).detach())
        taken: dict[str, list[float]] = {"direct": [], "other": []}
        for _ in range(TURNS):
            taken["direct"].append(seconds(conv2d, images, kernel))
            taken["other"].append(seconds(by_frequency, images, kernel))
        first, second = (1e3 * statistics.median(each) for each in taken.values())
        print(f"| {name} | {first:.1f} | {second:.1f} | {second / first:.2f} | {error:.0e} |")


if __name__ == "__main__":
    main()
