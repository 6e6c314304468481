"""A data folder with made-up files in the real formats, for pages that read one."""

from __future__ import annotations

import gzip
from pathlib import Path

import h5py
import numpy as np

from halfseen_bench.data import heart

HOSPITALS = {
    "cleveland": (),
    "hungarian": ("slope", "ca", "thal"),
    "switzerland": ("chol", "fbs", "ca"),
    "va": ("slope", "ca", "thal"),
}


def write_data_folder(root: Path) -> None:
    """Write small MNIST, USPS, Criteo and heart files."""
    random = np.random.default_rng(0)
    for part, rows in (("train", 40), ("t10k", 20)):
        images = random.integers(0, 256, (rows, 28, 28)).astype(np.uint8)
        _write(root / f"mnist/{part}-images-idx3-ubyte", _idx(images))
        labels = np.arange(rows).astype(np.uint8) % 10
        _write(root / f"mnist/{part}-labels-idx1-ubyte", _idx(labels))
    (root / "usps").mkdir()
    with h5py.File(root / "usps/usps.h5", "w") as file:
        for part, rows in (("train", 40), ("test", 20)):
            file[f"{part}/data"] = random.random((rows, 256)).astype(np.float32)
            file[f"{part}/target"] = np.arange(rows) % 10
    _write(root / "criteo/train.txt.gz", gzip.compress(_criteo(random).encode()))
    for name, lacking in HOSPITALS.items():
        _write(root / f"heart/processed.{name}.data", _patients(random, 60, lacking).encode())


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _idx(array: np.ndarray) -> bytes:
    head = [0x800 + array.ndim, *array.shape]
    return b"".join(number.to_bytes(4, "big") for number in head) + array.tobytes()


def _criteo(random: np.random.Generator) -> str:
    rows = []
    for row in range(60):
        counts = [str(number) for number in random.integers(0, 50, 13)]
        codes = [f"{number:08x}" for number in random.integers(0, 99, 26)]
        if row % 3 == 0:
            counts[4], codes[16] = "", "2005abd1"
        rows.append("\t".join([str(int(row % 4 == 0)), *counts, *codes]))
    return "\n".join(rows) + "\n"


def _patients(random: np.random.Generator, rows: int, lacking: tuple[str, ...]) -> str:
    lines = []
    for row in range(rows):
        values = {
            name: f"{random.integers(50, 200)}" if codes is None else str(random.choice(codes))
            for name, codes in heart.CODES.items()
        }
        values |= dict.fromkeys(lacking, "?")
        lines.append(",".join([*values.values(), str(row % 2)]))
    return "\n".join(lines) + "\n"
