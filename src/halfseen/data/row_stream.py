"""Prepared rows of a table, read in batches: all of them, or a sample."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from halfseen.arrays import Matrix
from halfseen.data.label_column import NO_LABEL, counted_rows, some_labels
from halfseen.data.preprocessing import transform
from halfseen.data.schema import TableSchema
from halfseen.data.tables import Table

Labels = npt.NDArray[Any]
Chunk = tuple[Matrix, Labels]


@dataclass(frozen=True)
class RowStream:
    """Prepared rows of a table, less or only the `share` of them that is held out.

    Which rows are held out depends on `seed` and their place in the table alone, so that every
    pass leaves out the same ones. Rows of the source have labels and the missing block; those of a
    target have :data:`~halfseen.data.label_column.NO_LABEL`, unless `some_labelled` says otherwise.
    """

    table: Table
    schema: TableSchema
    is_source: bool
    share: float = 0.0
    seed: int = 0
    some_labelled: bool = False
    unlabelled: bool = False
    """Whether rows of the source are those without a label, in the place of the others."""

    def chunks(self, *, held_out: bool = False) -> Iterator[Chunk]:
        """Yield inputs with labels (none for a target), in the table's order."""
        for number, part in enumerate(self.table.parts()):
            yield from self._part(number, part, held_out)

    def all(self, *, held_out: bool = False) -> Chunk:
        return _joined(list(self.chunks(held_out=held_out)))

    def at_most(self, most: int, rows: int) -> Chunk:
        """Return all rows of a table that has `rows` of them, or about `most` of a longer one."""
        if rows <= most:
            return self.all()
        random = np.random.default_rng(self.seed)
        chosen = []
        for inputs, labels in self.chunks():
            taken = random.random(len(inputs)) < most / rows
            chosen.append((inputs[taken], labels[taken]))
        return _joined(chosen)

    def _part(self, number: int, part: Any, held_out: bool) -> Iterator[Chunk]:
        schema = self.schema
        names = list(schema.cells(complete=self.is_source))
        names += [schema.label] if self.is_source or self.some_labelled else []
        names += [schema.weight] if self.is_source and schema.weight is not None else []
        where = str(getattr(part, "path", self.table.where))
        random = np.random.default_rng([self.seed, number])
        first_row = self.table.first_row
        for batch in self.table.batches(names, [part]):
            chosen = (random.random(batch.num_rows) < self.share) == held_out
            if self.is_source:
                inputs, labels = labelled_rows(
                    schema,
                    batch,
                    where=where,
                    first_row=first_row,
                    among=chosen,
                    unlabelled=self.unlabelled,
                )
                yield inputs, labels
            else:
                inputs = transform(schema, batch, where=where, first_row=first_row)
                labels = np.full(batch.num_rows, NO_LABEL)
                if self.some_labelled:
                    labels = some_labels(schema, batch.column(schema.label), schema.label, where)
                yield inputs[chosen], labels[chosen]
            first_row += batch.num_rows


def labelled_rows(
    schema: TableSchema,
    batch: Any,
    *,
    where: str,
    first_row: int = 1,
    among: npt.NDArray[np.bool_] | None = None,
    unlabelled: bool = False,
) -> Chunk:
    """Return the complete rows of a batch that have a label and count, with their labels.

    Or those that are `unlabelled`.
    """
    inputs = transform(schema, batch, complete=True, where=where, first_row=first_row)
    labels = some_labels(schema, batch.column(schema.label), schema.label, where)
    chosen = counted_rows(schema, batch, labels, unlabelled=unlabelled)
    chosen = chosen if among is None else chosen & among
    return inputs[chosen], labels[chosen]


def _joined(chunks: list[Chunk]) -> Chunk:
    inputs, labels = (np.concatenate(parts) for parts in zip(*chunks, strict=True))
    return inputs, labels
