"""Shapley values of columns, by permutations that come in pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from halfseen.arrays import Floats, Matrix

MOST_ASKED = 10_000
"""Changed copies of one row that a model is asked about where columns are many."""
MOST_NUMBERS = 10_000_000
"""Numbers in the copies that are made at once, about."""
FEWEST_PAIRS = 2


@dataclass(frozen=True, eq=False)
class Contributions:
    """What each column adds to an answer."""

    base: Floats
    """The mean answer about the background, one number per output."""
    values: Floats
    """What is added to it, (rows, columns, outputs): all columns give the answer about the row."""
    errors: Floats
    """Standard errors of the values: orders and background rows are a sample."""


def shapley_values(
    answer: Callable[[Matrix], Floats],
    rows: Matrix,
    background: Matrix,
    columns: Sequence[Sequence[int]],
    *,
    seed: int = 0,
) -> Contributions:
    r"""Return what each column adds to the answer about each row.

    A row of the background is turned into the explained row, column by column in random order;
    what the answer changes by when a column's turn comes is noted. The mean over all orders is
    the column's Shapley value,

    .. math:: \phi_j = \frac{1}{d!} \sum_{\pi} \left[ v(S_{\pi j} \cup \{j\}) - v(S_{\pi j})
              \right] ,

    with :math:`v(S)` the mean answer where the columns of S are the row's and the others the
    background's. Each background row is used with one random order and its reverse, whose errors
    cancel in part. Steps of one order add up, so the values do, exactly. `columns` are the inputs
    that each column of the user became.

    References
    ----------
    E. Strumbelj, I. Kononenko, "Explaining prediction models and individual predictions with
    feature contributions", Knowledge and Information Systems 41, 2014.

    R. Mitchell, J. Cooper, E. Frank, G. Holmes, "Sampling permutations for Shapley value
    estimation", JMLR 23, 2022: orders in pairs.

    Examples
    --------
    Of a sum, each column adds its own part:

    >>> rows, background = np.array([[3.0, 5.0]]), np.array([[1.0, 1.0], [1.0, 3.0]])
    >>> found = shapley_values(lambda x: x.sum(1, keepdims=True), rows, background, [[0], [1]])
    >>> found.base, found.values[0, :, 0]
    (array([3.]), array([2., 3.]))
    """
    random = np.random.default_rng(seed)
    count = len(columns)
    pairs = max(FEWEST_PAIRS, MOST_ASKED // (2 * (count + 1)))
    shown = background[:pairs]
    column_of = np.full(rows.shape[1], count)  # inputs of no column never change
    for number, positions in enumerate(columns):
        column_of[list(positions)] = number
    orders = np.array([random.permutation(count) for _ in shown])
    # turn[t, j]: when column j becomes the row's, in one order and in its reverse
    turns = np.argsort(np.concatenate([orders, orders[:, ::-1]]), axis=1)
    changes_at = np.column_stack([turns, np.full(len(turns), count)])[:, column_of]
    steps = np.arange(count + 1)[:, None]
    base = answer(shown).mean(0)
    run_parallel = max(1, MOST_NUMBERS // ((count + 1) * rows.shape[1]))
    paths = [(row, path) for row in range(len(rows)) for path in range(len(turns))]
    changes = np.empty((len(rows), len(turns), count, len(base)))
    for first in range(0, len(paths), run_parallel):
        some = paths[first : first + run_parallel]
        asked = [
            np.where(changes_at[path] < steps, rows[row], shown[path % len(shown)])
            for row, path in some
        ]
        answers = answer(np.concatenate(asked)).reshape(len(some), count + 1, -1)
        for (row, path), along in zip(some, answers, strict=True):
            changes[row, path] = np.diff(along, axis=0)[turns[path]]
    paired = (changes[:, : len(shown)] + changes[:, len(shown) :]) / 2
    spread = paired.std(1, ddof=1) if len(shown) > 1 else np.zeros_like(paired[:, 0])
    return Contributions(base, paired.mean(1), spread / np.sqrt(len(shown)))
