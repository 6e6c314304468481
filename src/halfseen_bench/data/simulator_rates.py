"""Simulated rows at a click rate of one's own: label shift on top of the simulator's dials."""

from __future__ import annotations

import numpy as np

from halfseen.errors import OptionError
from halfseen_bench.data.simulator import Part, SimulatedRows, stream
from halfseen_bench.data.simulator_world import World

__all__ = ["draw_at_click_rate"]


def draw_at_click_rate(
    world: World, rows: int, click_rate: float, *, part: Part = "train", seed: int = 0
) -> SimulatedRows:
    """Draw rows of a domain until there are enough of each class, and keep p(x1, x2 | y).

    The first ``round(rows * click_rate)`` clicks and the first other rows that the world draws,
    in its own order: the proportions are the ones asked for, and given its label a row is
    distributed as the world says. With every dial of shift at zero, source and target then differ
    by label shift alone.

    Examples
    --------
    >>> from halfseen_bench.data.simulator_world import Dials
    >>> rows = draw_at_click_rate(World("prospecting", Dials()), 1000, 0.02)
    >>> rows.observed.shape, int(rows.labels.sum())
    ((1000, 17), 20)
    """
    if not 0.0 < click_rate < 1.0:
        raise OptionError(f"click_rate={click_rate} must lie strictly between 0 and 1.")
    clicks = round(rows * click_rate)
    wanted = {1: clicks, 0: rows - clicks}
    chunks = []
    # A pool without end: the loop stops when it holds enough of each class.
    for chunk in stream(world, 2**40, part=part, seed=seed, chunk=max(4 * rows, 1000)):
        chunks.append(chunk)
        labels = np.concatenate([one.labels for one in chunks])
        if all((labels == label).sum() >= count for label, count in wanted.items()):
            break
    kept = np.sort(
        np.concatenate([np.flatnonzero(labels == label)[:n] for label, n in wanted.items()])
    )
    return SimulatedRows(
        np.concatenate([one.observed for one in chunks])[kept],
        np.concatenate([one.missing for one in chunks])[kept],
        labels[kept],
    )
