"""Images as the networks see them: which pixels are missing, and nothing else to prepare.

Pictures in files have sizes of their own, and resizing mixes neighbours. Of such a picture every
pixel is hidden that overlaps a missing cell of the (side, side) grid that it is resized to, before
it is resized; and the cells that a hidden pixel is mixed into count as missing too. What is hidden
then reaches no answer, whatever the sizes, and what is shown is alike in source and target.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Literal, cast

import numpy as np
import numpy.typing as npt

from halfseen.arrays import Integers, Matrix
from halfseen.blocks import Blocks
from halfseen.data.column_spec import Missing
from halfseen.data.frames import Images
from halfseen.errors import InputError, capitalized

SIDES = ("top", "bottom", "left", "right")
Mask = npt.NDArray[np.bool_]
Size = tuple[int, int]
"""Width and height, as Pillow has them."""
Scale = Literal["bytes", "unit", "own"]
"""What pixels are: bytes, brought to [-1, 1]; numbers in [-1, 1]; or on a scale of the user's."""
ROUNDING = 1e-6


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
    """Return the blocks of images that lack one side: ``"bottom"``, half of them, or a fraction.

    A row or column that is missing in part is missing.
    """
    name, _, share = side.partition(":")
    try:
        fraction = Fraction(share or "0.5")
    except (ValueError, ZeroDivisionError):
        fraction = Fraction(0)
    if name not in SIDES or not 0 < fraction < 1:
        raise InputError(
            f"missing={side!r} is not understood: name a side ({', '.join(SIDES)}), and the "
            "fraction of the image between 0 and 1 that is missing there, as in 'bottom:0.5'."
        )
    mask = np.zeros(shape[1:], dtype=bool)
    lines = mask if name in ("top", "bottom") else mask.T
    count = math.ceil(fraction * len(lines))
    lines[slice(count) if name in ("top", "left") else slice(len(lines) - count, None)] = True
    return Blocks.pixels(shape, mask)


def hidden_pixels(missing: Mask, size: Size) -> Mask:
    """Return which pixels of a picture overlap a missing cell, as (height, width)."""
    rows, columns = missing.shape
    return _any_in(missing, _overlapped(size[1], rows), _overlapped(size[0], columns))


def cells_of_mask(picture: Mask, side: int) -> Mask:
    """Return which cells of a (side, side) grid overlap a true pixel of a mask of any size."""
    height, width = picture.shape
    return _any_in(picture, _overlapped(side, height), _overlapped(side, width))


def mixed_cells(missing: Mask, sizes: Iterable[Size] = ()) -> Mask:
    """Return the missing cells, and those that a hidden pixel is mixed into by resizing.

    It is so of pictures of the `sizes`, and of all that are not smaller than the grid: reduced
    by any factor, a cell is mixed with those next to it, and with no other.
    """
    rows, columns = missing.shape
    reduced = 2 * columns, 2 * rows
    found = np.zeros_like(missing)
    for width, height in {
        reduced,
        *(
            (reduced[0] if width >= columns else width, reduced[1] if height >= rows else height)
            for width, height in sizes
        ),
    }:
        found |= _any_in(missing, _mixed(height, rows), _mixed(width, columns))
    return found


def _overlapped(parts: int, of: int) -> Integers:
    """Return which of `of` parts of a line each of so many others overlaps: first and last + 1."""
    part = np.arange(parts)
    return np.stack([part * of // parts, -(-(part + 1) * of // parts)], axis=1)


def _mixed(pixels: int, cells: int) -> Integers:
    """Return which cells share pixels with the support of each, where so many pixels are resized.

    As the first and last + 1. The support is that of Pillow's bilinear filter.
    """
    scale = pixels / cells
    reach, centre = max(scale, 1.0), (np.arange(cells) + 0.5) * scale
    first = np.floor(centre - reach + 0.5).clip(0).astype(np.int64)
    last = np.floor(centre + reach + 0.5).clip(None, pixels).astype(np.int64)
    return np.stack([first * cells // pixels, -(-last * cells // pixels)], axis=1)


def _any_in(mask: Mask, rows: Integers, columns: Integers) -> Mask:
    """Return for each span of rows and each of columns whether the mask is true within both."""
    mask = mask.T
    for spans in (columns, rows):
        # Neighbours mostly have the same span, of which a large picture has few.
        different, place = np.unique(spans, axis=0, return_inverse=True)
        found = np.stack([mask[first:last].any(axis=0) for first, last in different])
        mask = found[place.reshape(-1)].T
    return mask.T


def prepare_images(
    images: Images, blocks: Blocks, *, complete: bool, scale: Scale = "own"
) -> Matrix:
    """Return images in single precision, checked, with the missing block hidden unless complete."""
    _check_shape(images, blocks.shape)
    if images.is_bytes and scale != "bytes":
        raise InputError(
            f"{capitalized(images.where)} holds bytes, and the model was fitted on numbers: give "
            "numbers on their scale."
        )
    pixels = images.array.astype(np.float32)
    shown = pixels if complete or not blocks.missing else blocks.hide(pixels)
    bad = ~np.isfinite(shown)
    if bad.any():
        raise InputError(
            f"{_place(images, bad)} holds NaN or an infinite value{_pixel(bad)}; replace it, or "
            "name it in missing=... if it was never measured."
        )
    beyond = np.abs(shown) > 1.0 + ROUNDING
    if scale != "own" and beyond.any():
        raise InputError(
            f"{_place(images, beyond)} holds {shown[beyond][0]:g}{_pixel(beyond)}, and the model "
            "was fitted on numbers from -1 to 1: give those, or bytes from 0 to 255 with "
            "X.astype('uint8') where it was fitted on bytes or files."
        )
    return shown


def _place(images: Images, where: Mask) -> str:
    return f"Image {np.argwhere(where)[0][0]} of {images.where}"


def _pixel(where: Mask) -> str:
    _, _, row, column = np.argwhere(where)[0]
    return f" in pixel row {row}, column {column}"


def _check_shape(images: Images, shape: tuple[int, ...]) -> None:
    if images.array.shape[1:] != shape:
        raise InputError(
            f"Rows of {images.where} have shape {images.array.shape[1:]}, but {shape} is expected."
        )
