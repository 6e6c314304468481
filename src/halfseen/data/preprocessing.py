"""Columns to inputs by the numbers in a schema, row by row, and how those numbers are scaled."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeGuard

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from halfseen.arrays import Floats, Integers, Matrix
from halfseen.data.dates import date_names, date_parts
from halfseen.data.label_column import NO_LABEL, Labels, counted_rows, some_labels
from halfseen.data.schema import CategoryColumn, NumberColumn, Shape, TableSchema, signed_log
from halfseen.data.tables import Table, parts_of
from halfseen.data.values import Unread, as_categories, as_numbers, spelling
from halfseen.errors import InputError
from halfseen.splitting import rarest_class
from halfseen.targets import TargetType

Chunk = tuple[Matrix, Labels]


class ReadRows(NamedTuple):
    """Some rows as a schema reads them."""

    columns: Mapping[str, Any]
    """Numbers with NaN for a gap, texts with null for one."""
    rows: int
    first_row: int
    """The number of the first."""
    unread: Unread
    """What could not be read, and is a gap."""
    absent: tuple[str, ...] = ()
    """Columns that are not there, a gap in every row."""


def read_rows(
    schema: TableSchema,
    table: Any,
    *,
    complete: bool = False,
    where: str = "the table",
    first_row: int = 1,
) -> ReadRows:
    """Return the rows of a record batch or table as the schema has them, each by itself.

    Columns may stand in any order, beside others. Unless rows are `complete`, the missing block is
    not looked at, and an observed column that is not there is a gap in every row, as far as any is
    there and none under another spelling. Messages call the table `where`, and count its rows from
    `first_row`.
    """
    found: dict[str, Any] = {}
    unread = Unread()
    absent = () if complete else absent_columns(schema, table.schema.names, where)
    made = date_names(schema.dates)
    for column in schema.columns if complete else schema.observed:
        name = column.name
        if name in found:
            continue
        cells = made.get(name, name)
        places = table.schema.get_all_field_indices(cells)
        if not places and cells not in absent:
            raise InputError(f"Column {cells!r}, which the model needs, is not in {where}.")
        if len(places) > 1:
            raise InputError(f"Column {cells!r} is in {where} {len(places)} times; keep one.")
        values = table.column(places[0]) if places else pa.nulls(table.num_rows)
        if name in made:
            of = schema.dates[cells]
            parts = date_parts(values, cells, of, where=where, first_row=first_row, unread=unread)
            found |= {f"{cells} {part}": numbers for part, numbers in parts.items()}
        elif isinstance(column, CategoryColumn):
            found[name] = as_categories(
                values, name, where=where, stored=column.values, known=column.known
            )
        else:
            found[name] = as_numbers(
                values, name, where=where, first_row=first_row, strays=column.strays,
                written=column.written, shape=column.shape, unread=unread,
            )  # fmt: skip
    return ReadRows(found, table.num_rows, first_row, unread, absent)


def absent_columns(schema: TableSchema, names: Collection[str], where: str) -> tuple[str, ...]:
    """Return the observed columns that a table lacks; refuse one without any, or spelled otherwise.

    >>> from halfseen.data.schema import Shape
    >>> age = NumberColumn(
    ...     kind="count", name="age", role="observed", fill=0, indicator=False, log=False, mean=0,
    ...     scale=1,
    ... )
    >>> schema = TableSchema(columns=(age,), label="y", amounts=Shape(rows=1, gaps=0, distinct=1))
    >>> absent_columns(schema, ["Age"], "new.csv")
    Traceback (most recent call last):
        ...
    halfseen.errors.InputError: new.csv lacks column 'age', which the model observes (did you mean \
'Age'?); --rename 'Age=age'.
    """
    wanted = schema.cells()
    absent = tuple(name for name in wanted if name not in names)
    others = {spelling(name): name for name in names if name not in schema.order}
    for name in absent:
        lacks = f"{where} lacks column {name!r}, which the model observes"
        if spelling(name) in others:
            other = others[spelling(name)]
            raise InputError(f"{lacks} (did you mean {other!r}?); --rename '{other}={name}'.")
        if len(absent) == len(wanted):
            more = f" (and {len(absent) - 1} more)" if len(absent) > 1 else ""
            raise InputError(f"{lacks}{more}: none of its columns is there.")
    return absent


def inputs_of(schema: TableSchema, read: ReadRows) -> Matrix:
    """Return the inputs of rows that were read, one row each, in the order of the schema.

    Those of columns that are not there are 0, as those of the missing block are on the target.
    """
    inputs = np.zeros((read.rows, len(schema.inputs)), dtype=np.float32)
    start = 0
    for column in schema.columns:
        block = inputs[:, start : (start := start + len(column.inputs))]
        values = read.columns.get(column.name)
        if values is None:
            continue
        if isinstance(column, NumberColumn):
            gaps = np.isnan(values)
            filled = np.where(gaps, column.fill, values)
            scaled = (signed_log(filled) if column.log else filled) - column.mean
            block[:, 0] = np.clip(scaled / column.scale, -schema.clip, schema.clip)
        else:
            gaps = values.is_null().to_numpy(zero_copy_only=False)
            known = pa.array(column.categories, pa.string())
            found = pc.index_in(values.fill_null(column.fill), value_set=known)
            position = found.fill_null(len(known)).to_numpy(zero_copy_only=False).astype(np.int64)
            places = np.flatnonzero(column.other | (position < len(known)))
            block[places, position[places]] = 1.0
        if column.indicator:
            block[:, -1] = gaps
    return inputs


def transform(schema: TableSchema, table: Any, **how: Any) -> Matrix:
    """Return the inputs of a record batch or table; `how` as for :func:`read_rows`."""
    return inputs_of(schema, read_rows(schema, table, **how))


def outside(column: NumberColumn | CategoryColumn, values: Any, ranges: float = 0.0) -> Integers:
    """Return the places of what the source never had, or of numbers so many ranges beyond it."""
    shape = column.shape or Shape(rows=0, gaps=0.0, distinct=0)
    if isinstance(column, NumberColumn) and shape.quantiles:
        low, high = shape.quantiles[0], shape.quantiles[-1]
        margin = ranges * (high - low)
        return np.flatnonzero((values < low - margin) | (values > high + margin))
    # Where not all categories are listed, any may have been among the rest.
    if isinstance(column, CategoryColumn) and 0 < shape.distinct <= len(shape.shares):
        known = pc.is_in(values, value_set=pa.array(list(shape.shares), pa.string()))
        unseen = pc.and_not(pc.is_valid(values), known)
        return np.flatnonzero(unseen.to_numpy(zero_copy_only=False))
    return np.empty(0, dtype=np.int64)


# --- whole tables -------------------------------------------------------------------------------


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
        schema, is_source = self.schema, self.is_source
        names = list(schema.cells(complete=is_source))
        names += [schema.label] if is_source or self.some_labelled else []
        names += [schema.weight] if is_source and schema.weight is not None else []
        random = np.random.default_rng([self.seed, 0])
        for part in parts_of(self.table):
            how = {"where": part.where, "first_row": part.first_row}
            for batch in part.batches(names):
                chosen = (random.random(batch.num_rows) < self.share) == held_out
                if is_source:
                    yield labelled_rows(
                        schema, batch, among=chosen, unlabelled=self.unlabelled, **how
                    )
                else:
                    inputs = transform(schema, batch, **how)
                    labels = np.full(batch.num_rows, NO_LABEL)
                    if self.some_labelled:
                        given = batch.column(schema.label)
                        labels = some_labels(schema, given, schema.label, part.where)
                    yield inputs[chosen], labels[chosen]
                how["first_row"] += batch.num_rows

    def all(self, *, held_out: bool = False) -> Chunk:
        return _joined(self.chunks(held_out=held_out))

    def at_most(self, most: int, rows: int) -> Chunk:
        """Return all rows of a table that has `rows` of them, or about `most` of a longer one."""
        if rows <= most:
            return self.all()
        random = np.random.default_rng(self.seed)
        sampled = ((chunk, random.random(len(chunk[0])) < most / rows) for chunk in self.chunks())
        return _joined((inputs[some], labels[some]) for (inputs, labels), some in sampled)


def labelled_rows(
    schema: TableSchema,
    batch: Any,
    *,
    among: npt.NDArray[np.bool_] | None = None,
    unlabelled: bool = False,
    **how: Any,
) -> Chunk:
    """Return the complete rows of a batch that have a label (or none) and count, with labels."""
    inputs = transform(schema, batch, complete=True, **how)
    labels = some_labels(schema, batch.column(schema.label), schema.label, how["where"])
    chosen = counted_rows(schema, batch, labels, unlabelled=unlabelled)
    chosen = chosen if among is None else chosen & among
    return inputs[chosen], labels[chosen]


def _joined(chunks: Iterator[Chunk]) -> Chunk:
    inputs, labels = (np.concatenate(parts) for parts in zip(*chunks, strict=True))
    return inputs, labels


# --- one scale for all numbers, or one for each, decided on the labelled source ------------------

FEWEST_COLUMNS = 20
"""Columns of measurements from which a common scale is considered at all."""
MOST_ROWS = 100_000
"""A larger source has rows enough to learn each column's weight whatever its scale."""
COMPARED_ROWS = 2_000
PENALTIES = (1e-3, 1e-2, 0.1)
FOLDS = 5


