"""Reasons for a model's answers about images: by how much covering a region moves them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from halfseen.arrays import Floats, Matrix
from halfseen.targets import class_name

if TYPE_CHECKING:
    from halfseen.data.image_folders import ImageFolder, Refuse
    from halfseen.model.model import Model

TILES = 8
"""Regions along each side of an image."""


@dataclass(frozen=True)
class CoveredTiles:
    """By how much each region raises the log-odds of an image's most probable class.

    `moves` is (images, tiles, tiles), NaN where nothing of a region is observed; regions begin at
    the pixels `edges`, down and across.
    """

    names: tuple[str, ...]
    shown: Floats
    spoken_of: Any
    edges: tuple[tuple[int, ...], tuple[int, ...]]
    moves: Floats

    @property
    def importance(self) -> Floats:
        """How much each region moves answers, on average."""
        found: Floats = np.abs(self.moves).mean(axis=0)
        return found

    def told(self, number: int) -> str:
        """Return a sentence on one image."""
        moves = np.nan_to_num(self.moves[number])
        down, across = (int(k) for k in np.unravel_index(np.abs(moves).argmax(), moves.shape))
        rows, columns = (
            f"{edges[k]} to {edges[k + 1] - 1}"
            for edges, k in zip(self.edges, (down, across), strict=True)
        )
        best = self.spoken_of[number]
        return (
            f"Class {self.names[best]!r} has {self.shown[number, best]:.1%}. Pixel rows {rows}, "
            f"columns {columns}, move its log-odds most: {moves[down, across]:+.2f}."
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "edges": self.edges,
            "importance": self.importance.tolist(),
            "images": [
                {
                    "class": self.names[best],
                    "probability": float(shown[best]),
                    "log_odds": moves.tolist(),
                }
                for best, shown, moves in zip(self.spoken_of, self.shown, self.moves, strict=True)
            ],
        }


def cover_tiles(model: Model, images: Matrix) -> CoveredTiles:
    """Cover each region of the observed part of some images, and ask for their answers again.

    What is covered gets the mean colour of what is observed of the image. A covered region may
    look like nothing that the model has learned from, and regions that tell the same stand in for
    each other: what is shown is what the model does, not what causes what.
    """
    rows, kind, seen = model.prepare(images), model.target_type, ~model.blocks.mask
    ground = rows[:, :, seen].mean(axis=2, keepdims=True)
    place = np.arange(len(rows))
    answer = kind.explained(model.raw_prediction(rows))
    best = answer.argmax(axis=1)
    down, across = (
        np.linspace(0, side, min(TILES, side) + 1).round().astype(int) for side in seen.shape
    )
    moves = np.full((len(rows), len(down) - 1, len(across) - 1), np.nan)
    for i, j in np.ndindex(moves.shape[1:]):
        tile = np.zeros_like(seen)
        tile[down[i] : down[i + 1], across[j] : across[j + 1]] = True
        if not (tile & seen).any():
            continue
        covered = rows.copy()
        covered[:, :, tile & seen] = ground
        without = kind.explained(model.raw_prediction(covered))
        moves[:, i, j] = (answer - without)[place, best]
    names = tuple(class_name(value) for value in model.preprocessor.classes)
    edges = tuple(down.tolist()), tuple(across.tolist())
    return CoveredTiles(names, model.score(rows), best, edges, moves)


def explain_images(
    model: Model, folder: ImageFolder, rows: int, refuse: Refuse
) -> tuple[CoveredTiles, list[str]]:
    """Explain the first `rows` images of a folder; return also which those are."""
    from halfseen.model.table_scoring import image_batches

    some = replace(folder, files=folder.files[:rows])
    places, images = zip(*image_batches(model, some, refuse), strict=True)
    names = [some.names[place] for batch in places for place in batch]
    return cover_tiles(model, np.concatenate(images)), names
