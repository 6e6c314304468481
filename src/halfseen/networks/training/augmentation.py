"""Augmentations of source batches: plain callables from a batch to a batch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from halfseen.errors import OptionError

__all__ = ["AUGMENTATIONS", "AffineImages", "Augmentation", "MaskNoise", "SwapNoise", "named"]

Augmentation = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class AffineImages:
    """Random zoom, shift, shear and rotation, one draw per image.

    Parameters
    ----------
    zoom
        Smallest and largest size of the content, 1 leaving it as it is.
    shift
        Largest displacement, as a fraction of half the image.
    shear, rotation
        Largest shear, and largest rotation in degrees.

    Examples
    --------
    >>> AffineImages()(torch.zeros(4, 1, 8, 8)).shape
    torch.Size([4, 1, 8, 8])
    """

    zoom: tuple[float, float] = (0.6, 1.1)
    shift: float = 0.15
    shear: float = 0.2
    rotation: float = 10.0

    def __call__(self, images: Tensor) -> Tensor:
        """Return transformed images; what enters at the border repeats the edge."""
        rows = len(images)

        def uniform(low: float, high: float) -> Tensor:
            return torch.empty(rows, device=images.device).uniform_(low, high)

        angle = uniform(-self.rotation, self.rotation) * (math.pi / 180.0)
        # The grid maps outputs to inputs, so a content zoomed by s is sampled at 1/s.
        scale = 1.0 / uniform(*self.zoom)
        shear = uniform(-self.shear, self.shear)
        cosine, sine = torch.cos(angle) * scale, torch.sin(angle) * scale
        across, down = uniform(-self.shift, self.shift), uniform(-self.shift, self.shift)
        top = torch.stack([cosine, shear * cosine - sine, across], dim=1)
        bottom = torch.stack([sine, shear * sine + cosine, down], dim=1)
        grid = affine_grid(torch.stack([top, bottom], dim=1), list(images.shape), False)
        return grid_sample(images, grid, padding_mode="border", align_corners=False)


@dataclass(frozen=True)
class SwapNoise:
    """Replace some cells of a table by the same column's value in another row of the batch."""

    probability: float = 0.1

    def __call__(self, rows: Tensor) -> Tensor:
        """Return rows with cells swapped in."""
        other = torch.randint(len(rows), rows.shape, device=rows.device)
        swap = torch.rand(rows.shape, device=rows.device) < self.probability
        return torch.where(swap, rows.gather(0, other), rows)


@dataclass(frozen=True)
class MaskNoise:
    """Replace some cells of a table by their column's mean in the batch."""

    probability: float = 0.1

    def __call__(self, rows: Tensor) -> Tensor:
        """Return rows with cells masked."""
        mask = torch.rand(rows.shape, device=rows.device) < self.probability
        return torch.where(mask, rows.mean(0, keepdim=True).expand_as(rows), rows)


AUGMENTATIONS: dict[str, Callable[[], Augmentation]] = {
    "affine": AffineImages,
    "swap": SwapNoise,
    "mask": MaskNoise,
}


def named(name: str) -> Augmentation | None:
    """Return a built-in augmentation by name, or None for ``none``."""
    if name == "none":
        return None
    if name not in AUGMENTATIONS:
        raise OptionError(
            f"augmentation={name!r} is unknown; choose 'none' or one of {list(AUGMENTATIONS)}, "
            "or give a callable."
        )
    return AUGMENTATIONS[name]()