def shared_scale(
    standardized: Matrix, labels: Labels, spreads: npt.NDArray[Any], kind: TargetType
) -> float | None:
    """Return the root mean square of the spreads where sharing it predicts better, else None.

    A ridge-penalised linear model is fitted with both scalings, each with its best of three
    penalties; the common scale must win by more than the standard error of the difference
    between its five folds. `spreads` are what the standardized columns were divided by.
    """
    some = np.random.default_rng(0).permutation(len(labels))[:COMPARED_ROWS]
    rows, labels = standardized[some].astype(np.float64), labels[some]
    if rarest_class(kind.strata(labels)) < FOLDS:
        return None
    common = float(np.sqrt(np.square(spreads).mean()))
    own, shared = (
        max(kind.linear_scores(x, labels, PENALTIES), key=np.mean)
        for x in (rows, rows * (spreads / common))
    )
    gain: Floats = shared - own
    error = float(gain.std(ddof=1)) / np.sqrt(FOLDS)
    return common if float(gain.mean()) > error else None


def select_scales(
    schema: TableSchema, sample: Sequence[Any], where: str, rows: int
) -> tuple[TableSchema, str | None]:
    """Return the schema with the scale that suits its columns of measurements, and a note.

    Principal components and embeddings come on one common scale, and their spread says how much
    they matter: scaling each to spread one drowns the first few in noise. Ages and blood
    pressures do not. The labels of some source rows tell the cases apart (:func:`shared_scale`).
    """
    columns = [c for c in schema.columns if _is_measurement(c)]
    if len(columns) < FEWEST_COLUMNS or rows > MOST_ROWS:
        return schema, None
    positions = [schema.inputs.index(column.name) for column in columns]
    inputs, labels = _joined(labelled_rows(schema, batch, where=where) for batch in sample)
    spreads = np.array([column.scale for column in columns])
    common = shared_scale(inputs[:, positions], labels, spreads, schema.target_type)
    if common is None:
        return schema, None
    scaled = tuple(
        c.model_copy(update={"scale": common}) if _is_measurement(c) else c for c in schema.columns
    )
    note = (
        f"{len(columns)} columns of measurements share one scale, because the source's labels are "
        "predicted better so: their spreads mean something, as those of principal components do."
    )
    return schema.model_copy(update={"columns": scaled}), note


def _is_measurement(column: Any) -> TypeGuard[NumberColumn]:
    return isinstance(column, NumberColumn) and column.kind == "numeric"
