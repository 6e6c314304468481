"""Both domains as members learn from them: prepared rows, or a sample of very many, in folds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from halfseen.arrays import Matrix
from halfseen.blocks import Blocks
from halfseen.data.label_column import row_weights
from halfseen.data.preprocessing import Chunk, RowStream
from halfseen.data.schema import NumberColumn, TableSchema
from halfseen.data.schema_inference import InferredTables
from halfseen.errors import InputError
from halfseen.members.aligned import Continuous
from halfseen.members.protocol import Sample
from halfseen.settings import FitSettings
from halfseen.splitting import folds, held_out_count, rarest_class
from halfseen.targets import TargetType

HELD_OUT = 0.2
MOST_HELD_OUT = 100_000
"""A fifth of the source is held out to measure on, up to this many rows."""
SMALL = 1_000
"""Source rows below which every fifth is held out in turn, so that all rows are measured on."""
FOLDS = 5
FOLDS_OF_FEW = 3
"""Students of few labels learn from all complete rows in each fold, which takes time."""
REFIT_ROWS = 5_000
"""Source rows up to which networks are trained again on all of them; other members always are."""
SAMPLE_ROWS = 20_000
"""Target rows that stand for all where memory does not hold them."""
TRAINING_ROWS = 200_000
"""Source rows that members learn from where memory does not hold all."""


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
    """Target rows, the missing block hidden; a sample of very many."""
    whole: Sample | None
    """All source rows, where they are at hand."""
    folds: Sequence[Fold] = ()
    """Ways to hold rows out; none where nothing is measured."""
    fingerprint: str = field(default="", compare=False)
    measured: Continuous | None = None
    """Observed columns of numbers, where the inputs are those of a table."""
    labelled: Sample | None = None
    """Target rows whose labels are known and used; they are among `target` too."""
    unlabelled: Matrix | None = None
    """Complete rows without a label."""

    def beside(self, labelled: Sample) -> Matrix:
        """Return the inputs of labelled rows, and of all complete rows without a label."""
        inputs = labelled.inputs
        return inputs if self.unlabelled is None else np.concatenate([inputs, self.unlabelled])

    def with_others(self, unlabelled: Matrix | None) -> PreparedRows:
        """Return the same with complete rows without a label, if there are any."""
        if unlabelled is None:
            return self
        digest = hashlib.sha256(self.fingerprint.encode() + unlabelled.tobytes()).hexdigest()
        return replace(self, unlabelled=unlabelled, fingerprint=digest)

    @property
    def sample(self) -> Sample:
        """All source rows, or those to train on where only a sample is at hand."""
        return self.folds[0].training if self.whole is None else self.whole

    @property
    def refits_networks(self) -> bool:
        """Whether the final networks are trained on all rows, after measuring on those held out.

        Those of several folds answer together instead: nothing is trained once more.
        """
        whole = self.whole
        if whole is None or len(self.folds) > 1:
            return False
        rows = len(whole if self.blocks.is_table else self.beside(whole))
        return not self.folds or rows <= REFIT_ROWS


def prepared_in_memory(
    blocks: Blocks,
    target_type: TargetType,
    source: Sample,
    target: Matrix,
    *,
    hold_out: bool,
    seed: int,
    thorough: bool = False,
    few: bool = False,
) -> PreparedRows:
    """Return rows that are in memory, split where some are held out.

    Fewer than :data:`SMALL` source rows of a table are held out fold by fold, and any if it is to
    be `thorough`; otherwise, and of images, whose networks take longer, a fifth is held out. Where
    `few` have a label, a third is held out in turn. None is where a class has too few rows for it.
    """
    in_turn = thorough or (blocks.is_table and len(source) < SMALL)
    if hold_out and (in_turn or few):
        hold_out = rarest_class(target_type.strata(source.labels)) > FOLDS_OF_FEW
    count = FOLDS_OF_FEW if few else FOLDS
    parts = _folds(source, target_type, seed, count, in_turn=in_turn) if hold_out else []
    digest = hashlib.sha256()
    for array in (source.inputs, source.labels, target):
        digest.update(np.ascontiguousarray(array).tobytes())
    return PreparedRows(blocks, target_type, target, source, parts, digest.hexdigest())


def is_resident(inferred: InferredTables, settings: FitSettings) -> bool:
    """Whether the prepared rows of both tables fit into the memory given to them."""
    rows = inferred.source.rows + inferred.unlabelled + inferred.target.rows
    return rows * len(inferred.schema.inputs) * np.float32().nbytes <= settings.memory


def prepared_tables(inferred: InferredTables, settings: FitSettings) -> PreparedRows:
    """Return the rows of both tables, or a sample of those that memory does not hold."""
    schema, kind = inferred.schema, inferred.schema.target_type
    if not is_resident(inferred, settings):
        return _sampled(inferred, settings)
    rows_of = RowStream(inferred.source.table, schema, is_source=True)
    source = Sample(*rows_of.all())
    given = None if schema.weight is None else row_weights(inferred.source.table, schema)
    weights = kind.class_weights(source.labels, given, settings.class_weight)
    target, labels = _target_stream(inferred).all()
    rows = prepared_in_memory(
        schema.blocks,
        kind,
        replace(source, weights=weights),
        target,
        hold_out=settings.holds_out("table"),
        seed=settings.seed,
        thorough=settings.effort == "best",
        few=bool(inferred.unlabelled),
    )
    labelled = _labelled([(target, labels)], kind) if inferred.labelled else None
    rows = replace(rows, measured=measured_columns(schema), labelled=labelled)
    return rows.with_others(_unlabelled(rows_of, inferred, TRAINING_ROWS))


def _unlabelled(stream: RowStream, inferred: InferredTables, most: int) -> Matrix | None:
    """Return complete rows without a label, a sample of very many."""
    if not inferred.unlabelled:
        return None
    return replace(stream, share=0.0, unlabelled=True).at_most(most, inferred.unlabelled)[0]


def _target_stream(inferred: InferredTables) -> RowStream:
    some = bool(inferred.labelled)
    return RowStream(inferred.target.table, inferred.schema, is_source=False, some_labelled=some)


def _labelled(chunks: Iterable[Chunk], kind: TargetType) -> Sample:
    """Return the target rows that have a label, up to :data:`MOST_HELD_OUT` of them."""
    kept = [(rows[kind.known(labels)], labels[kind.known(labels)]) for rows, labels in chunks]
    inputs, labels = (np.concatenate([chunk[part] for chunk in kept]) for part in range(2))
    return Sample(inputs[:MOST_HELD_OUT], labels[:MOST_HELD_OUT])


def _sampled(inferred: InferredTables, settings: FitSettings) -> PreparedRows:
    """Read both tables in batches, and keep what memory holds: rows to train on and to measure."""
    schema, kind = inferred.schema, inferred.schema.target_type
    if schema.weight is not None or settings.class_weight is not None:
        raise InputError(
            "Weights of rows and classes need the tables in memory, and these are sampled: give "
            "more memory, or leave the weights out."
        )
    at_hand = settings.memory // (2 * np.float32().nbytes * len(schema.inputs))
    most = max(SAMPLE_ROWS, min(TRAINING_ROWS, at_hand))
    share = min(HELD_OUT, MOST_HELD_OUT / inferred.source.rows)
    table, seed = inferred.source.table, settings.seed
    source = RowStream(table, schema, is_source=True, share=share, seed=seed)
    held_out = Sample(*source.all(held_out=True))
    training = Sample(*source.at_most(most, inferred.source.rows))
    stream = _target_stream(inferred)
    target = stream.at_most(SAMPLE_ROWS, inferred.target.rows)[0]
    labelled = _labelled(stream.chunks(), kind) if inferred.labelled else None
    folds = [Fold(training, held_out)]
    measured = measured_columns(schema)
    unlabelled = _unlabelled(source, inferred, most)
    return PreparedRows(
        schema.blocks, kind, target, None, folds, "", measured, labelled, unlabelled
    )


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


def _folds(source: Sample, kind: TargetType, seed: int, count: int, *, in_turn: bool) -> list[Fold]:
    strata = kind.strata(source.labels)
    if in_turn and rarest_class(strata) >= 2:
        splits = list(folds(strata, count, seed).split(source.inputs, strata))
    else:
        size = min(MOST_HELD_OUT, max(round(HELD_OUT * len(strata)), int(strata.max()) + 1))
        splits = [held_out_count(strata, size, seed)]
    return [Fold(source[split[0]], source[split[1]], split) for split in splits]
