"""Latents in the plane: t-SNE, drawn by domain and by class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from sklearn.manifold import TSNE

from halfseen.report.page import Figure, Figures
from halfseen.report.svg import scatter_plot

__all__ = ["MOST_ROWS", "in_the_plane", "latent_figures"]

MOST_ROWS = 500
"""Rows of each domain that are drawn."""
COLOURS = 10
NEIGHBOURS = 15
"""Rows close together that make a good place for a name."""

Matrix = npt.NDArray[np.float64]


def in_the_plane(rows: Matrix, seed: int = 0) -> Matrix:
    """Return t-SNE's places of some rows; two-dimensional rows are left as they are."""
    if rows.shape[1] <= 2:
        places: Matrix = np.hstack([rows, np.zeros((len(rows), 2 - rows.shape[1]))])
        return places
    perplexity = max(min(30.0, (len(rows) - 1) / 4), 1.0)
    placed: Matrix = TSNE(2, perplexity=perplexity, random_state=seed, init="pca").fit_transform(
        rows
    )
    return placed


def latent_figures(
    pictures: Sequence[tuple[str, npt.ArrayLike, npt.ArrayLike]],
    source_classes: Sequence[int],
    target_classes: Sequence[int],
    class_names: Sequence[str],
    *,
    classes_are: str,
) -> Figures:
    """Draw each picture, (title, source rows, target rows), by domain and by class.

    `classes_are` says where the target's classes come from.
    """
    own, other = list(source_classes)[:MOST_ROWS], list(target_classes)[:MOST_ROWS]
    classes = np.array([*own, *other], dtype=np.int64)
    is_target = [False] * len(own) + [True] * len(other)
    figures = []
    for title, source, target in pictures:
        both = [np.asarray(rows, dtype=np.float64)[:MOST_ROWS] for rows in (source, target)]
        places = in_the_plane(np.vstack(both))
        points = [(float(x), float(y)) for x, y in places]
        counted = f"{len(own)} source and {len(other)} target rows"
        figures += [
            Figure(
                f"{title}: by domain",
                scatter_plot(
                    points,
                    ["is-target" if there else "is-source" for there in is_target],
                    is_target,
                    f"{title}, by domain: a t-SNE map of {counted}.",
                ),
            ),
            Figure(
                f"{title}: by class",
                scatter_plot(
                    points,
                    [f"class-{k % COLOURS}" for k in classes],
                    is_target,
                    f"{title}, by class: the same map of {counted}, each row in the colour of its "
                    f"class; {classes_are}.",
                    _class_labels(places, classes, is_target, class_names),
                ),
            ),
        ]
    shown = [(f"class-{k % COLOURS}", class_names[k]) for k in sorted(set(classes.tolist()))]
    legend = (("circle", "source"), ("triangle", "target"), *shown[: 2 * COLOURS])
    return Figures(tuple(figures), legend)


def _class_labels(
    places: Matrix, classes: npt.NDArray[np.int64], is_target: Sequence[bool], names: Sequence[str]
) -> list[tuple[str, tuple[float, float]]]:
    """Put each class's name where its source rows lie closest together."""
    own = ~np.array(is_target)
    labels = []
    for k in np.unique(classes[own]):
        members = places[own & (classes == k)]
        apart = np.linalg.norm(members[:, None] - members[None], axis=2)
        neighbour = min(NEIGHBOURS, len(members) - 1)
        x, y = members[np.sort(apart, axis=1)[:, neighbour].argmin()]
        labels.append((str(names[k]), (float(x), float(y))))
    return labels
