"""Handwritten and photographed digits: MNIST, USPS, SVHN and MNIST-M, in any pair.

Images become 32x32 with values in [-1, 1]; part of the rows is missing on the target.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch

from halfseen.blocks import Blocks
from halfseen_bench.data.digit_files import Images, Labels, Split, read_mnist, read_svhn, read_usps
from halfseen_bench.data.mnistm import read_mnistm
from halfseen_bench.data.official import OfficialFile
from halfseen_bench.data.pairs import Card, DomainPair, Inputs, Labelled, Sealed
from halfseen_bench.data.splitting import check_choice, check_domains, subset

__all__ = ["DOMAINS", "FILES", "Framing", "load_pair", "to_canvas"]

DOMAINS = ("mnist", "usps", "svhn", "mnistm")
FILES = (
    OfficialFile(
        "mnist/train-images-idx3-ubyte.gz",
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    ),
    OfficialFile(
        "mnist/train-labels-idx1-ubyte.gz",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    ),
    OfficialFile(
        "mnist/t10k-images-idx3-ubyte.gz",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    ),
    OfficialFile(
        "mnist/t10k-labels-idx1-ubyte.gz",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
    OfficialFile(
        "usps/usps.h5",
        "734f88c541104a956d88be2c95d03b4a463ffd74ccc2ba9c80841fb98e3fcb36",
        instead=("usps/usps.bz2", "usps/usps.t.bz2"),
    ),
    OfficialFile("svhn/train_32x32.mat"),
    OfficialFile("svhn/test_32x32.mat"),
    OfficialFile("bsds500/train"),
)

Framing = Literal["as_is", "cropped"]
"""Whether MNIST keeps its margin, or is cropped to its middle 20x20 as USPS is framed."""

_SIZE = 32
_COLOURED = ("svhn", "mnistm")
_CENTRED = ("mnist", "mnistm")
_ORIGIN = {
    "mnist": "MNIST, LeCun and others (1998), idx files",
    "usps": "USPS, Hull (1994), official split of 7,291 + 2,007, HDF5 or libsvm",
    "svhn": "SVHN cropped digits, Netzer and others (2011), ufldl.stanford.edu/housenumbers",
    "mnistm": "MNIST-M, made from MNIST and BSDS500 photos after Ganin and Lempitsky (2015)",
}
_LICENCE = {
    "mnist": "MNIST CC BY-SA 3.0",
    "usps": "USPS: none stated, research use",
    "svhn": "SVHN non-commercial use",
    "mnistm": "MNIST-M as MNIST, and as BSDS500: non-commercial research and education",
}


def load_pair(
    root: Path,
    source: str,
    target: str,
    *,
    fraction: float = 0.5,
    side: Literal["top", "bottom"] = "bottom",
    fill: float = 0.0,
    framing: Framing = "as_is",
    max_train: int | None = None,
    max_test: int | None = None,
    seed: int = 0,
    cache: Path | None = None,
) -> DomainPair:
    """Read two digit domains as one problem.

    Parameters
    ----------
    root
        The data folder; the files lie under it as :data:`FILES` names them.
    source, target
        Two of :data:`DOMAINS`.
    fraction, side, fill
        Which share of the rows the target lacks, at which side, and the value put there: 0 is
        mid-grey, -1 the black of MNIST's background.
    framing
        ``cropped`` cuts MNIST (and MNIST-M) to the middle 20x20 before it is resized.
    max_train, max_test
        At most so many rows of each domain, a seeded choice: for quick runs.
    seed
        Fixes that choice, and MNIST-M's photo patches.
    cache
        Where MNIST-M is kept once made; the user cache directory by default.

    Notes
    -----
    A pair of grey domains keeps one channel. A grey domain beside a coloured one shows three,
    which share their memory: such an array is read-only.
    """
    check_domains(source, target, DOMAINS)
    check_choice("framing", framing, get_args(Framing))
    channels = 3 if source in _COLOURED or target in _COLOURED else 1
    shape = (channels, _SIZE, _SIZE)
    blocks = Blocks.rows(shape, fraction=fraction, side=side, fill=fill)

    def read(domain: str, split: Split) -> tuple[Inputs, Labels]:
        images, labels = _read(root, domain, split, seed, cache)
        rows = subset(len(labels), max_train if split == "train" else max_test, seed)
        images, labels = images[rows], labels[rows]
        if framing == "cropped" and domain in _CENTRED:
            images = images[..., 4:24, 4:24]
        return to_canvas(images), labels

    parts = {(d, s): read(d, s) for d in (source, target) for s in get_args(Split)}
    counts = {f"{domain} {split}": len(labels) for (domain, split), (_, labels) in parts.items()}
    source_parts = [
        Labelled(_repeated(images, channels), labels)
        for images, labels in (parts[source, "train"], parts[source, "test"])
    ]
    (train, train_labels), (test, test_labels) = parts[target, "train"], parts[target, "test"]
    hidden = [_repeated(blocks.hide(images), channels) for images in (train, test)]
    return DomainPair(
        name=f"{source}->{target}",
        source_train=source_parts[0],
        source_test=source_parts[1],
        target_train=hidden[0],
        target_test=hidden[1],
        target_test_labels=Sealed(test_labels),
        blocks=blocks,
        classes=tuple("0123456789"),
        card=_card(source, target, blocks, counts, framing, seed),
        complete_target=Sealed((_repeated(train, channels), _repeated(test, channels))),
        target_train_labels=Sealed(train_labels),
    )


def to_canvas(images: Images, size: int = _SIZE) -> Inputs:
    """Return images resized to `size` (bilinear) with values in [-1, 1].

    Bytes are taken to lie in 0..255, real numbers in 0..1.

    Examples
    --------
    >>> to_canvas(np.array([[[[0, 255]]]], dtype=np.uint8), size=2)[0, 0].tolist()
    [[-1.0, 1.0], [-1.0, 1.0]]
    """
    half = 127.5 if images.dtype == np.uint8 else 0.5
    canvas = np.empty((*images.shape[:2], size, size), dtype=np.float32)
    for first in range(0, len(images), 2048):  # the intermediate copies stay small
        chunk = torch.tensor(images[first : first + 2048], dtype=torch.float32)
        if chunk.shape[-2:] != (size, size):
            chunk = torch.nn.functional.interpolate(chunk, size=(size, size), mode="bilinear")
        canvas[first : first + 2048] = chunk.div_(half).sub_(1.0).numpy()
    return canvas


def _read(
    root: Path, domain: str, split: Split, seed: int, cache: Path | None
) -> tuple[Images, Labels]:
    if domain == "mnistm":
        return read_mnistm(root, split, seed=seed, cache=cache)
    return {"mnist": read_mnist, "usps": read_usps, "svhn": read_svhn}[domain](root, split)


def _repeated(images: Inputs, channels: int) -> Inputs:
    """Show a grey image in every channel without copying it."""
    if images.shape[1] == channels:
        return images
    return np.broadcast_to(images, (len(images), channels, *images.shape[2:]))


def _card(
    source: str,
    target: str,
    blocks: Blocks,
    counts: dict[str, int],
    framing: Framing,
    seed: int,
) -> Card:
    rows, grey = len(blocks.missing), blocks.shape[0] == 1
    side = "top" if blocks.missing[0] == 0 else "bottom"
    notes = [
        f"32x32, values in [-1, 1], {'one channel' if grey else 'three channels'}; grey images "
        "are repeated to three channels beside a coloured domain."
    ]
    if source in _CENTRED or target in _CENTRED:
        notes.append(
            "MNIST is cropped to its middle 20x20 before it is resized, because USPS digits fill "
            "their frame."
            if framing == "cropped"
            else "MNIST keeps its margin of 4 pixels, while USPS digits fill their frame: part of "
            "the shift is size (framing='cropped' takes it away)."
        )
    if "mnistm" in (source, target):
        notes.append(
            "MNIST-M: absolute difference of each digit and a random photo patch, seed "
            f"{seed}; not the authors' own draw."
        )
    if "usps" in (source, target):
        notes.append("The paper states 7,438 + 1,860 for USPS; this is the official split.")
    return Card(
        what=f"Digits 0 to 9, learned on {source}, predicted on {target} with rows missing.",
        origin="; ".join(_ORIGIN[d] for d in (source, target)),
        licence="; ".join(dict.fromkeys(_LICENCE[d] for d in (source, target))),
        counts=counts,
        missing=f"The {side} {rows} of {blocks.length} rows of every {target} image, filled "
        f"with {blocks.fill:g}.",
        notes=tuple(notes),
    )
