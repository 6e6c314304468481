"""Draw the pictures of docs/data.md and print its tables.

Run with the real files at hand: ``HALFSEEN_DATA=... python docs/make_data_figures.py``.
"""

from __future__ import annotations

import os
from pathlib import Path

import matplotlib as mpl
import numpy as np
import numpy.typing as npt

mpl.use("Agg")
import matplotlib.pyplot as plt

from halfseen.blocks import Blocks
from halfseen.outputs import atomic_write
from halfseen_bench.data import amazon, criteo, digits, heart
from halfseen_bench.data.amazon import read_domain
from halfseen_bench.data.criteo import NUMERIC, read_batches
from halfseen_bench.data.official import locate

IMAGES = Path(__file__).parent / "images"
SOURCE_COLOUR, TARGET_COLOUR = "#1f77b4", "#d62728"


def save(figure: plt.Figure, name: str) -> None:
    with atomic_write(IMAGES / name) as partial:
        figure.savefig(partial, format="png", dpi=80, bbox_inches="tight")
    plt.close(figure)
    print(f"wrote {IMAGES / name}")


def show(axis: plt.Axes, image: npt.NDArray[np.float32]) -> None:
    """Draw one (channels, 32, 32) image in [-1, 1]."""
    shown = np.broadcast_to(image, (3, *image.shape[1:]))
    axis.imshow((shown.transpose(1, 2, 0) + 1) / 2, interpolation="nearest")
    axis.set_xticks([])
    axis.set_yticks([])


def draw_digits(root: Path) -> None:
    """Draw every domain's digits, and MNIST-M's with patches of increasing size missing."""
    fractions = (0.0, 0.3, 0.4, 0.5, 0.6, 0.7)
    sizes = {"max_train": 200, "max_test": 1}
    grey = digits.load_pair(root, "mnist", "usps", **sizes)
    coloured = digits.load_pair(root, "svhn", "mnistm", **sizes)
    domains = {
        "MNIST": grey.source_train.inputs,
        "USPS": grey.complete_target.open("a picture")[0],
        "SVHN": coloured.source_train.inputs,
        "MNIST-M": coloured.complete_target.open("a picture")[0],
    }
    figure = plt.figure(figsize=(9, 4.4))
    left, right = figure.subfigures(1, 2, width_ratios=(1, 1.2))
    left.suptitle("(a) the four domains", fontsize=10)
    for row, (axes, (name, images)) in enumerate(
        zip(left.subplots(4, 5), domains.items(), strict=True)
    ):
        for column, axis in enumerate(axes):
            show(axis, images[5 * row + column])
        axes[0].set_ylabel(name, fontsize=8)
    right.suptitle("(b) MNIST-M with rows missing at the bottom", fontsize=10)
    grid = right.subplots(4, len(fractions))
    for column, fraction in enumerate(fractions):
        images = domains["MNIST-M"][:4]
        if fraction:
            images = Blocks.rows((3, 32, 32), fraction=fraction).hide(images)
        for axis, image in zip(grid[:, column], images, strict=True):
            show(axis, image)
        grid[0, column].set_title(f"{fraction:.0%}", fontsize=8)
    save(figure, "digits-missing.png")


def criteo_features(root: Path) -> dict[str, list[npt.NDArray[np.float32]]]:
    """Return each feature of all rows at hand, as [source, target], nothing hidden."""
    path = locate(root, "criteo/train.txt")
    columns = (*NUMERIC, criteo.DOMAIN_COLUMN)
    batches = [batch.to_pydict() for batch in read_batches(path, columns)]
    table = {name: [v for batch in batches for v in batch[name]] for name in columns}
    is_target = np.array([v == criteo.DOMAIN_VALUE for v in table[criteo.DOMAIN_COLUMN]])
    features = {}
    for name in NUMERIC:
        counts = np.array(table[name], dtype=np.float64)  # None becomes NaN
        values = criteo.transformed(counts, name, "floor_log_squared")
        features[name] = [values[~is_target], values[is_target]]
    return features


