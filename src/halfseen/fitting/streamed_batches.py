"""Batches of tables that memory does not hold, read from disk as they are needed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from halfseen.arrays import Integers, Matrix
from halfseen.data.row_stream import Chunk, RowStream
from halfseen.errors import InputError
from halfseen.parallel import ALONE, Ranks

if TYPE_CHECKING:
    from halfseen.networks.terms.term import Batch


class StreamedBatches:
    """Batches read from disk as they are needed; the memory is that of two buffers.

    An epoch passes once over the source's training rows, and takes as many target rows, from the
    start again whenever they run out. Classes come as often as the source has them: oversampling
    would need all rows at hand.

    Several ranks read different parts of the tables, dealt anew in every epoch, and all take the
    same number of steps: one whose parts run out starts with them again, and what others have
    left over by then is not seen in this epoch.
    """

    def __init__(
        self, source: RowStream, target: RowStream, *, source_rows: int, target_rows: int
    ) -> None:
        self.source = source
        self.target = target
        self.source_rows = source_rows
        self.target_rows = target_rows

    def steps(self, batch_size: int) -> int:
        """Return how many steps an epoch takes."""
        if min(self.source_rows, self.target_rows) < batch_size:
            raise InputError(
                f"A batch of {batch_size} rows is more than the source ({self.source_rows} rows) "
                f"or the target ({self.target_rows}) has; set batch_size lower, or to 'auto'."
            )
        return self.source_rows // batch_size

    def epoch(self, batch_size: int, seed: int, ranks: Ranks = ALONE) -> Iterator[Batch]:
        """Yield the batches of one epoch; the same seed yields the same batches."""
        import torch

        from halfseen.networks.terms.term import Batch

        own = ranks.rows(batch_size)
        source, target = (
            _rebatched(_endless(stream, [seed, number], ranks), own.stop - own.start)
            for number, stream in enumerate((self.source, self.target))
        )
        for _, (inputs, labels), (other, _) in zip(
            range(self.steps(batch_size)), source, target, strict=False
        ):
            yield Batch(torch.from_numpy(inputs), torch.from_numpy(labels), torch.from_numpy(other))


def _endless(stream: RowStream, seed: Sequence[int], ranks: Ranks) -> Iterator[Chunk]:
    """Pass over a rank's rows again and again; all ranks deal the parts of a pass alike."""
    for number in itertools.count():
        rows = 0
        for chunk in stream.shuffled(np.random.default_rng([*seed, number]), ranks):
            rows += len(chunk[0])
            yield chunk
        if not rows:
            raise InputError(
                f"The parts of {stream.table.where} that process {ranks.rank} was dealt hold no "
                "row to train on; write more rows into each, or start fewer processes."
            )


def _rebatched(chunks: Iterator[Chunk], size: int) -> Iterator[Chunk]:
    """Cut chunks into batches of one size; what is left at the end is dropped."""
    inputs: list[Matrix] = []
    labels: list[Integers] = []
    held = 0
    for chunk in chunks:
        start = 0
        while start < len(chunk[0]):
            taken = min(size - held, len(chunk[0]) - start)
            inputs.append(chunk[0][start : start + taken])
            labels.append(chunk[1][start : start + taken])
            held += taken
            start += taken
            if held == size:
                yield np.concatenate(inputs), np.concatenate(labels)
                inputs, labels, held = [], [], 0
