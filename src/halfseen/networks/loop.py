"""The one training loop: phases, epochs, steps; its schedules, optimiser and checkpoints.

Schedules are pure functions of progress p in [0, 1]: resuming a run cannot shift them.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.optim.adamw import adamw

from halfseen.errors import InputError, TrainingDivergedError
from halfseen.networks.objective import Objective
from halfseen.networks.terms import Batch, Losses, Part, PhaseName
from halfseen.outputs import atomic_write
from halfseen.progress import Progress

ALL_NETWORKS = frozenset({"encoder", "missing_encoder", "generator", "classifier"})
SEAL = hashlib.sha256().digest_size
"""Bytes at the end of a checkpoint."""
History = list[dict[str, Any]]
"""One record per epoch: phase, epoch, mean of each named loss, rate, strength, seconds."""
EpochHook = Callable[[Objective, Mapping[str, Any]], Mapping[str, Any] | None]
"""Called after each epoch with the objective and its record; what it returns joins the record."""


def ramp(progress: float) -> float:
    """Strength of adaptation and imputation, from 0 to 1: s = 2 / (1 + exp(-10 p)) - 1."""
    return 2.0 / (1.0 + math.exp(-10.0 * progress)) - 1.0


def annealed_rate(initial: float, progress: float, decay: float = 10.0) -> float:
    """Learning rate lr_i / (1 + a p)^0.75, with a = 10, or 30 for r and D2 on the ads data."""
    return initial * math.pow(1.0 + decay * progress, -0.75)


class Batches(Protocol):
    """Any source of batches that the loop can train on."""

    def steps(self, batch_size: int) -> int:
        """Return how many steps an epoch takes."""

    def epoch(self, batch_size: int, seed: int) -> Iterator[Batch]:
        """Yield the batches of one epoch; the same seed yields the same."""


@dataclass(frozen=True)
class Phase:
    """Some epochs with one loss, one batch size and one rule for the learning rates."""

    name: PhaseName
    epochs: int
    batch_size: int
    """How many rows of each domain a step sees."""
    learning_rate: float
    """At the start of the phase."""
    networks: frozenset[str] = ALL_NETWORKS
    """Which of g1, g2, r and f are updated; what a term brings is in the term's phases."""
    anneals: bool = False
    """Whether rates decay as lr / (1 + a p)^0.75, with each part's own a."""
    epoch_steps: int | None = None
    """Steps after which an epoch ends, where a pass over the source has more."""

    def steps(self, batches: Batches) -> int:
        steps = batches.steps(self.batch_size)
        return min(self.epoch_steps or steps, steps)

    def rate(self, part: Part, progress: float) -> float:
        initial = self.learning_rate * part.rate_factor
        return annealed_rate(initial, progress, part.decay if self.anneals else 0.0)


