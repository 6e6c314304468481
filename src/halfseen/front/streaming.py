"""Rows of tables as batches for training: all in memory, or streamed past a shuffle buffer."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from halfseen.errors import InputError
from halfseen.front.files import Part, TableFiles
from halfseen.front.labels import label_positions
from halfseen.front.preprocessing import transform
from halfseen.front.schema import TableSchema
from halfseen.networks.training import Batch
from halfseen.networks.training.parallel import ALONE, Ranks

__all__ = ["RowStream", "StreamedBatches"]

Matrix = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]
Chunk = tuple[Matrix, Labels]

BUFFER_ROWS = 131_072
"""Rows among which a batch is drawn."""
OPEN_PARTS = 4
"""Parts of a table that are read side by side, so that neighbours come from different ones."""


@dataclass(frozen=True)
class RowStream:
    """Prepared rows of a table, less or only those held out.

    Which rows are held out depends on `seed` and their place in the table alone, so that every
    pass leaves out the same ones.

    Parameters
    ----------
    table, schema
        Where the rows come from, and how they are prepared.
    is_source
        Whether rows have labels and the missing block.
    share
        Share of the rows that is held out.
    seed
        Of that choice.
    """

    table: TableFiles
    schema: TableSchema
    is_source: bool
    share: float = 0.0
    seed: int = 0

    def chunks(self, *, held_out: bool = False) -> Iterator[Chunk]:
        """Yield inputs with labels (none for a target), in the table's order."""
        for number, part in enumerate(self.table.parts()):
            yield from self._part(number, part, held_out)

    def scattered(self, random: np.random.Generator, ranks: Ranks = ALONE) -> Iterator[Chunk]:
        """Yield the training rows part by part in random order, some parts side by side.

        Ranks whose generators are in the same state are dealt different parts, or different
        rows of every part where there are fewer parts than ranks.
        """
        parts = list(enumerate(self.table.parts()))
        own = slice(ranks.rank, None, ranks.size)
        by_part = len(parts) >= ranks.size
        order = random.permutation(len(parts))
        waiting = [parts[index] for index in (order[own] if by_part else order)]
        readers: list[Iterator[Chunk]] = []
        while waiting or readers:
            while waiting and len(readers) < OPEN_PARTS:
                number, part = waiting.pop()
                readers.append(self._part(number, part, held_out=False))
            reader = readers.pop(0)
            chunk = next(reader, None)
            if chunk is not None:
                readers.append(reader)
                yield chunk if by_part else (chunk[0][own], chunk[1][own])

    def all(self, *, held_out: bool = False) -> Chunk:
        """Return all rows at once."""
        chunks = list(self.chunks(held_out=held_out))
        return np.concatenate([c[0] for c in chunks]), np.concatenate([c[1] for c in chunks])

    def some(self, share: float) -> Chunk:
        """Return a random share of the rows, in the table's order."""
        random = np.random.default_rng(self.seed)
        chosen = []
        for inputs, labels in self.chunks():
            taken = random.random(len(inputs)) < share
            chosen.append((inputs[taken], labels[taken]))
        return np.concatenate([c[0] for c in chosen]), np.concatenate([c[1] for c in chosen])

    def at_most(self, most: int, rows: int) -> Chunk:
        """Return all rows of a table that has `rows` of them, or about `most` of a longer one."""
        return self.all() if rows <= most else self.some(most / rows)

    def shuffled(self, random: np.random.Generator, ranks: Ranks = ALONE) -> Iterator[Chunk]:
        """Yield rows in random order within a buffer of :data:`BUFFER_ROWS` rows."""
        held: list[Chunk] = []
        for chunk in self.scattered(random, ranks):
            held.append(chunk)
            if sum(len(inputs) for inputs, _ in held) >= BUFFER_ROWS:
                ready, kept = _mixed(held, random, share=0.5)
                held = [kept]
                yield ready
        if held:
            yield _mixed(held, random, share=1.0)[0]

    def _part(self, number: int, part: Part, held_out: bool) -> Iterator[Chunk]:
        columns = self.schema.columns if self.is_source else self.schema.observed
        names = [column.name for column in columns]
        names += [self.schema.label] if self.is_source else []
        where = str(part.path)
        random = np.random.default_rng([self.seed, number])
        first_row = 1
        for batch in self.table.batches(names, [part]):
            chosen = (random.random(batch.num_rows) < self.share) == held_out
            inputs = transform(
                self.schema, batch, complete=self.is_source, where=where, first_row=first_row
            )
            first_row += batch.num_rows
            yield inputs[chosen], self._labels(batch, where)[chosen]

    def _labels(self, batch: Any, where: str) -> Labels:
        if not self.is_source:
            return np.zeros(batch.num_rows, np.int64)
        return label_positions(self.schema, batch.column(self.schema.label), where)


class StreamedBatches:
    """Batches read from disk as they are needed; the memory is that of two buffers.

    An epoch passes once over the source's training rows, and takes as many target rows, from the
    start again whenever they run out. Classes come as often as the source has them: oversampling
    would need all rows at hand.

    Several ranks read different parts of the tables, dealt anew in every epoch, and all take the
    same number of steps: one whose parts run out starts with them again, and what others have
    left over by then is not seen in this epoch.

    Parameters
    ----------
    source, target
        The rows.
    source_rows, target_rows
        How many of each there are to train on.
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
                f"The parts of {stream.table.path} that process {ranks.rank} was dealt hold no "
                "row to train on; write more rows into each, or start fewer processes."
            )


def _rebatched(chunks: Iterator[Chunk], size: int) -> Iterator[Chunk]:
    """Cut chunks into batches of one size; what is left at the end is dropped."""
    inputs: list[Matrix] = []
    labels: list[Labels] = []
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


def _mixed(
    chunks: list[Chunk], random: np.random.Generator, *, share: float
) -> tuple[Chunk, Chunk]:
    """Return a random share of the rows in random order, and the others."""
    inputs, labels = (np.concatenate([chunk[i] for chunk in chunks]) for i in range(2))
    order = random.permutation(len(inputs))
    first, rest = np.split(order, [round(share * len(order))])
    return (inputs[first], labels[first]), (inputs[rest], labels[rest])
