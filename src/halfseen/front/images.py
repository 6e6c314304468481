"""Images as the networks see them: which pixels are missing, and nothing else to prepare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from halfseen.arrays import Matrix
from halfseen.blocks import Blocks
from halfseen.errors import InputError
from halfseen.front.frames import Images
from halfseen.front.roles import Missing

SIDES = ("top", "bottom", "left", "right")


def image_blocks(
    source: Images, target: Images | None, missing: Missing, *, complete: bool = False
) -> Blocks:
    """Return which pixels the target lacks: as named, or those that are NaN in all its images.

    `missing` is a side as in ``"left:0.25"``, a mask of pixels, or rows. Where a benchmark shows
    the `complete` target, nothing need be missing.
    """
    shape = cast(tuple[int, int, int], source.array.shape[1:])
    if isinstance(missing, Blocks):
        if missing.shape != shape:
            raise InputError(f"The blocks are for rows of shape {missing.shape}, not {shape}.")
        return missing
    if isinstance(missing, str):
        return side_blocks(shape, missing)
    if isinstance(missing, np.ndarray) and missing.ndim == 2:
        return Blocks.pixels(shape, missing)
    if missing is not None:
        return Blocks(shape, tuple(int(row) for row in cast(Sequence[int], missing)))
    found = np.zeros(shape[1:], dtype=bool)
    if target is not None:
        _check_shape(target, shape)
        found = np.isnan(target.array).all(axis=(0, 1))
    if not found.any() and not complete:
        raise InputError(
            "No missing block found: the target's images are complete. Name the part that it "
            "lacks, as in missing='bottom', or ask for model='Adaptation-Full'."
        )
    return Blocks.pixels(shape, found)


def side_blocks(shape: tuple[int, int, int], side: str) -> Blocks:
    """Return the blocks of images that lack one side: ``"bottom"``, half of them, or a fraction."""
    name, _, share = side.partition(":")
    try:
        fraction = float(share) if share else 0.5
    except ValueError:
        fraction = 0.0
    if name not in SIDES or not 0.0 < fraction < 1.0:
        raise InputError(
            f"missing={side!r} is not understood: name a side ({', '.join(SIDES)}), and the "
            "fraction of the image between 0 and 1 that is missing there, as in 'bottom:0.5'."
        )
    _, height, width = shape
    is_upright = name in ("top", "bottom")
    rows = Blocks.rows(
        (1, height, width) if is_upright else (1, width, height),
        fraction=fraction,
        side="top" if name in ("top", "left") else "bottom",
    )
    return Blocks.pixels(shape, rows.mask if is_upright else rows.mask.T)


def prepare_images(images: Images, blocks: Blocks, *, complete: bool) -> Matrix:
    """Return images in single precision, checked, with the missing block hidden unless complete."""
    _check_shape(images, blocks.shape)
    pixels = images.array.astype(np.float32)
    shown = pixels if complete or not blocks.missing else blocks.hide(pixels)
    bad = ~np.isfinite(shown)
    if bad.any():
        image, _, row, column = (int(index) for index in np.argwhere(bad)[0])
        raise InputError(
            f"Image {image} of {images.where} holds NaN or an infinite value in pixel row {row}, "
            f"column {column}; replace it, or name it in missing=... if it was never measured."
        )
    return shown


def _check_shape(images: Images, shape: tuple[int, ...]) -> None:
    if images.array.shape[1:] != shape:
        raise InputError(
            f"Rows of {images.where} have shape {images.array.shape[1:]}, but {shape} is expected."
        )
