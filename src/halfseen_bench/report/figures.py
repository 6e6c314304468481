"""Figures, as picture files and inside a page as PNG in a URI."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from sklearn.manifold import TSNE

from halfseen.blocks import Blocks
from halfseen.networks.terms import loss_words
from halfseen.outputs import atomic_write
from halfseen_bench.data import DomainPair

SOURCE_COLOUR, TARGET_COLOUR = "#c0392b", "#2166ac"


def draw_domains(pair: DomainPair, columns: int = 10, seed: int = 0) -> Figure:
    """Draw digits as each domain shows them: complete source, shifted target, what is observed."""
    random = np.random.default_rng(seed)
    source = pair.source_train.inputs[random.permutation(len(pair.source_train))[:columns]]
    chosen = random.permutation(len(pair.target_test))[:columns]
    assert pair.complete_target is not None  # the digits have it
    complete = pair.complete_target.open("picture")[1][chosen]
    rows = [("source: all is seen", source), ("target, as it is", complete)]
    rows.append(("target, as observed", pair.target_test[chosen]))
    figure = Figure(figsize=(columns * 0.75 + 1.9, len(rows) * 0.85), layout="constrained")
    axes = figure.subplots(len(rows), columns, squeeze=False)
    for (title, images), line in zip(rows, axes, strict=True):
        hide = title == "target, as observed"
        for image, axis in zip(images, line, strict=True):
            axis.imshow(displayable(image, pair.blocks if hide else None))
            axis.set(xticks=[], yticks=[])
        line[0].set_ylabel(title, rotation=0, ha="right", va="center", fontsize=9)
    return figure


def in_the_plane(rows: npt.NDArray[Any], seed: int = 0) -> npt.NDArray[Any]:
    """Return t-SNE's places of some rows."""
    perplexity = max(min(30.0, (len(rows) - 1) / 4), 1.0)
    placed: npt.NDArray[Any] = TSNE(2, perplexity=perplexity, random_state=seed).fit_transform(rows)
    return placed


def draw_latents(named: Mapping[str, Mapping[str, npt.NDArray[Any]]], seed: int = 0) -> Figure:
    """Draw t-SNE pictures of latents, coloured by domain and by class, a line per model."""
    figure = Figure(figsize=(8.5, 3.9 * len(named)), layout="constrained")
    axes = figure.subplots(len(named), 2, squeeze=False)
    for (name, arrays), (by_domain, by_class) in zip(named.items(), axes, strict=True):
        latents = np.concatenate([arrays["source"], arrays["target"]])
        places = in_the_plane(latents, seed)
        is_source = np.arange(len(latents)) < len(arrays["source"])
        labels = np.concatenate([arrays["source_labels"], arrays["target_labels"]])
        for chosen, colour, marker, domain in (
            (is_source, SOURCE_COLOUR, "o", "source"),
            (~is_source, TARGET_COLOUR, "^", "target"),
        ):
            x, y = places[chosen].T
            by_domain.scatter(x, y, 9, colour, marker=marker, label=domain)
            by_class.scatter(x, y, 9, labels[chosen], marker=marker, cmap="tab10", vmin=0, vmax=9)
        by_domain.legend(loc="best", fontsize=8, framealpha=0.8)
        by_domain.set_title(f"{name}: by domain", fontsize=10)
        by_class.set_title("by true class: circles source, triangles target", fontsize=10)
        for axis in (by_domain, by_class):
            axis.set(xticks=[], yticks=[])
    return figure


def draw_losses(history: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw every named loss over the epochs, a panel each."""
    shown = {name: [each.get(name) for each in history] for name in loss_words()}
    known = {name: values for name, values in shown.items() if any(v is not None for v in values)}
    figure = Figure(figsize=(8.5, 2.2 * -(-len(known) // 3)), layout="constrained")
    grid = figure.subplots(-(-len(known) // 3), 3, squeeze=False)
    for axes, (name, values) in zip(grid.flat, known.items(), strict=False):
        axes.plot(np.array(values, dtype=np.float64))
        axes.set_title(loss_words()[name], fontsize=9)
    for axes in grid.flat[len(known) :]:
        axes.set_axis_off()
    return figure


def inline_figure(figure: Figure) -> str:
    """Return a figure as a URI for a page."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110, metadata={"Software": "halfseen"})
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure in one piece."""
    with atomic_write(path) as partial:
        figure.savefig(partial, dpi=150, metadata={"Software": "halfseen"})


def displayable(image: npt.NDArray[np.float32], hidden: Blocks | None) -> npt.NDArray[Any]:
    """Bring an image from [-1, 1] to colours, with its missing rows hatched grey."""
    colours = np.clip((image.transpose(1, 2, 0) + 1) / 2, 0, 1)
    if colours.shape[2] == 1:
        colours = np.repeat(colours, 3, axis=2)
    if hidden is not None:
        rows = np.array(hidden.missing)
        stripes = (rows[:, None] + np.arange(colours.shape[1])) % 4 < 1
        colours[rows] = np.where(stripes[..., None], 0.72, 0.86)
    return colours
