"""From a problem to a trained objective: everything between data and weights."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from halfseen.blocks import Blocks
from halfseen.errors import OptionError
from halfseen.networks.nets.encoders import EncoderFactory
from halfseen.networks.objective import Objective, build_objective
from halfseen.networks.terms.term import Views
from halfseen.networks.training.augmentation import (
    Augmentation,
    Pixels,
    has_colours,
    is_more_uniform,
    looks_differ,
    make_augmentation,
    nearest_measured,
)
from halfseen.networks.training.batches import LabelledRows, ResidentBatches
from halfseen.networks.training.loop import EpochHook, History, Trainer, derived_seed
from halfseen.networks.training.phases import plan_phases
from halfseen.networks.variants import NetworkVariant
from halfseen.options import Options, make_options
from halfseen.progress import Progress

_INITIALIZATION = 2**20
"""Keeps the seed of initial weights apart from those of the phases."""

PIXEL_ROWS = 500
"""Images of each domain whose pixels are compared."""
STATISTICS_ROWS = 10_000
"""Target rows on which batch-norm statistics are estimated, at most."""


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
    batches = ResidentBatches(
        problem.source.to(place), problem.target.to(place), balanced=options.training.balanced
    )
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
    encoder: nn.Module | EncoderFactory | None = None,
    augmentation: Augmentation | None = None,
) -> Objective:
    pixels = _pixels(problem)
    if options.images is not None and options.images.standardize == "auto":
        # Other sources are shown in the light of others: both at once was worse.
        standardize = pixels.looks_differ and not pixels.is_uniform
        options = make_options({"images.standardize": standardize}, options)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derived_seed(seed, _INITIALIZATION))
        objective = build_objective(problem.blocks, method, problem.n_classes, options, encoder)
    objective.views = _views(pixels, problem.blocks, method, options, augmentation)
    return objective


def sample_of(rows: Tensor, most: int) -> Tensor:
    """Return at most so many rows, evenly spread."""
    return rows[:: max(-(-len(rows) // most), 1)]


def _pixels(problem: TrainingProblem) -> Pixels:
    blocks = problem.blocks
    if blocks.is_table:
        return Pixels()
    both = problem.source.inputs, problem.target
    images = [sample_of(rows, PIXEL_ROWS).cpu() for rows in both]
    source, target = (blocks.flat(rows, "observed") for rows in images)
    lowest = float(min(source.min(), target.min()))
    highest = float(max(source.max(), target.max()))
    coloured = [has_colours(blocks.hide(rows)) for rows in images]
    differ = looks_differ(source, target) or coloured[0] != coloured[1]
    return Pixels(None, lowest, highest, differ, is_more_uniform(source, target))


def _views(
    pixels: Pixels,
    blocks: Blocks,
    method: NetworkVariant,
    options: Options,
    own: Augmentation | None,
) -> Views:
    """Return the augmentations that the options name, or the user's own of the source."""
    training, measured = options.training, pixels
    if not blocks.is_table and blocks.missing and not method.needs_complete_target:
        nearest = nearest_measured(blocks.mask) if blocks.by_pixel else None
        measured = replace(pixels, shown=blocks.rows_of("observed"), nearest=nearest)
    return Views(
        own or make_augmentation(training.augmentation, pixels=pixels),
        make_augmentation(training.target_augmentation, of_target=True, pixels=measured),
    )


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
