"""Folders of tiny made-up images: bright ones and dark ones, in files of many kinds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

TINY = (
    "images.channels=[2,2]", "images.kernel_size=3", "generator.widths=[4]",
    "networks.classifier_widths=[4]", "networks.critic_widths=[4]", "training.joint_epochs=1",
)  # fmt: skip
"""Settings of networks that train in a moment."""


def save(path: Path, *, level: int = 100, size: tuple[int, int] = (9, 8), mode: str = "L") -> Path:
    """Write an image of one colour with noise; its suffix says the format."""
    random = np.random.default_rng(level)
    channels = {"L": (), "RGB": (3,), "RGBA": (4,)}[mode]
    pixels = level + random.integers(0, 20, (size[1], size[0], *channels))
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels.astype(np.uint8)).save(path)
    return path


def write_folders(place: Path) -> tuple[Path, Path]:
    """Write a source of two classes and a target of a folder in a folder; return both."""
    source, target = place / "source", place / "target"
    for number in range(8):
        save(source / "a dark one" / f"{number}.png", level=20 + number)
        save(source / "ein helles, größeres" / f"b {number}.PNG", level=180 + number)
    for number in range(6):
        save(target / f"{number} é.png", level=30 + number, size=(12, 10))
        save(target / "below" / "deep" / f"{number}.jpeg", level=190 + number, mode="RGB")
    return source, target
