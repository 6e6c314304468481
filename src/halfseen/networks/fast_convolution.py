"""The convolutional encoder with less work: the same mathematics on the same weights.

Four observations, each exact up to rounding:

- Rows that are hidden look the same in every image, and so does whatever depends on them alone.
  Such bands of rows are computed once, for one image, and counted as often as there are images
  in the batch statistics. (With valid padding a band is a constant per channel.)
- Max pooling commutes with an increasing map. With the sign of the batch-norm scale folded into
  the kernel, pooling can go first, and normalisation has a quarter of the values to touch.
- In evaluation mode batch normalisation is a linear map that the kernel absorbs, and every image
  stands alone: a few at a time stay in the processor's cache.
- A grey image shown in three channels is convolved once, with the kernel's channels added up.

The gain was measured on processors (docs/scale.md); elsewhere the plain layers run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, linear, max_pool2d, pad

CACHED_IMAGES = 128
"""Images that are encoded at a time where each stands alone."""


@dataclass(frozen=True)
class Stage:
    """One convolution with what follows it, and the weights that it is computed with."""

    weight: Tensor
    bias: Tensor
    norm: nn.BatchNorm2d | None
    """Batch normalisation that is left to do, with a scale whose sign is in the weights."""
    is_padded: bool
    pools: bool
    activation: nn.Module

    @classmethod
    def of(cls, layers: list[nn.Module], *, is_grey: bool) -> Stage:
        """Take a convolution and the layers up to the next one; a grey image has one channel."""
        convolution = layers[0]
        assert isinstance(convolution, nn.Conv2d)
        weight, bias = convolution.weight, convolution.bias
        assert bias is not None
        if is_grey:
            weight = weight.sum(1, keepdim=True)
        norm = layers[1] if isinstance(layers[1], nn.BatchNorm2d) else None
        if norm is not None and norm.training:
            sign = _sign(norm.weight)
            weight, bias = weight * sign.view(-1, 1, 1, 1), bias * sign
        elif norm is not None:
            assert norm.running_mean is not None
            assert norm.running_var is not None
            scale = norm.weight * (norm.running_var + norm.eps).rsqrt()
            bias = (bias - norm.running_mean) * scale + norm.bias
            weight, norm = weight * scale.view(-1, 1, 1, 1), None
        pools = any(isinstance(layer, nn.MaxPool2d) for layer in layers)
        return cls(weight, bias, norm, convolution.padding == "same", pools, layers[-1])


def is_fast(layers: nn.Sequential, x: Tensor) -> bool:
    """Whether layers of an encoder can be computed so, or only as they are."""
    known = (nn.BatchNorm2d, nn.Identity)
    return (
        x.device.type == "cpu"
        and not (layers.training and len(x) == 1)
        and all(type(part[1]) in known for part in _parts(layers))
    )


def encode(layers: nn.Sequential, x: Tensor, rows: tuple[int, int] | None = None) -> Tensor:
    """Return the flat latents of a batch of images, channels last in memory.

    `rows` are first and last plus one of those in which images differ; all others must be the
    same in the whole batch.
    """
    if x.requires_grad:  # what stands for others would get their gradient too
        rows = None
    elif x.shape[1] > 1 and torch.equal(x[:, 1:], x[:, :1].expand_as(x[:, 1:])):
        x = x[:, :1]
    first, *others = _parts(layers)
    stages = [Stage.of(first, is_grey=x.shape[1] == 1)]
    stages += [Stage.of(part, is_grey=False) for part in others]
    alone = not torch.is_grad_enabled() and all(stage.norm is None for stage in stages)
    parts = torch.split(x, CACHED_IMAGES) if alone else (x,)
    return torch.cat([_encoded(stages, _Bands.cut(part, rows)) for part in parts])


@dataclass(frozen=True)
class _Bands:
    """Images cut into three bands of rows; those above and below have one image for all.

    Any band may have no rows.
    """

    above: Tensor
    middle: Tensor
    below: Tensor

    @classmethod
    def cut(cls, x: Tensor, rows: tuple[int, int] | None) -> _Bands:
        first, stop = rows or (0, x.shape[2])
        return cls(x[:1, :, :first], x[:, :, first:stop], x[:1, :, stop:])

    def __iter__(self) -> Iterator[Tensor]:
        yield from (self.above, self.middle, self.below)

    def between(self, first: int, stop: int) -> Tensor:
        """Return some rows of every image, the middle band among them."""
        images = len(self.middle)
        top = self.above.shape[2]
        above = self.above[:, :, first:].expand(images, -1, -1, -1)
        below = self.below[:, :, : stop - top - self.middle.shape[2]].expand(images, -1, -1, -1)
        parts = [band for band in (above, self.middle, below) if band.shape[2]]
        return channels_last(parts[0] if len(parts) == 1 else torch.cat(parts, dim=2))

    def padded(self, before: int, after: int) -> _Bands:
        return _Bands(
            pad(self.above, (before, after, before, 0)),
            pad(self.middle, (before, after)),
            pad(self.below, (before, after, 0, after)),
        )


def _encoded(stages: list[Stage], bands: _Bands) -> Tensor:
    for stage in stages:
        bands = _convolved(stage, bands)
        if stage.norm is None:
            made = [_pooled(band) if stage.pools else band for band in bands]
        else:
            made = _normalised(stage.norm, bands, stage.pools)
        bands = _Bands(*(stage.activation(band) for band in made))
    height = sum(band.shape[2] for band in bands)
    return bands.between(0, height).flatten(1)


def _convolved(stage: Stage, bands: _Bands) -> _Bands:
    """Convolve every band; the middle one grows by the rows that its neighbourhood reaches."""
    reach = stage.weight.shape[2] - 1
    if stage.is_padded:
        bands = bands.padded(reach // 2, reach - reach // 2)
    top, middle, bottom = (band.shape[2] for band in bands)
    height = top + middle + bottom - reach
    first, stop = max(top - reach, 0), min(top + middle, height)
    if stage.pools:  # no window may lie in two bands
        first, stop = first - first % 2, min(stop + stop % 2, height)
    return _Bands(
        _convolution(stage, channels_last(bands.above[:, :, : first + reach])),
        _convolution(stage, bands.between(first, stop + reach)),
        _convolution(stage, channels_last(bands.below[:, :, max(stop - top - middle, 0) :])),
    )


def _convolution(stage: Stage, x: Tensor) -> Tensor:
    """Convolve without padding; no rows where the kernel does not fit."""
    weight, size = stage.weight, stage.weight.shape[2]
    if x.shape[2] < size:
        return x.new_empty(len(x), len(weight), 0, x.shape[3] - size + 1)
    if x.shape[2:] == weight.shape[2:]:
        # One output pixel is a matrix product, which is faster. Both views keep their memory.
        flat = linear(_channels_last_rows(x), _channels_last_rows(weight), stage.bias)
        return flat[:, :, None, None]
    return conv2d(x, weight, stage.bias)


def channels_last(x: Tensor) -> Tensor:
    """Return `x` with channels last in memory, and with strides that say so.

    One channel lies the same way in both layouts; its strides decide which one a convolution
    takes its result to be in.
    """
    x = x.contiguous(memory_format=torch.channels_last)
    _, channels, height, width = x.shape
    strides = (channels * height * width, 1, channels * width, channels)
    return x if x.stride() == strides else x.as_strided(x.shape, strides)


def _channels_last_rows(x: Tensor) -> Tensor:
    return x.permute(0, 2, 3, 1).flatten(1)


def _pooled(x: Tensor) -> Tensor:
    if x.shape[2] < 2:
        return x[:, :, :0, : x.shape[3] // 2]
    return max_pool2d(x, 2)


def _normalised(norm: nn.BatchNorm2d, bands: _Bands, pools: bool) -> list[Tensor]:
    """Normalise by the statistics of the whole batch, after pooling; track the statistics."""
    images = len(bands.middle)
    counts, means, variances = [], [], []
    for band, times in zip(bands, (images, 1, images), strict=True):
        if band.shape[2]:
            mean, variance = _moments(band)
            counts.append(times * band.numel() // band.shape[1])
            means.append(mean)
            variances.append(variance)
    total = sum(counts)
    share = torch.tensor(counts, dtype=bands.middle.dtype)[:, None] / total
    mean = (share * torch.stack(means)).sum(0)
    spread = torch.stack(variances) + (torch.stack(means) - mean).square()
    variance = (share * spread).sum(0)
    sign = _sign(norm.weight)
    _track(norm, mean.detach() * sign, variance.detach() * total / (total - 1))
    scale = norm.weight * sign * (variance + norm.eps).rsqrt()
    shift = norm.bias - mean * scale
    made = [_pooled(band) if pools else band for band in bands]
    return [torch.addcmul(shift[:, None, None], x, scale[:, None, None]) for x in made]


@torch.no_grad()
def _track(norm: nn.BatchNorm2d, mean: Tensor, variance: Tensor) -> None:
    """Move running statistics as the layer itself would; no momentum means a plain average."""
    assert norm.num_batches_tracked is not None
    assert norm.running_mean is not None
    assert norm.running_var is not None
    norm.num_batches_tracked.add_(1)
    momentum = norm.momentum
    if momentum is None:
        momentum = 1.0 / float(norm.num_batches_tracked)
    norm.running_mean.lerp_(mean, momentum)
    norm.running_var.lerp_(variance, momentum)


class _Moments(torch.autograd.Function):
    """Mean and variance of each channel; PyTorch's own reduction is slow in this layout."""

    @staticmethod
    def forward(context: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        mean, variance = torch.batch_norm_update_stats(x, None, None, 0.0)
        context.save_for_backward(x, mean)
        return mean, variance

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> Tensor:
        x, mean = context.saved_tensors
        of_mean, of_variance = (g * (x.shape[1] / x.numel()) for g in gradients)
        slope = 2.0 * of_variance
        offset = of_mean - slope * mean
        return torch.addcmul(offset[:, None, None], x, slope[:, None, None])


def _moments(x: Tensor) -> tuple[Tensor, Tensor]:
    mean, variance = _Moments.apply(x)  # type: ignore[no-untyped-call]
    return mean, variance


def _sign(scale: Tensor) -> Tensor:
    return 1.0 - 2.0 * (scale.detach() < 0).to(scale.dtype)


def _parts(layers: nn.Sequential) -> Iterator[list[nn.Module]]:
    """Cut the layers before every convolution."""
    part: list[nn.Module] = []
    for layer in layers:
        if isinstance(layer, nn.Conv2d) and part:
            yield part
            part = []
        part.append(layer)
    yield part
