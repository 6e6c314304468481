"""Images as the networks see them: which rows are missing, and nothing else to prepare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

import numpy as np
import numpy.typing as npt

from halfseen.blocks import Blocks
from halfseen.errors import InputError
from halfseen.front.frames import Images
from halfseen.front.roles import Missing

__all__ = ["image_blocks", "prepare_images"]

Matrix = npt.NDArray[np.float32]


def image_blocks(
    source: Images, target: Images | None, missing: Missing, *, complete: bool = False
) -> Blocks:
    """Return which pixel rows the target lacks: as named, or those that are empty there.

    Parameters
    ----------
    source, target
        Images of both domains, where there is a target.
    missing
        The block as the user names it; None looks for rows that are NaN in every target image.
    complete
        Whether nothing need be missing (models that a benchmark shows the whole target).
    """
    shape = cast(tuple[int, int, int], source.array.shape[1:])
    if isinstance(missing, Blocks):
        if missing.shape != shape:
            raise InputError(f"The blocks are for rows of shape {missing.shape}, not {shape}.")
        return missing
    if isinstance(missing, str):
        return Blocks.rows(shape, side=cast(Literal["top", "bottom"], missing))
    if missing is not None:
        return Blocks(shape, tuple(int(row) for row in cast(Sequence[int], missing)))
    found: tuple[int, ...] = ()
    if target is not None:
        _check_shape(target, shape)
        empty = np.isnan(target.array).all(axis=(0, 1, 3))
        found = tuple(int(row) for row in np.flatnonzero(empty))
    if not found and not complete:
        raise InputError(
            "No missing block found: the target's images are complete. Name the rows that it "
            "lacks, as in missing='bottom', or ask for model='Adaptation-Full'."
        )
    return Blocks(shape, found)


def prepare_images(images: Images, blocks: Blocks, *, complete: bool) -> Matrix:
    """Return images in single precision, checked, with the missing block hidden unless complete."""
    _check_shape(images, blocks.shape)
    pixels = images.array.astype(np.float32)
    needed = list(range(blocks.length) if complete else blocks.observed)
    bad = ~np.isfinite(pixels[:, :, needed])
    if bad.any():
        row, _, place, _ = (int(index) for index in np.argwhere(bad)[0])
        raise InputError(
            f"Image {row} of {images.where} holds NaN or an infinite value in pixel row "
            f"{needed[place]}; replace it, or name the row in missing=[...] if it was never "
            "measured."
        )
    return pixels if complete or not blocks.missing else blocks.hide(pixels)


def _check_shape(images: Images, shape: tuple[int, ...]) -> None:
    if images.array.shape[1:] != shape:
        raise InputError(
            f"Rows of {images.where} have shape {images.array.shape[1:]}, but {shape} is expected."
        )