def draw_criteo(features: dict[str, list[npt.NDArray[np.float32]]]) -> None:
    """Draw the share of rows at each value, source and target."""
    figure, axes = plt.subplots(3, 5, figsize=(11, 6))
    for axis, (name, domains) in zip(axes.flat, features.items(), strict=False):
        top = max(np.quantile(values, 0.995) for values in domains)
        bins = np.linspace(0, max(top, 1) + 1, 25)
        for values, colour in zip(domains, (SOURCE_COLOUR, TARGET_COLOUR), strict=True):
            weights = np.full(len(values), 1 / len(values))
            axis.hist(values.clip(max=bins[-1]), bins, weights=weights, color=colour, alpha=0.55)
        axis.set_yscale("log")
        axis.set_ylim(5e-4, 1.5)
        missing = name in criteo.MISSING
        axis.set_title(f"{name}{' (missing on target)' if missing else ''}", fontsize=8)
        axis.tick_params(labelsize=7)
    for axis in axes.flat[len(features) :]:
        axis.axis("off")
    handles = [plt.Rectangle((0, 0), 1, 1, color=c) for c in (SOURCE_COLOUR, TARGET_COLOUR)]
    axes.flat[-1].legend(handles, ["source", "target"], loc="center")
    figure.supylabel("share of rows", fontsize=9)
    figure.tight_layout()
    save(figure, "criteo-histograms.png")


def print_criteo_table(features: dict[str, list[npt.NDArray[np.float32]]]) -> None:
    print("| feature | source | target |\n|---|---|---|")
    for name, domains in features.items():
        cells = [f"{v.mean():.3g} ± {v.std():.3g}" for v in domains]
        print(f"| {name} | {' | '.join(cells)} |")


def print_counts(root: Path) -> None:
    """Print rows, and positives where there are two classes, of each domain at hand."""
    for pair in (("mnist", "usps"), ("svhn", "mnistm")):
        print(digits.load_pair(root, *pair).card.counts)
    for domain in amazon.DOMAINS:
        labels = read_domain(root, domain)[1]
        print(f"{domain}: {len(labels)} reviews, {labels.sum()} positive")
    for domain in heart.DOMAINS:
        labels = heart.read_hospital(root, domain)[1]
        print(f"{domain}: {len(labels)} patients, {labels.sum()} diseased")
    pair = criteo.load_pair(root)
    for name, labels in {
        "source train": pair.source_train.labels,
        "source test": pair.source_test.labels,
        "target train": pair.target_train_labels.open("a table"),
        "target test": pair.target_test_labels.open("a table"),
    }.items():
        print(f"criteo {name}: {len(labels)} rows, {labels.sum()} clicks ({labels.mean():.4f})")


def draw_heart(root: Path) -> None:
    """Draw the share of rows in which a hospital lacks a column."""
    tables = [heart.read_hospital(root, domain)[0] for domain in heart.DOMAINS]
    shares = np.array([heart.shares_missing(table) for table in tables])
    figure, axis = plt.subplots(figsize=(9, 2.6))
    axis.imshow(shares, cmap="Reds", vmin=0, vmax=1, aspect="auto")
    for row, column in np.ndindex(*shares.shape):
        share = shares[row, column]
        if share:
            systematic = share >= 0.5
            axis.text(
                column,
                row,
                f"{share:.0%}" if share >= 0.005 else "<1%",
                ha="center",
                va="center",
                fontsize=8,
                weight="bold" if systematic else "normal",
                color="white" if share > 0.6 else "black",
            )
    axis.set_xticks(range(len(heart.COLUMNS)), heart.COLUMNS, fontsize=8)
    labels = [f"{d} ({len(t)} rows)" for d, t in zip(heart.DOMAINS, tables, strict=True)]
    axis.set_yticks(range(len(labels)), labels, fontsize=8)
    axis.set_title("Share of rows without a value (bold: systematically missing)", fontsize=9)
    save(figure, "heart-missing.png")


def main() -> None:
    root = Path(os.environ["HALFSEEN_DATA"])
    draw_digits(root)
    draw_heart(root)
    features = criteo_features(root)
    draw_criteo(features)
    print_criteo_table(features)
    print_counts(root)


if __name__ == "__main__":
    main()
