"""Both domains as members learn from them: prepared rows, in memory or streamed, in folds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from halfseen.arrays import Matrix
from halfseen.blocks import Blocks
from halfseen.column_maps import Continuous
from halfseen.data.label_column import row_weights
from halfseen.data.preprocessing import Chunk, RowStream
from halfseen.data.schema import NumberColumn, TableSchema
from halfseen.data.schema_inference import InferredTables
from halfseen.members.protocol import Sample
from halfseen.parallel import present_ranks
from halfseen.splitting import folds, held_out_count, rarest_class
from halfseen.targets import TargetType
from halfseen.targets.target_type import ClassWeight

HELD_OUT = 0.2
MOST_HELD_OUT = 100_000
"""A fifth of the source is held out to measure on, up to this many rows."""
SMALL = 1_000
"""Source rows below which every fifth is held out in turn, so that all rows are measured on."""
FOLDS = 5
REFIT_ROWS = 5_000
"""Source rows up to which networks are trained again on all of them; other members always are."""
SAMPLE_ROWS = 20_000
"""Rows of a streamed table that stand for all where a few will do."""
TRAINING_ROWS = 200_000
"""Source rows of a streamed table that trees and regression learn from, where memory holds them."""


@dataclass(frozen=True)
class Fold:
    """Source rows to train on (or a sample of them), and rows held out; their places among all."""

    training: Sample
    held_out: Sample
    places: tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]] | None = None


@dataclass(frozen=True)
class PreparedRows:
    """Both domains, ready for the members."""

    blocks: Blocks
    target_type: TargetType
    target: Matrix
    """Target rows, the missing block hidden; a sample of them where they are streamed."""
    whole: Sample | None
    """All source rows, where they are at hand."""
    folds: Sequence[Fold] = ()
    """Ways to hold rows out; none where nothing is measured."""
    stream: Any = None
    fingerprint: str = field(default="", compare=False)
    measured: Continuous | None = None
    """Observed columns of numbers, where the inputs are those of a table."""
    labelled: Sample | None = None
    """Target rows whose labels are known and used; they are among `target` too."""

    @property
    def refits_networks(self) -> bool:
        """Whether the final networks are trained on all rows, after measuring on those held out.

        Those of several folds answer together instead: nothing is trained once more.
        """
        whole = self.whole
        if whole is None or len(self.folds) > 1:
            return False
        return not self.folds or len(whole) <= REFIT_ROWS


def prepared_in_memory(
    blocks: Blocks,
    target_type: TargetType,
    source: Sample,
    target: Matrix,
    *,
    hold_out: bool,
    seed: int,
    thorough: bool = False,
) -> PreparedRows:
    """Return rows that are in memory, split where some are held out.

    Fewer than :data:`SMALL` source rows of a table are held out fold by fold, and any if it is to
    be `thorough`; otherwise, and of images, whose networks take longer, a fifth is held out.
    """
    in_turn = thorough or (blocks.is_table and len(source) < SMALL)
    parts = _folds(source, target_type, seed, in_turn=in_turn) if hold_out else []
    digest = hashlib.sha256()
    for array in (source.inputs, source.labels, target):
        digest.update(np.ascontiguousarray(array).tobytes())
    return PreparedRows(blocks, target_type, target, source, parts, None, digest.hexdigest())


def prepared_tables(
    found: InferredTables, class_weight: ClassWeight = None, **split: Any
) -> PreparedRows:
    """Return both tables in memory, split as by :func:`prepared_in_memory`."""
    schema = found.schema
    source = Sample(*RowStream(found.source.table, schema, is_source=True).all())
    given = None if schema.weight is None else row_weights(found.source.table, schema)
    weights = schema.target_type.class_weights(source.labels, given, class_weight)
    source = replace(source, weights=weights)
    target, labels = _target_stream(found).all()
    kind = found.schema.target_type
    rows = prepared_in_memory(found.schema.blocks, kind, source, target, **split)
    labelled = _labelled([(target, labels)], kind) if found.labelled else None
    return replace(rows, measured=measured_columns(found.schema), labelled=labelled)


def _target_stream(found: InferredTables) -> RowStream:
    some = bool(found.labelled)
    return RowStream(found.target.table, found.schema, is_source=False, some_labelled=some)


def _labelled(chunks: Iterable[Chunk], kind: TargetType) -> Sample:
    """Return the target rows that have a label, up to :data:`MOST_HELD_OUT` of them."""
    kept = [(rows[kind.known(labels)], labels[kind.known(labels)]) for rows, labels in chunks]
    inputs, labels = (np.concatenate([chunk[part] for chunk in kept]) for part in range(2))
    return Sample(inputs[:MOST_HELD_OUT], labels[:MOST_HELD_OUT])


def prepared_streams(found: InferredTables, *, seed: int, memory: int) -> PreparedRows:
    """Return both tables as streams from disk, with samples of them in memory."""
    at_hand = memory // (2 * np.float32().nbytes * len(found.schema.inputs))
    most = max(SAMPLE_ROWS, min(TRAINING_ROWS, at_hand))
    share, kind = min(HELD_OUT, MOST_HELD_OUT / found.source.rows), found.schema.target_type
    source = RowStream(found.source.table, found.schema, is_source=True, share=share, seed=seed)
    target = _target_stream(found)

    def samples() -> tuple[Fold, Matrix, Sample | None]:
        held_out = Sample(*source.all(held_out=True))
        training = Sample(*source.at_most(most, found.source.rows))
        some = target.at_most(SAMPLE_ROWS, found.target.rows)[0]
        labelled = _labelled(target.chunks(), kind) if found.labelled else None
        return Fold(training, held_out), some, labelled

    fold, some, labelled = present_ranks().from_first(samples)
    measured = measured_columns(found.schema)
    return PreparedRows(found.schema.blocks, kind, some, None, [fold], None, "", measured, labelled)


def measured_columns(schema: TableSchema) -> Continuous:
    """Return the observed columns of numbers, with the raw values behind their inputs."""
    found, position = [], 0
    for column in schema.columns:
        if isinstance(column, NumberColumn) and column.role == "observed":
            found.append((position, column.mean, column.scale, column.log))
        position += len(column.inputs)
    positions, mean, scale, logged = zip(*found, strict=True) if found else ((), (), (), ())
    return Continuous(
        np.array(positions, dtype=np.int64),
        np.array(mean, dtype=np.float64),
        np.array(scale, dtype=np.float64),
        np.array(logged, dtype=bool),
    )


def _folds(source: Sample, kind: TargetType, seed: int, *, in_turn: bool) -> list[Fold]:
    strata = kind.strata(source.labels)
    if in_turn and rarest_class(strata) >= 2:
        splits = list(folds(strata, FOLDS, seed).split(source.inputs, strata))
    else:
        size = min(MOST_HELD_OUT, max(round(HELD_OUT * len(strata)), int(strata.max()) + 1))
        splits = [held_out_count(strata, size, seed)]
    return [Fold(source[split[0]], source[split[1]], split) for split in splits]