@dataclass
class Adam:
    """Adam with decoupled weight decay: PyTorch's own step (:func:`torch.optim.adamw.adamw`).

    Its class imports the compiler at the first use, two seconds that a small fit does not have.
    """

    groups: Sequence[tuple[Part, list[nn.Parameter]]]
    betas: tuple[float, float]
    weight_decay: float
    state: dict[nn.Parameter, dict[str, Tensor]] = field(default_factory=dict)
    """Moments and step counter of each parameter that has had a gradient."""

    @classmethod
    def of(cls, objective: Objective, phase: Phase) -> Adam:
        """Return one that moves what a phase trains."""
        options = objective.options.training
        parts = [part for part in objective.network_parts() if part.name in phase.networks]
        parts += [part for term in objective.terms_in(phase.name) for part in term.parts()]
        groups = [(part, list(part.module.parameters())) for part in parts]
        return cls([group for group in groups if group[1]], options.betas, options.weight_decay)

    @property
    def parameters(self) -> list[nn.Parameter]:
        return [parameter for _, own in self.groups for parameter in own]

    @torch.no_grad()
    def step(self, rate: Callable[[Part], float]) -> None:
        for part, parameters in self.groups:
            moved = [p for p in parameters if p.grad is not None]
            if not moved:
                continue
            states = [self._state(p) for p in moved]
            adamw(
                moved,  # type: ignore[arg-type]
                [p.grad for p in moved],  # type: ignore[misc]
                [s["exp_avg"] for s in states],
                [s["exp_avg_sq"] for s in states],
                [],
                [s["step"] for s in states],
                fused=moved[0].device.type in ("cpu", "cuda"),
                amsgrad=False,
                beta1=self.betas[0],
                beta2=self.betas[1],
                lr=rate(part),
                weight_decay=self.weight_decay,
                eps=1e-8,
                maximize=False,
            )

    def tensors(self, names: Mapping[nn.Parameter, str]) -> dict[str, Tensor]:
        """Return moments and counters as ``field/parameter``."""
        return {
            f"{field}/{names[parameter]}": tensor
            for parameter, own in self.state.items()
            for field, tensor in own.items()
        }

    @torch.no_grad()
    def restore(self, names: Mapping[nn.Parameter, str], tensors: Mapping[str, Tensor]) -> None:
        """Put saved tensors back, on the parameters' device and in their order in memory."""
        for parameter, name in names.items():
            if f"step/{name}" in tensors:
                for field, tensor in self._state(parameter).items():
                    tensor.copy_(tensors[f"{field}/{name}"])

    def _state(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        if parameter not in self.state:
            place = parameter.device if parameter.device.type == "cuda" else "cpu"
            self.state[parameter] = {
                "step": torch.zeros((), device=place),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }
        return self.state[parameter]


@dataclass(frozen=True)
class Checkpoint:
    """The state of a run between two epochs: tensors with facts in JSON, and a seal."""

    run: str
    """Fingerprint of everything that determines the run: data, options, seed."""
    phase: int
    """How many phases are finished."""
    epoch: int
    """How many epochs of the current phase are finished."""
    model: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor]
    """Adam's state, by ``field/parameter``."""
    history: History


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write the file whole or not at all."""
    facts = {name: getattr(checkpoint, name) for name in ("run", "phase", "epoch", "history")}
    tensors = {"facts": torch.frombuffer(bytearray(json.dumps(facts).encode()), dtype=torch.uint8)}
    for kind in ("model", "optimizer"):
        for name, tensor in getattr(checkpoint, kind).items():
            tensors[f"{kind}/{name}"] = tensor.detach().cpu().contiguous()
    content = save(tensors)
    with atomic_write(path) as partial:
        # Not by safetensors itself, whose error on a full disk is no OSError.
        partial.write_bytes(content + hashlib.sha256(content).digest())


def read_checkpoint(path: Path, run: str) -> Checkpoint | None:
    """Return the checkpoint of this very run, or None where there is none yet."""
    if not path.exists():
        return None
    content = path.read_bytes()
    content, seal = content[:-SEAL], content[-SEAL:]
    if hashlib.sha256(content).digest() != seal:
        raise InputError(
            f"{path} is no checkpoint of this version, or was changed after it was written: its "
            "SHA-256 is not the one at its end. Delete it to start anew."
        )
    tensors = load(content)
    facts = json.loads(tensors.pop("facts").numpy().tobytes())
    if facts["run"] != run:
        raise InputError(
            f"{path} belongs to another run (other data, options or seed); delete it, or give "
            "this run a checkpoint file of its own."
        )
    model, optimizer = (
        {name.removeprefix(kind): t for name, t in tensors.items() if name.startswith(kind)}
        for kind in ("model/", "optimizer/")
    )
    return Checkpoint(**facts, model=model, optimizer=optimizer)


@dataclass
class Trainer:
    """Trains an objective in place, on the device where it is, through all phases.

    Each epoch draws its randomness from the seed, the phase and the epoch's number alone. So a
    run that was killed and resumed from its checkpoint ends with the very same weights. The
    caller's random state is left as it was.
    """

    objective: Objective
    batches: Batches
    seed: int
    """Determines batches, dropout and augmentation."""
    progress: Progress = field(default_factory=Progress)
    on_epoch: EpochHook | None = None
    checkpoint: Path | None = None
    """File that keeps the state after every epoch."""
    run: str = ""
    """The run's fingerprint, in the checkpoint."""
    before_looking: Callable[[], None] | None = None
    """Called before an epoch is shown to `on_epoch`."""
    looks: int | None = None
    """The most epochs of a phase that are shown, the last one always; or all."""

    def __post_init__(self) -> None:
        self._device = next(self.objective.parameters()).device

    def train(self, phases: Sequence[Phase]) -> History:
        """Run what is left of the phases and return the whole history."""
        saved = None if self.checkpoint is None else read_checkpoint(self.checkpoint, self.run)
        history: History = []
        if saved is not None:
            self.objective.load_state_dict(saved.model)
            history = saved.history
        cuda = [self._device.index or 0] if self._device.type == "cuda" else []
        # Dropout and augmentation draw from the global generator; fork_rng gives it back untouched.
        with self.progress, torch.random.fork_rng(devices=cuda):
            self.progress.start(phases, done=len(history))
            for number, phase in enumerate(phases):
                if saved is None or number > saved.phase:
                    self._phase(number, phase, history)
                elif number == saved.phase:
                    self._phase(number, phase, history, saved)
        self.objective.eval()
        return history

    def _phase(
        self, number: int, phase: Phase, history: History, saved: Checkpoint | None = None
    ) -> None:
        """Run what is left of one phase, and add to the history."""
        names = {parameter: name for name, parameter in self.objective.named_parameters()}
        optimizer = Adam.of(self.objective, phase)
        if saved is not None:
            optimizer.restore(names, saved.optimizer)
        for epoch in range(0 if saved is None else saved.epoch, phase.epochs):
            record = self._epoch(phase, epoch, optimizer, derived_seed(self.seed, number, epoch))
            if is_looked_at(epoch, phase.epochs, self.looks):
                self._look(record)
            history.append(record)
            self.progress.end_epoch(record)
            if self.checkpoint is not None:
                state, moments = self.objective.state_dict(), optimizer.tensors(names)
                reached = Checkpoint(self.run, number, epoch + 1, state, moments, history)
                write_checkpoint(self.checkpoint, reached)

    def _look(self, record: dict[str, Any]) -> None:
        if self.on_epoch is None:
            return
        self.objective.eval()  # looking must not move running statistics
        with self.objective.predicting():
            if self.before_looking is not None:
                self.before_looking()
            record |= self.on_epoch(self.objective, record) or {}

    def _epoch(self, phase: Phase, epoch: int, optimizer: Adam, seed: int) -> dict[str, Any]:
        torch.manual_seed(seed)
        started = time.perf_counter()
        self.objective.train()
        steps, done = phase.steps(self.batches), 0.0
        values: dict[str, list[float]] = {}
        for step, batch in enumerate(islice(self.batches.epoch(phase.batch_size, seed), steps)):
            done = (epoch * steps + step) / (phase.epochs * steps)
            for name, value in self._step(phase, epoch, batch, done, optimizer).items():
                values.setdefault(name, []).append(value)
            self.progress.step(phase, epoch, step, steps)
        return {
            "phase": phase.name,
            "epoch": epoch + 1,
            # A term may start within the epoch: its mean is that over its own steps.
            **{name: sum(found) / len(found) for name, found in values.items()},
            "strength": ramp(done) if phase.name == "joint" else None,
            "learning_rate": phase.rate(optimizer.groups[0][0], done),
            "seconds": time.perf_counter() - started,
        }

    def _step(
        self, phase: Phase, epoch: int, batch: Batch, progress: float, optimizer: Adam
    ) -> dict[str, float]:
        """Take one gradient step and return the losses as numbers."""
        strength, objective = ramp(progress), self.objective
        losses = objective(phase.name, batch.to(self._device), progress=progress, strength=strength)
        values = _finite_values(losses, phase, epoch)
        for parameter in optimizer.parameters:
            parameter.grad = None
        torch.autograd.backward(objective.total(phase.name, losses))
        clip = objective.options.training.gradient_clip
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(optimizer.parameters, clip)
        optimizer.step(lambda part: phase.rate(part, progress))
        objective.after_step(phase.name, progress)
        return values


def _finite_values(losses: Losses, phase: Phase, epoch: int) -> dict[str, float]:
    stacked = torch.stack([loss.detach() for loss in losses.values()])
    values = dict(zip(losses, stacked.tolist(), strict=True))
    for name, value in values.items():
        if not np.isfinite(value):
            raise TrainingDivergedError(
                f"The {name} loss became {value} in epoch {epoch + 1} of the {phase.name} "
                f"phase. Try a lower training.learning_rate (it was {phase.learning_rate:g}), "
                "training.gradient_clip=1.0, or check the inputs for extreme values."
            )
    return values


def is_looked_at(epoch: int, epochs: int, looks: int | None) -> bool:
    """Tell whether an epoch, counted from zero, is one of so many that are looked at."""
    stride = 1 if looks is None else -(-epochs // looks)
    return (epochs - 1 - epoch) % stride == 0


def derived_seed(*numbers: int) -> int:
    """Mix numbers into one seed; neighbouring inputs give unrelated seeds."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])
