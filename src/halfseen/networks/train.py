"""From a problem to a trained objective: batches, the plan of the phases, and the run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from halfseen.blocks import Blocks
from halfseen.errors import InputError, OptionError
from halfseen.networks.augmentation import (
    Augmentation,
    Pixels,
    has_colours,
    is_more_uniform,
    looks_differ,
    make_augmentation,
    nearest_measured,
)
from halfseen.networks.encoders import EncoderFactory
from halfseen.networks.loop import (
    ALL_NETWORKS,
    Batches,
    EpochHook,
    History,
    Phase,
    Trainer,
    derived_seed,
)
from halfseen.networks.objective import Objective, build_objective
from halfseen.networks.terms import Batch, Views
from halfseen.networks.variants import NetworkVariant
from halfseen.options import Inputs, Options, make_options
from halfseen.progress import Progress

JOINT_STEPS: dict[Inputs, int] = {"table": 300, "image": 4000}
"""Steps that ``joint_epochs="auto"`` aims for, unless others are asked for."""
USUAL_BATCH: dict[Inputs, int] = {"table": 128, "image": 64}
"""Rows of each domain that ``batch_size="auto"`` gives a step, where there are enough."""
MOST_EPOCHS = 200
"""Epochs that ``auto`` gives at most: 100 rows get their steps too."""
PIXEL_ROWS = 500
"""Images of each domain whose pixels are compared."""
STATISTICS_ROWS = 10_000
"""Target rows on which batch-norm statistics are estimated, at most."""
_INITIALIZATION = 2**20
"""Keeps the seed of initial weights apart from those of the phases."""


@dataclass(frozen=True)
class LabelledRows:
    """Source rows with their labels: class positions, or class probabilities (soft labels)."""

    inputs: Tensor
    labels: Tensor
    weights: Tensor | None = None

    def __len__(self) -> int:
        return len(self.inputs)

    def to(self, device: torch.device) -> LabelledRows:
        weights = None if self.weights is None else self.weights.to(device)
        return LabelledRows(self.inputs.to(device), self.labels.to(device), weights)


class ResidentBatches:
    """Batches gathered by index from tensors in memory.

    An epoch passes once over the source (oversampled to equal classes when `balanced`), and
    takes as many target rows, reshuffled whenever they run out. The last incomplete batch is
    dropped: the assignment solver and batch normalisation want whole ones. Weights are scaled to
    one on average.
    """

    def __init__(self, source: LabelledRows, target: Tensor, *, balanced: bool) -> None:
        self.source, self.target, self.balanced = source, target, balanced
        # Of soft labels the most probable one counts.
        hard = source.labels.argmax(1) if source.labels.ndim == 2 else source.labels
        self._labels = hard.cpu().numpy()
        self.weights = None if source.weights is None else source.weights / source.weights.mean()
        counts = np.unique(self._labels, return_counts=True)[1]
        self._epoch_rows = int(counts.max() * len(counts)) if balanced else len(source)

    def steps(self, batch_size: int) -> int:
        for name, rows in (("source", len(self.source)), ("target", len(self.target))):
            if rows < batch_size:
                raise InputError(
                    f"The {name} has {rows} rows, fewer than one batch of {batch_size}; "
                    f"set training.batch_size to {max(rows, 2)} or less, or to 'auto'."
                )
        return self._epoch_rows // batch_size

    def epoch(self, batch_size: int, seed: int) -> Iterator[Batch]:
        """Yield the batches of one epoch: which rows a step sees depends on the seed alone."""
        random = np.random.default_rng(seed)
        if self.balanced:
            source_order = balanced_order(self._labels, random)
        else:
            source_order = random.permutation(len(self.source))
        rows = self.steps(batch_size) * batch_size
        target_order = _repeated_order(len(self.target), rows, random)
        device = self.source.inputs.device
        source_index = torch.as_tensor(source_order, device=device)
        target_index = torch.as_tensor(target_order, device=device)
        for first in range(0, rows, batch_size):
            chosen = source_index[first : first + batch_size]
            yield Batch(
                self.source.inputs[chosen],
                self.source.labels[chosen],
                self.target[target_index[first : first + batch_size]],
                None if self.weights is None else self.weights[chosen],
            )


def balanced_order(
    labels: npt.NDArray[np.int64], random: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Return row numbers in random order, every class repeated up to the largest one."""
    rows_of = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    largest = max(len(rows) for rows in rows_of)
    order = [rows[_repeated_order(len(rows), largest, random)] for rows in rows_of]
    return random.permutation(np.concatenate(order))


