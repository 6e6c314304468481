"""MNIST-M: every MNIST digit laid over a random patch of a photo (Ganin and Lempitsky, 2015).

The published recipe is the absolute difference of the digit and the patch, channel by channel,
at 28x28. The photos are BSDS500's.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from halfseen.atomic_files import atomic_write
from halfseen.errors import InputError
from halfseen_bench.data.digit_files import Labels, Split, read_mnist
from halfseen_bench.data.official import cache_folder, content, locate, optional_module

__all__ = ["compose", "default_cache", "read_mnistm", "read_photos"]

Bytes = npt.NDArray[np.uint8]
_SUFFIXES = (".jpg", ".jpeg", ".png")
_RECIPE = b"absolute difference, 28x28, 1"  # in the cache's name: a new recipe is a new file


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


def read_mnistm(root: Path, split: Split, *, seed: int, cache: Path | None) -> tuple[Bytes, Labels]:
    """Return MNIST-M's images (28x28, colour) and labels, made once for a seed and then cached."""
    digits, labels = read_mnist(root, split)
    folder = locate(root, "bsds500/train")
    paths = _photo_paths(folder)
    packed = [content(path) for path in paths]
    digest = hashlib.sha256(_RECIPE + f" {split} {seed}".encode())
    for part in (digits.tobytes(), *packed):
        digest.update(part)
    path = (cache or default_cache()) / f"mnistm-{split}-{digest.hexdigest()[:16]}.npy"
    made = _cached(path, (len(digits), 3, *digits.shape[2:]))
    if made is None:
        photos = _decoded(paths, packed, smallest=digits.shape[2:])
        made = compose(digits[:, 0].astype(np.uint8), photos, (seed, split == "test"))
        with atomic_write(path) as partial, partial.open("wb") as file:
            np.save(file, made, allow_pickle=False)
    return made, labels


def read_photos(root: Path, smallest: tuple[int, int] = (28, 28)) -> list[Bytes]:
    """Return the photos that patches are taken from, each (height, width, 3)."""
    paths = _photo_paths(locate(root, "bsds500/train"))
    return _decoded(paths, [content(path) for path in paths], smallest)


def default_cache() -> Path:
    """Return the folder where made data go unless the caller names another."""
    return cache_folder() / "mnistm"


def _cached(path: Path, shape: tuple[int, ...]) -> Bytes | None:
    """Return what an earlier call wrote; None if it is absent, damaged or something else."""
    try:
        made = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return made if made.shape == shape and made.dtype == np.uint8 else None


def _photo_paths(folder: Path) -> list[Path]:
    paths = sorted(p for p in folder.iterdir() if p.suffix.lower() in _SUFFIXES)
    if not paths:
        raise InputError(
            f"The photo folder {folder} holds nothing readable; "
            "put BSDS500's training photos (.jpg) there."
        )
    return paths


def _decoded(paths: list[Path], packed: list[bytes], smallest: tuple[int, ...]) -> list[Bytes]:
    image = optional_module("PIL.Image", "Making MNIST-M from photos")
    photos = []
    for path, data in zip(paths, packed, strict=True):
        try:
            photo = np.asarray(image.open(io.BytesIO(data)).convert("RGB"), dtype=np.uint8)
        except OSError as error:
            raise InputError(f"The photo {path} cannot be read: {error}.") from error
        if photo.shape[0] < smallest[0] or photo.shape[1] < smallest[1]:
            raise InputError(
                f"The photo {path} is {photo.shape[1]}x{photo.shape[0]}, smaller than a digit."
            )
        photos.append(photo)
    return photos
