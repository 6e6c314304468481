"""Handwritten and photographed digits: MNIST, USPS, SVHN and MNIST-M, in any pair.

Images become 32x32 with values in [-1, 1]; part of the rows is missing on the target.
"""

from __future__ import annotations

from functools import partial
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

DOMAINS = ("mnist", "usps", "svhn", "mnistm")
_MNIST = {
    "train-images-idx3": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
FILES = (
    *(OfficialFile(f"mnist/{stem}-ubyte.gz", sha256) for stem, sha256 in _MNIST.items()),
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
"""Whether MNIST (and MNIST-M) keeps its margin, or is cut to its middle 20x20, as USPS is."""

_SIZE = 32
_COLOURED = ("svhn", "mnistm")
_CENTRED = ("mnist", "mnistm")
_ORIGIN = {
    "mnist": "MNIST, LeCun and others (1998), idx files",
    "usps": "USPS, Hull (1994), official split of 7,291 + 2,007, HDF5 or libsvm",
    "svhn": "SVHN cropped digits, Netzer and others (2011), ufldl.stanford.edu/housenumbers",
    "mnistm": "MNIST-M, made from MNIST and BSDS500 photos after Ganin and Lempitsky (2015), "
    "not the authors' own draw",
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
) -> DomainPair:
    """Read two digit domains as one problem.

    The target lacks a `fraction` of the rows at one `side`; `fill` is put there: 0 is mid-grey, -1
    the black of MNIST's background. `max_train` and `max_test` are at most so many rows of each
    domain, for quick runs; `seed` fixes that choice, and MNIST-M's photo patches.

    A pair of grey domains keeps one channel. A grey domain beside a coloured one shows three,
    which share their memory: such an array is read-only.
    """
    check_domains(source, target, DOMAINS)
    check_choice("framing", framing, get_args(Framing))
    channels = 3 if source in _COLOURED or target in _COLOURED else 1
    shape = (channels, _SIZE, _SIZE)
    blocks = Blocks.rows(shape, fraction=fraction, side=side, fill=fill)

    def read(domain: str, split: Split) -> tuple[Inputs, Labels]:
        readers = {"mnist": read_mnist, "usps": read_usps, "svhn": read_svhn}
        readers["mnistm"] = partial(read_mnistm, seed=seed)
        images, labels = readers[domain](root, split)
        rows = subset(len(labels), max_train if split == "train" else max_test, seed)
        images, labels = images[rows], labels[rows]
        if framing == "cropped" and domain in _CENTRED:
            images = images[..., 4:24, 4:24]
        return to_canvas(images), labels

    parts = {(d, s): read(d, s) for d in (source, target) for s in get_args(Split)}
    counts = {f"{domain} {split}": len(labels) for (domain, split), (_, labels) in parts.items()}

    def shown(images: Inputs) -> Inputs:
        """Show a grey image in every channel without copying it."""
        if images.shape[1] == channels:
            return images
        return np.broadcast_to(images, (len(images), channels, *images.shape[2:]))

    (train, train_labels), (test, test_labels) = parts[target, "train"], parts[target, "test"]
    return DomainPair(
        name=f"{source}->{target}",
        source_train=Labelled(shown(parts[source, "train"][0]), parts[source, "train"][1]),
        source_test=Labelled(shown(parts[source, "test"][0]), parts[source, "test"][1]),
        target_train=shown(blocks.hide(train)),
        target_test=shown(blocks.hide(test)),
        target_test_labels=Sealed(test_labels),
        blocks=blocks,
        classes=tuple("0123456789"),
        card=Card(
            what=f"Digits 0 to 9, learned on {source}, predicted on {target} with rows missing.",
            origin="; ".join(_ORIGIN[d] for d in (source, target)),
            licence="; ".join(dict.fromkeys(_LICENCE[d] for d in (source, target))),
            counts=counts,
            missing=f"The {side} {len(blocks.missing)} of {blocks.length} rows of every {target} "
            f"image, filled with {blocks.fill:g}.",
        ),
        complete_target=Sealed((shown(train), shown(test))),
        target_train_labels=Sealed(train_labels),
    )


def to_canvas(images: Images, size: int = _SIZE) -> Inputs:
    """Return images resized to `size` (bilinear) with values in [-1, 1].

    Bytes are taken to lie in 0..255, real numbers in 0..1.
    """
    half = 127.5 if images.dtype == np.uint8 else 0.5
    canvas = np.empty((*images.shape[:2], size, size), dtype=np.float32)
    for first in range(0, len(images), 2048):  # the intermediate copies stay small
        chunk = torch.tensor(images[first : first + 2048], dtype=torch.float32)
        if chunk.shape[-2:] != (size, size):
            chunk = torch.nn.functional.interpolate(chunk, size=(size, size), mode="bilinear")
        canvas[first : first + 2048] = chunk.div_(half).sub_(1.0).numpy()
    return canvas
