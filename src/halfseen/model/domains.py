"""Both tables as training sees them: in memory or streamed, with source rows held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from halfseen.front.inference import Understanding
from halfseen.front.schema import TableSchema
from halfseen.front.streaming import RowStream, StreamedBatches
from halfseen.networks.methods import Method
from halfseen.networks.nets import Networks, chunks
from halfseen.networks.objective import build_objective
from halfseen.networks.training import (
    History,
    LabelledRows,
    Progress,
    Rows,
    Trainer,
    derived_seed,
    plan_phases,
)
from halfseen.networks.training.fitting import Problem, fit_objective, resolve_device
from halfseen.networks.training.parallel import present_ranks
from halfseen.networks.training.priors import refinement_prior
from halfseen.options import Options
from halfseen.splitting import folds, held_out_count

__all__ = [
    "Domains",
    "Fold",
    "Run",
    "Sample",
    "prepared_domains",
    "resident_domains",
    "streamed_domains",
]

HELD_OUT = 0.2
MOST_HELD_OUT = 100_000
"""A fifth of the source is held out to measure on, up to this many rows."""
SMALL = 1_000
"""Source rows below which every fifth is held out in turn, so that all rows are measured on."""
FOLDS = 5
REFIT_ROWS = 5_000
"""Source rows up to which the chosen model is trained again on all of them."""
SAMPLE_ROWS = 20_000
"""Rows of a streamed table that stand for all where a few will do."""


@dataclass(frozen=True)
class Sample:
    """Prepared source rows with their labels."""

    inputs: npt.NDArray[np.float32]
    labels: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, rows: npt.NDArray[np.intp]) -> Sample:
        return Sample(self.inputs[rows], self.labels[rows])


@dataclass(frozen=True)
class Fold:
    """Source rows to train on (or a sample of them), and rows held out."""

    training: Sample
    held_out: Sample


@dataclass(frozen=True)
class Run:
    """One training: the model, its settings, and where its state is kept between epochs."""

    method: Method
    options: Options
    seed: int
    refine: bool
    progress: Progress
    checkpoint: Path | None = None
    fingerprint: str = ""


class Domains(Protocol):
    """Both tables, the source split into folds.

    `target` may be a sample; `whole` has all source rows where they are few enough to train a
    model on them again.
    """

    schema: TableSchema
    folds: Sequence[Fold]
    target: npt.NDArray[np.float32]
    whole: Sample | None

    def train(self, run: Run, fold: int | None) -> tuple[Networks, History]:
        """Train on the rows that a fold does not hold out, or on the whole."""


@dataclass
class _Resident:
    schema: TableSchema
    folds: Sequence[Fold]
    target: npt.NDArray[np.float32]
    whole: Sample | None

    def train(self, run: Run, fold: int | None) -> tuple[Networks, History]:
        rows = self.whole if fold is None else self.folds[fold].training
        assert rows is not None
        problem = Problem(
            self.schema.blocks,
            LabelledRows(torch.from_numpy(rows.inputs), torch.from_numpy(rows.labels)),
            Rows(torch.from_numpy(self.target)),
            len(self.schema.classes),
        )
        objective, history = fit_objective(
            problem,
            run.method,
            run.options,
            seed=run.seed,
            refine=run.refine,
            progress=run.progress,
            checkpoint=run.checkpoint,
        )
        return objective.networks.cpu(), history


def resident_domains(found: Understanding, seed: int) -> Domains:
    """Return both tables in memory.

    Fewer than :data:`SMALL` source rows are held out fold by fold; of more, a fifth is held out.
    """
    source = Sample(*RowStream(found.source.table, found.schema, is_source=True).all())
    target, _ = RowStream(found.target.table, found.schema, is_source=False).all()
    labels, rarest = source.labels, min(found.class_counts)
    if len(labels) < SMALL and rarest >= 2:
        splits = list(folds(labels, FOLDS, seed).split(source.inputs, labels))
    else:
        size = min(MOST_HELD_OUT, max(round(HELD_OUT * len(labels)), len(found.schema.classes)))
        splits = [held_out_count(labels, size, seed)]
    parts = [Fold(source[training], source[held_out]) for training, held_out in splits]
    return _Resident(found.schema, parts, target, source if len(labels) <= REFIT_ROWS else None)


def prepared_domains(schema: TableSchema, fold: Fold, target: npt.NDArray[np.float32]) -> Domains:
    """Return rows that were prepared elsewhere, with one part held out."""
    return _Resident(schema, [fold], target, None)


class _Streamed:
    """Both tables on disk, with samples of them in memory."""

    def __init__(self, found: Understanding, seed: int) -> None:
        self.whole: Sample | None = None
        self.schema = found.schema
        share = min(HELD_OUT, MOST_HELD_OUT / found.source.rows)
        source = RowStream(found.source.table, found.schema, is_source=True, share=share, seed=seed)
        target = RowStream(found.target.table, found.schema, is_source=False)

        def samples() -> tuple[Fold, npt.NDArray[np.float32]]:
            held_out = Sample(*source.all(held_out=True))
            training = Sample(*source.some(SAMPLE_ROWS / found.source.rows))
            return Fold(training, held_out), target.some(SAMPLE_ROWS / found.target.rows)[0]

        fold, self.target = present_ranks().from_first(samples)
        self.folds: Sequence[Fold] = [fold]
        self.batches = StreamedBatches(
            source,
            target,
            source_rows=found.source.rows - len(fold.held_out),
            target_rows=found.target.rows,
        )

    def train(self, run: Run, fold: int | None) -> tuple[Networks, History]:
        options, batches = run.options, self.batches
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derived_seed(run.seed, 0))
            objective = build_objective(
                self.schema.blocks, run.method, len(self.schema.classes), options
            )
        if run.refine and options.refine_thresholds == "prior":
            observed, known = list(self.schema.blocks.observed), self.folds[0].training
            found = refinement_prior(
                known.inputs[:, observed],
                known.labels,
                self.target[:, observed],
                classes=len(self.schema.classes),
                seed=run.seed,
            )
            objective.target_prior = torch.from_numpy(found.used())
        objective.to(resolve_device("cpu"))  # batches come from disk into main memory
        if objective.networks.standardize is not None:
            objective.networks.standardize.learn(torch.from_numpy(self.folds[0].training.inputs))
        rows = min(batches.source_rows, batches.target_rows)
        phases = plan_phases(options, run.method, batches, rows=rows, refine=run.refine)
        trainer = Trainer(
            objective,
            batches,
            run.seed,
            progress=run.progress,
            checkpoint=run.checkpoint,
            run=run.fingerprint,
        )
        history = trainer.train(phases)
        if options.prediction_statistics == "target" and run.method.adapts:
            sample = torch.from_numpy(self.target)
            objective.networks.estimate_statistics(chunks(sample, phases[-1].batch_size))
        return objective.networks.eval(), history


def streamed_domains(found: Understanding, seed: int) -> Domains:
    """Return both tables as streams from disk, with samples of them in memory."""
    return _Streamed(found, seed)
