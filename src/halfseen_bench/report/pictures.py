"""Small images inside a page, as PNG in a URI."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from halfseen.blocks import Blocks

__all__ = ["displayable", "inlined", "strip"]

ENLARGED = 3
GAP = 2

Colours = npt.NDArray[np.float64]


def displayable(image: npt.NDArray[np.float32], hidden: Blocks | None) -> npt.NDArray[Any]:
    """Bring an image from [-1, 1] to colours, with its missing rows hatched grey."""
    colours = np.clip((image.transpose(1, 2, 0) + 1) / 2, 0, 1)
    if colours.shape[2] == 1:
        colours = np.repeat(colours, 3, axis=2)
    return colours if hidden is None else _hatched(colours, np.array(hidden.missing))


def strip(
    images: Sequence[npt.NDArray[np.uint8]],
    hidden: Sequence[bool],
    missing: npt.NDArray[np.int64],
) -> str:
    """Return images of one height side by side as a URI; those `hidden` are hatched where missing.

    Examples
    --------
    >>> image = np.zeros((3, 4, 4), np.uint8)
    >>> strip([image, image], [False, True], np.array([2, 3]))[:22]
    'data:image/png;base64,'
    """
    tiles: list[npt.NDArray[Any]] = []
    for image, is_hidden in zip(images, hidden, strict=True):
        colours = image.transpose(1, 2, 0).astype(np.float64) / 255
        if colours.shape[2] == 1:
            colours = np.repeat(colours, 3, axis=2)
        if is_hidden:
            colours = _hatched(colours, missing)
        large = colours.repeat(ENLARGED, axis=0).repeat(ENLARGED, axis=1)
        solid = np.dstack([large, np.ones(large.shape[:2])])
        tiles += [solid, np.zeros((len(solid), GAP * ENLARGED, 4))]
    row = np.hstack(tiles[:-1])
    buffer = io.BytesIO()
    Image.fromarray((row * 255).round().astype(np.uint8)).save(buffer, "PNG", optimize=True)
    return inlined(buffer.getvalue())


def inlined(png: bytes) -> str:
    """Return a picture as a URI that holds it."""
    return "data:image/png;base64," + base64.b64encode(png).decode()


def _hatched(colours: npt.NDArray[Any], rows: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    stripes = (rows[:, None] + np.arange(colours.shape[1])) % 4 < 1
    hatched = colours.copy()
    hatched[rows] = np.where(stripes[..., None], 0.72, 0.86)
    return hatched
