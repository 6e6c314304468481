"""From a problem in memory to a trained objective: everything between data and weights."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from halfseen.arrays import Floats
from halfseen.blocks import Blocks
from halfseen.errors import OptionError
from halfseen.networks.methods import Method
from halfseen.networks.nets import EncoderFactory, chunks
from halfseen.networks.objective import Objective, build_objective
from halfseen.networks.training import augmentation as augmentations
from halfseen.networks.training.augmentation import Augmentation
from halfseen.networks.training.batches import LabelledRows, ResidentBatches, Rows
from halfseen.networks.training.choice import EpochChoice
from halfseen.networks.training.loop import EpochHook, History, Trainer, derived_seed
from halfseen.networks.training.phases import plan_phases
from halfseen.networks.training.priors import refinement_prior
from halfseen.networks.training.progress import NoProgress, Progress
from halfseen.options import Options

__all__ = ["TrainingProblem", "fit_objective", "resolve_device"]

_INITIALIZATION = 2**20
"""Keeps the seed of the initial weights apart from those of the phases."""


@dataclass(frozen=True)
class TrainingProblem:
    """What a model learns from: labelled source rows and unlabelled target rows."""

    blocks: Blocks
    source: LabelledRows
    target: Rows
    n_classes: int

    @staticmethod
    def resident(blocks, source, target, n_classes):  # type: ignore
        """Shim."""
        return TrainingProblem(blocks, source, target, n_classes)

    def to(self, device: torch.device) -> TrainingProblem:
        """Return the problem with its tensors on a device."""
        source = LabelledRows(self.source.inputs.to(device), self.source.labels.to(device))
        return TrainingProblem(
            self.blocks, source, Rows(self.target.inputs.to(device)), self.n_classes
        )


def fit_objective(
    problem: TrainingProblem,
    method: Method,
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
    epoch_choice: EpochChoice | None = None,
    evaluations: int | None = None,
) -> tuple[Objective, History]:
    """Train one model on a problem; return it with its history.

    Scores of epochs and the `on_epoch` hook see the networks as they would predict, at most
    `evaluations` times in a phase.
    """
    place = resolve_device(device)
    problem = problem.to(place)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derived_seed(seed, _INITIALIZATION))
        objective = build_objective(problem.blocks, method, problem.n_classes, options, encoder)
    objective.to(place)
    if refine and options.refinement.selection == "prior":
        objective.target_prior = torch.from_numpy(_prior(problem, seed))
    batches = ResidentBatches(problem.source, problem.target, balanced=options.training.balanced)
    rows = min(len(problem.source), len(problem.target))
    phases = plan_phases(options, method, batches, rows=rows, refine=refine)

    def match_target_statistics() -> None:
        if options.networks.prediction_statistics == "target" and method.adapts:
            size = phases[-1].batch_size if phases else rows
            objective.networks.estimate_statistics(chunks(problem.target.inputs, size))

    trainer = Trainer(
        objective,
        batches,
        seed,
        augmentation or augmentations.named(options.training.augmentation),
        progress or NoProgress(),
        on_epoch,
        checkpoint,
        "" if checkpoint is None else _fingerprint(problem, objective, seed, refine, epoch_choice),
        epoch_choice,
        before_looking=match_target_statistics,
        looks=evaluations,
    )
    history = trainer.train(phases)
    match_target_statistics()
    objective.eval()
    return objective, history


def _prior(problem: TrainingProblem, seed: int) -> Floats:
    source, target = (
        problem.blocks.flat(rows.cpu(), "observed").numpy()
        for rows in (problem.source.inputs, problem.target.inputs)
    )
    labels = problem.source.labels.cpu().numpy()
    return refinement_prior(source, labels, target, classes=problem.n_classes, seed=seed).used()


def resolve_device(device: str) -> torch.device:
    """Return the device to train on; ``auto`` takes a GPU where there is one.

    Examples
    --------
    >>> resolve_device("cpu")
    device(type='cpu')
    """
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


def _fingerprint(
    problem: TrainingProblem,
    objective: Objective,
    seed: int,
    refine: bool,
    epoch_choice: EpochChoice | None,
) -> str:
    """Hash what determines a run, so that a checkpoint is never continued by another.

    An encoder or augmentation of the user's own counts by the shape of its tensors only.
    """
    facts = {
        "blocks": problem.blocks.to_dict(),
        "method": objective.networks.method.name,
        "options": objective.options.model_dump(mode="json"),
        "tensors": {name: list(tensor.shape) for name, tensor in objective.state_dict().items()},
        "seed": seed,
        "refine": refine,
    }
    if epoch_choice is not None:
        facts["epoch_choice"] = [epoch_choice.name, epoch_choice.patience]
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    tensors: list[Tensor] = [problem.source.inputs, problem.source.labels, problem.target.inputs]
    for tensor in tensors:
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
