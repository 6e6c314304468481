"""Augmentations of a domain's batches: plain callables from a batch to a batch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from scipy.ndimage import distance_transform_edt
from scipy.stats import ks_2samp
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

Augmentation = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Pixels:
    """What an augmentation of images has to know of the problem's images."""

    shown: tuple[int, int] | None = None
    """First row and last plus one that were measured; None where all were."""
    lowest: float = -1.0
    highest: float = 1.0
    looks_differ: bool = False
    """Whether the two domains differ in how bright their pixels are (:func:`looks_differ`)."""
    is_uniform: bool = True
    """Whether the source's images differ less in brightness than the target's."""
    nearest: Tensor | None = field(default=None, compare=False)
    """Where single pixels were not measured: for each pixel the nearest one that was."""


@dataclass(frozen=True)
class AffineImages:
    """Random zoom, shift, shear and rotation, one draw per image."""

    zoom: tuple[float, float] = (0.6, 1.1)
    """Smallest and largest size of the content, 1 leaving it as it is."""
    shift: float = 0.15
    """Largest displacement, as a fraction of half the image."""
    shear: float = 0.2
    rotation: float = 10.0
    """In degrees, at most."""
    shown: tuple[int, int] | None = None
    """First row and last plus one that were measured: what was not never enters. None is all."""

    @classmethod
    def wide(cls, strength: float = 1.0, shown: tuple[int, int] | None = None) -> AffineImages:
        """Return zoom by e^±0.4, shift by an eighth, shear 0.3 and 15 degrees, times a strength."""
        zoom = math.exp(-0.4 * strength), math.exp(0.4 * strength)
        return cls(zoom, 0.125 * strength, 0.3 * strength, 15.0 * strength, shown)

    def __call__(self, images: Tensor) -> Tensor:
        """Return transformed images; what enters at the border repeats the edge."""

        def uniform(low: float, high: float) -> Tensor:
            return torch.empty(len(images), device=images.device).uniform_(low, high)

        angle = uniform(-self.rotation, self.rotation) * (math.pi / 180.0)
        # The grid maps outputs to inputs, so a content zoomed by s is sampled at 1/s.
        scale = torch.exp(-uniform(*map(math.log, self.zoom)))
        shear = uniform(-self.shear, self.shear)
        cosine, sine = torch.cos(angle) * scale, torch.sin(angle) * scale
        across, down = uniform(-self.shift, self.shift), uniform(-self.shift, self.shift)
        top = torch.stack([cosine, shear * cosine - sine, across], dim=1)
        bottom = torch.stack([sine, shear * sine + cosine, down], dim=1)
        grid = affine_grid(torch.stack([top, bottom], dim=1), list(images.shape), False)
        if self.shown is not None:
            first, last = self.shown[0], self.shown[1] - 1
            height = images.shape[2]
            grid[..., 1].clamp_((2 * first + 1) / height - 1, (2 * last + 1) / height - 1)
        return grid_sample(images, grid, padding_mode="border", align_corners=False)


@dataclass(frozen=True)
class MaskNoise:
    """Replace some cells of a table by their column's mean in the batch."""

    probability: float = 0.1

    def __call__(self, rows: Tensor) -> Tensor:
        mask = torch.rand(rows.shape, device=rows.device) < self.probability
        return torch.where(mask, rows.mean(-2, keepdim=True).expand_as(rows), rows)


@dataclass(frozen=True)
class Appearance:
    r"""Random contrast, inversion and brightness, one draw per image; brightness per channel.

    With values centred on their range and scaled to [-1, 1], an image becomes
    :math:`\pm a x + b`, with a contrast :math:`a \le 1` and a brightness
    :math:`|b| \le 1 - a`: it never leaves the range. `contrast` is the smallest a, `inversion`
    the probability of the minus sign.

    Examples
    --------
    >>> Appearance(contrast=1.0, inversion=1.0)(torch.tensor([[[[-1.0, 0.5]]]])).tolist()
    [[[[1.0, -0.5]]]]
    """

    contrast: float = 0.3
    inversion: float = 0.5
    lowest: float = -1.0
    highest: float = 1.0

    def __call__(self, images: Tensor) -> Tensor:
        rows, channels = images.shape[:2]

        def uniform(low: float, high: float, columns: int) -> Tensor:
            return torch.empty(rows, columns, 1, 1, device=images.device).uniform_(low, high)

        middle, half = (self.highest + self.lowest) / 2, (self.highest - self.lowest) / 2
        contrast = uniform(self.contrast, 1.0, 1)
        sign = torch.where(uniform(0.0, 1.0, 1) < self.inversion, -1.0, 1.0)
        brightness = uniform(-1.0, 1.0, channels) * (1.0 - contrast)
        return middle + sign * contrast * (images - middle) + half * brightness


