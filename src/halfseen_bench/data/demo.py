"""The embedded problem: handwritten digits, and the same task blended onto photos.

scikit-learn ships 1,797 real handwritten digits and two photographs, so the demo needs no
download. The source shows the digits on black; the target blends other digits onto patches of
the photos by the MNIST-M recipe, and lacks the lower half of every image.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits, load_sample_images
from torch import from_numpy
from torch.nn.functional import interpolate

from halfseen.blocks import Blocks
from halfseen_bench.data.mnistm import compose
from halfseen_bench.data.pairs import Card, DomainPair, Labelled

SIZE = 16
"""Height and width of the demo's images: twice the resolution of the digits."""

SOURCE_TEST = 150
TARGET_TEST = 300


def demo_pair(seed: int = 0) -> DomainPair:
    """Return the demo's problem; `seed` deals the digits to domains and the photo patches.

    Examples
    --------
    >>> pair = demo_pair()
    >>> pair.source_train.inputs.shape, pair.target_test.shape
    ((674, 3, 16, 16), (300, 3, 16, 16))
    """
    digits = load_digits()
    random = np.random.default_rng(seed)
    order = random.permutation(len(digits.target))
    half = (len(order) - SOURCE_TEST - TARGET_TEST) // 2
    parts = np.split(order, np.cumsum([half + 1, SOURCE_TEST, half]))
    grey = _enlarged(digits.images.astype(np.float32) * (255.0 / 16.0))
    labels = digits.target.astype(np.int64)
    source = Labelled(_scaled(np.repeat(grey[:, None], 3, axis=1)), labels)
    target = Labelled(_scaled(compose(grey, load_sample_images().images, seed=[seed])), labels)
    names = ("source train", "source test", "target train", "target test")
    return DomainPair.hiding(
        "digits->photo-digits",
        [source[rows] for rows in parts[:2]],
        [target[rows] for rows in parts[2:]],
        is_complete=True,
        blocks=Blocks.rows((3, SIZE, SIZE), fraction=0.5, side="bottom"),
        classes=tuple(str(digit) for digit in range(10)),
        card=Card(
            what="Handwritten digits on black (source) and on photo patches (target).",
            origin="scikit-learn's load_digits (UCI optical recognition of handwritten digits) "
            "and load_sample_images.",
            licence="UCI digits: CC BY 4.0; the photographs: CC BY 2.0.",
            counts=dict(zip(names, map(len, parts), strict=True)),
            missing="The lower half of every target image.",
        ),
    )


def _enlarged(images: npt.NDArray[np.float32]) -> npt.NDArray[np.uint8]:
    """Resize (rows, 8, 8) digits to the demo's size."""
    tensor = interpolate(from_numpy(images)[:, None], size=(SIZE, SIZE), mode="bilinear")
    enlarged: npt.NDArray[np.uint8] = tensor[:, 0].round().byte().numpy()
    return enlarged


def _scaled(images: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """Bring 0..255 to [-1, 1]."""
    return images.astype(np.float32) * (2.0 / 255.0) - 1.0
