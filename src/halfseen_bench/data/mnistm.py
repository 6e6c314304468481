"""MNIST-M: every MNIST digit laid over a random patch of a photo (Ganin and Lempitsky, 2015).

The published recipe is the absolute difference of the digit and the patch, channel by channel,
at 28x28. The photos are BSDS500's.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from halfseen.errors import InputError
from halfseen_bench.data.digit_files import Labels, Split, read_mnist
from halfseen_bench.data.official import locate

Bytes = npt.NDArray[np.uint8]
_SUFFIXES = (".jpg", ".jpeg", ".png")


def compose(digits: Bytes, photos: Sequence[Bytes], seed: Sequence[int]) -> Bytes:
    """Return ``|patch - digit|`` for digits (n, height, width) and photos (H, W, 3).

    Photo and position are drawn uniformly for each digit.

    Examples
    --------
    >>> grey = np.full((40, 40, 3), 100, dtype=np.uint8)
    >>> digit = np.array([[[0, 255]]], dtype=np.uint8)
    >>> compose(digit, [grey], seed=[0])[0, 0].tolist()
    [[100, 155]]
    """
    count, height, width = digits.shape
    generator = np.random.default_rng(list(seed))
    chosen = generator.integers(len(photos), size=count)
    position = generator.random((count, 2))
    made = np.empty((count, 3, height, width), dtype=np.uint8)
    for index, photo in enumerate(photos):
        rows = np.flatnonzero(chosen == index)
        patches = np.lib.stride_tricks.sliding_window_view(photo, (height, width), axis=(0, 1))
        top, left = (position[rows] * patches.shape[:2]).astype(np.int64).T
        difference = patches[top, left].astype(np.int16) - digits[rows, None]
        made[rows] = np.abs(difference).astype(np.uint8)
    return made


def read_mnistm(root: Path, split: Split, *, seed: int) -> tuple[Bytes, Labels]:
    """Return MNIST-M's images (28x28, colour) and labels."""
    digits, labels = read_mnist(root, split)
    folder = locate(root, "bsds500/train")
    photos = []
    for path in sorted(p for p in folder.iterdir() if p.suffix.lower() in _SUFFIXES):
        try:
            photo = np.asarray(Image.open(path).convert("RGB"), dtype=np.uint8)
        except OSError as error:
            raise InputError(f"The photo {path} cannot be read: {error}.") from error
        if min(photo.shape[:2]) < min(digits.shape[2:]):
            raise InputError(
                f"The photo {path} is {photo.shape[1]}x{photo.shape[0]}, smaller than a digit."
            )
        photos.append(photo)
    if not photos:
        raise InputError(
            f"The photo folder {folder} holds nothing readable; "
            "put BSDS500's training photos (.jpg) there."
        )
    return compose(digits[:, 0].astype(np.uint8), photos, (seed, split == "test")), labels