def looks_differ(source: Tensor, target: Tensor, threshold: float = 0.5) -> bool:
    """Tell whether pixels of the two domains have clearly different values.

    They do where the Kolmogorov-Smirnov distance of the values exceeds the threshold: some
    brightness lies above half of the pixels of one domain more than of the other. Thin and thick
    strokes on the same ground stay below it; strokes on black and strokes on photos do not.
    """
    found = ks_2samp(source.flatten().cpu(), target.flatten().cpu(), method="asymp")
    return bool(found.statistic > threshold)


def has_colours(images: Tensor, threshold: float = 0.02) -> bool:
    """Tell whether channels differ: by more than a share of the values' range, on the average.

    Examples
    --------
    >>> grey = torch.rand(5, 1, 4, 4).expand(-1, 3, -1, -1)
    >>> has_colours(grey), has_colours(grey * torch.tensor([1.0, 0.5, 0.2])[:, None, None])
    (False, True)
    """
    lowest, highest = images.aminmax()
    apart = images.amax(1) - images.amin(1)
    return float(apart.mean()) > threshold * float(highest - lowest)


def is_more_uniform(images: Tensor, others: Tensor) -> bool:
    """Tell whether the mean brightness varies less among images than among others."""
    spread = [rows.flatten(1).double().mean(1).std() for rows in (images, others)]
    return bool(spread[0] < spread[1])


def nearest_measured(missing: npt.NDArray[np.bool_]) -> Tensor:
    """Return the flat position of the measured pixel that is nearest to each pixel of an image.

    Examples
    --------
    >>> nearest_measured(np.array([[False, True, True], [False, False, True]])).tolist()
    [[0, 0, 4], [3, 4, 4]]
    """
    places = distance_transform_edt(missing, return_distances=False, return_indices=True)
    return torch.from_numpy(np.ravel_multi_index(tuple(places), missing.shape))


def _extended(images: Tensor, nearest: Tensor) -> Tensor:
    """Continue what was measured into the gaps, so that no gap moves into it."""
    return images.flatten(2)[:, :, nearest.flatten().to(images.device)].view(images.shape)


@dataclass(frozen=True)
class _Both:
    first: Augmentation
    second: Augmentation

    def __call__(self, images: Tensor) -> Tensor:
        return self.second(self.first(images))


AUGMENTATIONS: dict[str, Callable[[Pixels], Augmentation]] = {
    "affine": lambda pixels: AffineImages(shown=pixels.shown),
    "wide": lambda pixels: AffineImages.wide(1.0, pixels.shown),
    "mild": lambda pixels: AffineImages.wide(0.5, pixels.shown),
    "light": lambda pixels: Appearance(0.3, 0.5, pixels.lowest, pixels.highest),
    # Without inversion: statistics of the target must stay those of the rows to be predicted.
    "mild-light": lambda pixels: Appearance(0.65, 0.0, pixels.lowest, pixels.highest),
    "wide+light": lambda p: _Both(AUGMENTATIONS["wide"](p), AUGMENTATIONS["light"](p)),
    "mild+light": lambda p: _Both(AUGMENTATIONS["mild"](p), AUGMENTATIONS["mild-light"](p)),
    "mask": lambda pixels: MaskNoise(),
}


def make_augmentation(
    name: str, *, of_target: bool = False, pixels: Pixels | None = None
) -> Augmentation | None:
    """Return a built-in augmentation by name, or None for ``none``.

    ``auto`` is for images: ``wide``; where the domains look different, ``wide+light`` on the
    source and ``mild+light`` on the target. A source that has seen more kinds of light than the
    target is left in its own: more would only make it harder to learn.
    """
    if name == "none":
        return None
    known = pixels or Pixels()
    if name == "auto":
        name = "wide"
        if known.looks_differ and known.is_uniform:
            name = "mild+light" if of_target else "wide+light"
    made = AUGMENTATIONS[name](known)
    if known.nearest is None:
        return made
    return _Both(partial(_extended, nearest=known.nearest), made)