def _repeated_order(rows: int, wanted: int, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """Permutations of the rows, one after another, cut to the wanted length."""
    passes = -(-wanted // rows)
    return np.concatenate([random.permutation(rows) for _ in range(passes)])[:wanted]


def plan_phases(
    options: Options, method: NetworkVariant, batches: Batches, *, rows: int, refine: bool
) -> list[Phase]:
    """Return the phases of a run on data whose smaller domain has `rows` rows.

    They are a warm-up on the source, joint training, and refinement where it is asked for.
    """
    training, refinement = options.training, options.refinement
    batch_size = _batch_size(training.batch_size, rows, USUAL_BATCH[options.inputs])
    whole = batches.steps(batch_size)
    steps = max(min(training.epoch_steps or whole, whole), 1)
    aim = training.joint_steps or JOINT_STEPS[options.inputs]
    enough = min(max(-(-aim // steps), 5), MOST_EPOCHS)
    joint_epochs = enough if training.joint_epochs == "auto" else training.joint_epochs
    joint_rate = training.learning_rate * training.joint_rate_factor
    warmup_size = _batch_size(training.warmup_batch_size, rows, 32)
    phases = [
        Phase(
            "warm-up",
            training.warmup_epochs,
            warmup_size,
            training.learning_rate,
            ALL_NETWORKS - {"generator"},
        ),
        Phase("joint", joint_epochs, batch_size, joint_rate, anneals=True),
    ]
    if refine:
        rate = training.learning_rate * refinement.rate_factor
        moved = ALL_NETWORKS if refinement.modules == "all" else frozenset({"classifier"})
        phases.append(Phase("refine", refinement.epochs, batch_size, rate, moved))
    return [replace(one, epoch_steps=training.epoch_steps) for one in phases if one.epochs]


def _batch_size(wanted: int | Literal["auto"], rows: int, usual: int) -> int:
    """Fit ``auto`` to the data: about twenty batches an epoch, of 16 rows up to the usual size."""
    return max(min(usual, max(rows // 20, 16), rows), 2) if wanted == "auto" else wanted


@dataclass(frozen=True)
class TrainingProblem:
    """What a model learns from: labelled source rows and unlabelled target rows."""

    blocks: Blocks
    source: LabelledRows
    target: Tensor
    n_classes: int

    @property
    def rows(self) -> int:
        """How many rows the smaller domain has."""
        return min(len(self.source), len(self.target))

    def digest(self) -> str:
        found = hashlib.sha256()
        rows = [self.source.inputs, self.source.labels, self.target]
        for tensor in rows if self.source.weights is None else [*rows, self.source.weights]:
            found.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        return found.hexdigest()


def fit_objective(
    problem: TrainingProblem,
    method: NetworkVariant,
    options: Options,
    *,
    seed: int,
    refine: bool = False,
    encoder: nn.Module | EncoderFactory | None = None,
    augmentation: Augmentation | None = None,
    device: str = "auto",
    progress: Progress | None = None,
    on_epoch: EpochHook | None = None,
    checkpoint: Path | None = None,
    evaluations: int | None = None,
) -> tuple[Objective, History]:
    """Train one model on a problem; return it with its history.

    The `on_epoch` hook sees the networks as they would predict, at most `evaluations` times in a
    phase. An augmentation given replaces that of the source's options.
    """
    place = resolve_device(device)
    objective = _initial(problem, method, options, seed, encoder, augmentation).to(place)
    source, target = problem.source.to(place), problem.target.to(place)
    batches = ResidentBatches(source, target, balanced=options.training.balanced)
    phases = plan_phases(options, method, batches, rows=problem.rows, refine=refine)

    def match_target_statistics() -> None:
        if options.networks.prediction_statistics == "target" and method.adapts:
            size = phases[-1].batch_size if phases else problem.rows
            rows = torch.split(sample_of(problem.target, STATISTICS_ROWS), size)
            objective.networks.estimate_statistics(chunk.to(place) for chunk in rows)

    trainer = Trainer(
        objective,
        batches,
        seed,
        progress or Progress(),
        on_epoch,
        checkpoint,
        "" if checkpoint is None else _fingerprint(problem, objective, seed, refine),
        before_looking=match_target_statistics,
        looks=evaluations,
    )
    history = trainer.train(phases)
    objective.settle()
    match_target_statistics()
    objective.eval()
    return objective, history


def _initial(
    problem: TrainingProblem,
    method: NetworkVariant,
    options: Options,
    seed: int,
    encoder: nn.Module | EncoderFactory | None,
    own: Augmentation | None,
) -> Objective:
    """Return an untrained objective that augments as the options say, or as the user's own does."""
    blocks, training, pixels = problem.blocks, options.training, _pixels(problem)
    if options.images is not None and options.images.standardize == "auto":
        # Other sources are shown in the light of others: both at once was worse.
        standardize = pixels.looks_differ and not pixels.is_uniform
        options = make_options({"images.standardize": standardize}, options)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derived_seed(seed, _INITIALIZATION))
        objective = build_objective(blocks, method, problem.n_classes, options, encoder)
    measured = pixels
    if not blocks.is_table and blocks.missing and not method.needs_complete_target:
        nearest = nearest_measured(blocks.mask) if blocks.by_pixel else None
        measured = replace(pixels, shown=blocks.rows_of("observed"), nearest=nearest)
    objective.views = Views(
        own or make_augmentation(training.augmentation, pixels=pixels),
        make_augmentation(training.target_augmentation, of_target=True, pixels=measured),
    )
    return objective


def sample_of(rows: Tensor, most: int) -> Tensor:
    """Return at most so many rows, evenly spread."""
    return rows[:: max(-(-len(rows) // most), 1)]


def _pixels(problem: TrainingProblem) -> Pixels:
    blocks = problem.blocks
    if blocks.is_table:
        return Pixels()
    images = [sample_of(rows, PIXEL_ROWS).cpu() for rows in (problem.source.inputs, problem.target)]
    source, target = (blocks.flat(rows, "observed") for rows in images)
    lowest = float(min(source.min(), target.min()))
    highest = float(max(source.max(), target.max()))
    coloured = [has_colours(blocks.hide(rows)) for rows in images]
    differ = looks_differ(source, target) or coloured[0] != coloured[1]
    return Pixels(None, lowest, highest, differ, is_more_uniform(source, target))


def resolve_device(device: str) -> torch.device:
    """Return the device to train on; ``auto`` takes a GPU where there is one."""
    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        return torch.device(device)
    except RuntimeError:
        raise OptionError(
            f"device={device!r} is unknown; choose 'auto', 'cpu', 'cuda' or 'mps'."
        ) from None


def _fingerprint(problem: TrainingProblem, objective: Objective, seed: int, refine: bool) -> str:
    """Hash what determines a run, so that a checkpoint is never continued by another.

    An encoder or augmentation of the user's own counts by the shape of its tensors only.
    """
    facts = {
        "rows": problem.digest(),
        "blocks": problem.blocks.to_dict(),
        "method": objective.networks.method.name,
        "options": objective.options.model_dump(mode="json"),
        "tensors": {name: list(tensor.shape) for name, tensor in objective.state_dict().items()},
        "seed": seed,
        "refine": refine,
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
