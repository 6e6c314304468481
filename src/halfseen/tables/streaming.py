"""Rows of tables as batches for training: all in memory, or streamed past a shuffle buffer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from halfseen.errors import InputError
from halfseen.tables.files import Part, TableFiles
from halfseen.tables.labels import label_positions
from halfseen.tables.preprocessing import transform
from halfseen.tables.schema import TableSchema
from halfseen.training import Batch

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

    def chunks(
        self, *, held_out: bool = False, random: np.random.Generator | None = None
    ) -> Iterator[Chunk]:
        """Yield inputs with labels (none for a target), in the table's order or in another."""
        parts = list(enumerate(self.table.parts()))
        if random is None:
            for number, part in parts:
                yield from self._part(number, part, held_out)
            return
        waiting = [parts[index] for index in random.permutation(len(parts))]
        readers: list[Iterator[Chunk]] = []
        while waiting or readers:
            while waiting and len(readers) < OPEN_PARTS:
                number, part = waiting.pop()
                readers.append(self._part(number, part, held_out))
            reader = readers.pop(0)
            chunk = next(reader, None)
            if chunk is not None:
                readers.append(reader)
                yield chunk

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

    def shuffled(self, random: np.random.Generator) -> Iterator[Chunk]:
        """Yield rows in random order within a buffer of :data:`BUFFER_ROWS` rows."""
        held: list[Chunk] = []
        for chunk in self.chunks(random=random):
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

    def epoch(self, batch_size: int, seed: int) -> Iterator[Batch]:
        """Yield the batches of one epoch; the same seed yields the same batches."""
        source_random, target_random = (np.random.default_rng([seed, i]) for i in range(2))
        source = _rebatched(self.source.shuffled(source_random), batch_size)
        target = _rebatched(_endless(self.target, target_random), batch_size)
        for _, (inputs, labels), (other, _) in zip(
            range(self.steps(batch_size)), source, target, strict=False
        ):
            yield Batch(torch.from_numpy(inputs), torch.from_numpy(labels), torch.from_numpy(other))


def _endless(stream: RowStream, random: np.random.Generator) -> Iterator[Chunk]:
    while True:
        yield from stream.shuffled(random)


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
