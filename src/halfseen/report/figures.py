"""Figures for reports, drawn with matplotlib and kept inside the page."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from sklearn.manifold import TSNE

from halfseen.blocks import Blocks
from halfseen.data import DomainPair
from halfseen.files import written_whole
from halfseen.training.progress import LOSS_NAMES

__all__ = [
    "as_data_uri",
    "displayable",
    "draw_domains",
    "draw_latents",
    "draw_losses",
    "save_figure",
]

SOURCE_COLOUR, TARGET_COLOUR = "#c0392b", "#2166ac"


def draw_domains(pair: DomainPair, columns: int = 10, seed: int = 0) -> Figure:
    """Draw digits as each domain shows them: complete source, shifted target, what is observed."""
    random = np.random.default_rng(seed)
    source = pair.source_train.inputs[random.permutation(len(pair.source_train))[:columns]]
    chosen = random.permutation(len(pair.target_test))[:columns]
    rows = [("source: all is seen", source)]
    if pair.complete_target is not None:
        rows.append(("target, as it is", pair.complete_target.open("picture")[1][chosen]))
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


def draw_latents(named: Mapping[str, Mapping[str, npt.NDArray[Any]]], seed: int = 0) -> Figure:
    """Draw t-SNE pictures of latents, coloured by domain and by class, a line per model."""
    figure = Figure(figsize=(8.5, 3.9 * len(named)), layout="constrained")
    axes = figure.subplots(len(named), 2, squeeze=False)
    for (name, arrays), (by_domain, by_class) in zip(named.items(), axes, strict=True):
        latents = np.concatenate([arrays["source"], arrays["target"]])
        places = TSNE(2, perplexity=min(30, len(latents) // 4), random_state=seed).fit_transform(
            latents
        )
        is_source = np.arange(len(latents)) < len(arrays["source"])
        labels = np.concatenate([arrays["source_labels"], arrays["target_labels"]])
        for chosen, colour, marker, domain in (
            (is_source, SOURCE_COLOUR, "o", "source"),
            (~is_source, TARGET_COLOUR, "^", "target"),
        ):
            by_domain.scatter(*places[chosen].T, s=9, c=colour, marker=marker, label=domain)
            by_class.scatter(
                *places[chosen].T,
                s=9,
                c=labels[chosen],
                cmap="tab10",
                marker=marker,
                vmin=0,
                vmax=9,
            )
        by_domain.legend(loc="best", fontsize=8, framealpha=0.8)
        by_domain.set_title(f"{name}: by domain", fontsize=10)
        by_class.set_title("by true class: circles source, triangles target", fontsize=10)
        for axis in (by_domain, by_class):
            axis.set(xticks=[], yticks=[])
    return figure


def draw_losses(history: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw every named loss over the epochs, with the phases marked."""
    names = [name for name in LOSS_NAMES if any(name in record for record in history)]
    figure = Figure(figsize=(8.5, 3.2), layout="constrained")
    axis = figure.subplots()
    epochs = np.arange(1, len(history) + 1)
    for name in names:
        values = [record.get(name, np.nan) for record in history]
        axis.plot(epochs, values, label=name.replace("_", " "), linewidth=1.6)
    axis.set(xlabel="epoch", ylabel="loss", yscale="log")
    for index in range(1, len(history)):
        if history[index]["phase"] != history[index - 1]["phase"]:
            axis.axvline(index + 0.5, color="0.6", linewidth=0.8, linestyle="--")
            axis.text(
                index + 0.7, axis.get_ylim()[1], history[index]["phase"], va="top", fontsize=8
            )
    axis.legend(fontsize=8, ncols=3)
    return figure


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure in one piece."""
    with written_whole(path) as partial:
        figure.savefig(partial, dpi=150)


def as_data_uri(figure: Figure) -> str:
    """Return a figure as a PNG inside a URI, so that a page needs no other file."""
    buffer = io.BytesIO()
    with mpl.rc_context({"savefig.transparent": False}):
        figure.savefig(buffer, format="png", dpi=130)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


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
