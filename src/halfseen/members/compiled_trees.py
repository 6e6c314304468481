"""Sums of trees for many rows at once, compiled by Numba: the extra ``fast``.

A walk from node to node waits for memory and guesses wrong at every other node. Here no row
walks (QuickScorer, Lucchese et al. 2015). A tree's leaves stand in a line from left to right, one
bit each, eight to a byte. A node where a row goes right rules out the leaves to its left, by AND
with a mask; the first bit that is left is the row's leaf. All nodes are asked, whatever the way
is, so that one instruction asks a node about 32 rows.

Inputs are compared with thresholds once, in double precision: from there on an input is how many
thresholds of its column lie below it, which fits a byte (a column of more than 255 thresholds
counts as several). Leaves are added tree by tree as LightGBM does, so sums are the same to the
last bit. They depend neither on the number of rows nor on that of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from halfseen.arrays import Floats
from halfseen.parallel import run_parallel

if TYPE_CHECKING:
    from halfseen.members.tree_arrays import TreeArrays

Bytes = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.int64]
BLOCK = 256
"""Rows that are asked about together: all that they need stays in the nearest cache."""
SHARE = 16_384
"""Rows that one thread takes at a time."""
MOST_CUTS = 255
ZERO = float(np.float32(1e-35))
"""What is not further from zero is zero to LightGBM, and so is what is no number."""
FIRST_BIT = np.array([0] + [(k & -k).bit_length() - 1 for k in range(1, 256)], dtype=np.uint8)


class FastTrees(NamedTuple):
    """Trees as questions about bytes of leaves: a tuple, which Numba takes as it is."""

    inputs: Positions
    """The input of each column; `cuts` are its thresholds, sorted."""
    cut_starts: Positions
    cuts: Floats
    byte_starts: Positions
    """Where each tree's bytes begin."""
    question_starts: Positions
    """Where each byte's questions begin: a row with more than `ranks` thresholds of the column
    below it keeps the leaves in the mask."""
    columns: Positions
    ranks: Bytes
    masks: Bytes
    values: Floats
    """What each leaf adds, eight for each byte."""
    outputs: int

    @classmethod
    def of(cls, trees: TreeArrays) -> FastTrees:
        inputs: list[int] = []
        starts, cuts = [0], []
        columns, ranks = np.empty((2, len(trees.feature)), dtype=np.int64)
        for feature in np.unique(trees.feature):
            here = trees.feature == feature
            known, place = np.unique(trees.threshold[here], return_inverse=True)
            columns[here], ranks[here] = place // MOST_CUTS + len(inputs), place % MOST_CUTS
            for first in range(0, len(known), MOST_CUTS):
                cuts.append(known[first : first + MOST_CUTS])
                inputs.append(feature)
                starts.append(starts[-1] + len(cuts[-1]))

        byte_starts = np.r_[0, np.cumsum(trees.nodes // 8 + 1)]
        values = np.zeros(8 * byte_starts[-1])
        ruled_out = np.empty((len(trees.feature), 2), dtype=np.int64)
        first = 0
        for tree, size in enumerate(trees.nodes.tolist()):
            inner, leaves = slice(first, first + size), slice(first + tree, first + tree + size + 1)
            spans, places = _line(trees.left[inner].tolist(), trees.right[inner].tolist())
            ruled_out[inner] = 8 * byte_starts[tree] + np.reshape(spans, (size, 2))
            values[8 * byte_starts[tree] + np.array(places)] = trees.value[leaves]
            first += size

        # A question for each byte that a node rules out leaves of.
        begin, end = ruled_out.T
        parts = (end - 1) // 8 - begin // 8 + 1
        node = np.repeat(np.arange(len(parts)), parts)
        turn = np.arange(len(node)) - np.repeat(np.cumsum(parts) - parts, parts)
        byte = begin[node] // 8 + turn
        low, high = (np.clip(edge[node] - 8 * byte, 0, 8) for edge in (begin, end))
        order = np.argsort(byte, kind="stable")
        masks = 255 - ((1 << high) - (1 << low))
        node = node[order]
        return cls(
            np.array(inputs, dtype=np.int64),
            np.array(starts),
            np.concatenate([np.empty(0), *cuts]),
            byte_starts,
            np.searchsorted(byte[order], np.arange(byte_starts[-1] + 1)),
            columns[node],
            ranks[node].astype(np.uint8),
            masks[order].astype(np.uint8),
            values,
            trees.outputs,
        )

    def sums(self, rows: npt.NDArray[Any]) -> Floats:
        """Return the outputs of each row: (rows, outputs)."""
        sums: Floats = np.empty((len(rows), self.outputs))
        starts = range(0, len(rows), SHARE)
        run_parallel(
            [partial(self._fill, rows[k : k + SHARE], sums[k : k + SHARE]) for k in starts]
        )
        return sums

    def _fill(self, rows: npt.NDArray[Any], sums: Floats) -> None:
        # One layout and one type, for which the kernel is compiled once.
        _kernel(np.ascontiguousarray(rows.T[self.inputs], dtype=np.float64), self, sums)


def _line(left: Sequence[int], right: Sequence[int]) -> tuple[list[tuple[int, int]], list[int]]:
    """Return from where to where the leaves left of each node stand, and where each leaf stands."""
    leaves = [1] * len(left)
    for node in reversed(range(len(left))):  # children come after their parents
        leaves[node] = sum(1 if k < 0 else leaves[k] for k in (left[node], right[node]))
    begin, spans, places = [0] * len(left), [], [0] * (len(left) + 1)
    for node, children in enumerate(zip(left, right, strict=True)):
        middle = begin[node] + (1 if children[0] < 0 else leaves[children[0]])
        spans.append((begin[node], middle))
        for child, place in zip(children, spans[-1], strict=True):
            (places if child < 0 else begin)[-1 - child if child < 0 else child] = place
    return spans, places


def _add_leaves(inputs: Floats, trees: FastTrees, sums: Floats) -> None:
    """Write the sums of rows. Loops over a block are such that LLVM makes vectors of them."""
    byte, outputs = np.uint8, sums.shape[1]
    byte_starts, question_starts = trees.byte_starts, trees.question_starts
    columns, ranks, masks, values = trees.columns, trees.ranks, trees.masks, trees.values
    below = np.zeros((len(inputs), BLOCK), byte)
    number, count = np.zeros(BLOCK), np.zeros(BLOCK, np.int64)
    bits, kept, place = np.zeros(BLOCK, byte), np.zeros(BLOCK, byte), np.zeros(BLOCK, byte)
    total = np.zeros((outputs, BLOCK))
    for start in range(0, len(sums), BLOCK):
        size = min(BLOCK, len(sums) - start)
        for column in range(len(inputs)):
            for row in range(size):
                value = inputs[column, start + row]
                number[row] = value if abs(value) > ZERO else 0.0
            count[:] = 0
            for cut in trees.cuts[trees.cut_starts[column] : trees.cut_starts[column + 1]]:
                for row in range(BLOCK):
                    count[row] += number[row] > cut
            below[column] = count
        total[:] = 0.0
        for tree in range(len(byte_starts) - 1):
            first = byte_starts[tree]
            # From right to left, so that the first byte with a bit is the last one kept.
            for here in range(byte_starts[tree + 1] - 1, first - 1, -1):
                bits[:] = 255
                for question in range(question_starts[here], question_starts[here + 1]):
                    found = below[columns[question]]
                    rank, mask = ranks[question], masks[question]
                    for row in range(BLOCK):
                        bits[row] = bits[row] & (mask | byte(0) - byte(found[row] <= rank))
                number_of_byte = byte(here - first)
                for row in range(BLOCK):
                    old = byte(0) - byte(bits[row] == 0)  # all bits where nothing is left
                    place[row] = (place[row] & old) | (number_of_byte & ~old)
                    kept[row] = (kept[row] & old) | bits[row]
            sum_of = total[tree % outputs]
            for row in range(BLOCK):
                leaf = 8 * (first + np.int64(place[row])) + FIRST_BIT[kept[row]]
                sum_of[row] += values[leaf]
        sums[start : start + size] = total[:, :size].T


def _compiled(function: Callable[..., None]) -> Callable[..., None]:
    try:  # kept on disk, so that it is compiled once
        found: Callable[..., None] = numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:  # no folder to keep it in
        found = numba.njit(nogil=True)(function)
    return found


_kernel = _compiled(_add_leaves)
