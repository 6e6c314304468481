"""The one training loop: phases, epochs, steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from halfseen.errors import TrainingDivergedError
from halfseen.networks.objective import Objective
from halfseen.networks.terms.term import Batch, Losses
from halfseen.networks.training.batches import Batches
from halfseen.networks.training.checkpoints import Checkpoint, read_checkpoint, write_checkpoint
from halfseen.networks.training.optimizer import Adam, make_optimizer
from halfseen.networks.training.phases import Phase, ramp
from halfseen.progress import Progress

History = list[dict[str, Any]]
"""One record per epoch: phase, epoch, mean of each named loss, rate, strength, seconds."""

EpochHook = Callable[[Objective, Mapping[str, Any]], Mapping[str, Any] | None]
"""Called after each epoch with the objective and its record; what it returns joins the record."""


@dataclass
class Trainer:
    """Trains an objective through all phases.

    Each epoch draws its randomness from the seed, the phase and the epoch's number alone. So a
    run that was killed and resumed from its checkpoint ends with the very same weights. The
    caller's random state is left as it was.

    The objective is trained in place, on the device where it is.
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

    def train(self, phases: Sequence[Phase]) -> History:
        """Run what is left of the phases and return the whole history."""
        saved = None if self.checkpoint is None else read_checkpoint(self.checkpoint, self.run)
        history: History = []
        if saved is not None:
            self.objective.load_state_dict(saved.model)
            history = saved.history
        # Dropout and augmentation draw from the global generator; fork_rng gives it back untouched.
        with self.progress, torch.random.fork_rng(devices=_cuda_devices(self.objective)):
            self.progress.start(phases, done=len(history))
            for number, phase in enumerate(phases):
                if saved is None or number > saved.phase:
                    self._phase(number, phase, history)
                elif number == saved.phase:
                    self._phase(number, phase, history, saved)
        self.objective.eval()
        return history

    @cached_property
    def _device(self) -> torch.device:
        return next(self.objective.parameters()).device

    def _phase(
        self, number: int, phase: Phase, history: History, saved: Checkpoint | None = None
    ) -> None:
        """Run what is left of one phase, and add to the history."""
        names = {parameter: name for name, parameter in self.objective.named_parameters()}
        optimizer = make_optimizer(self.objective, phase)
        first = 0
        if saved is not None:
            optimizer.restore(names, saved.optimizer)
            first = saved.epoch
        for epoch in range(first, phase.epochs):
            record = self._epoch(phase, epoch, optimizer, derived_seed(self.seed, number, epoch))
            if is_looked_at(epoch, phase.epochs, self.looks):
                self._look(record)
            history.append(record)
            self.progress.end_epoch(record)
            if self.checkpoint is not None:
                state = Checkpoint(
                    self.run,
                    number,
                    epoch + 1,
                    self.objective.state_dict(),
                    optimizer.tensors(names),
                    history,
                )
                write_checkpoint(self.checkpoint, state)

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
        steps = phase.steps(self.batches)
        values: dict[str, list[float]] = {}
        strength = 0.0
        batches = self.batches.epoch(phase.batch_size, seed)
        for step, batch in enumerate(islice(batches, steps)):
            done = (epoch * steps + step) / (phase.epochs * steps)
            strength = ramp(done)
            for group in optimizer.groups:
                group.rate = phase.rate(group.part, done)
            for name, value in self._step(phase, epoch, batch, done, optimizer).items():
                values.setdefault(name, []).append(value)
            self.progress.step(phase, epoch, step, steps)
        return {
            "phase": phase.name,
            "epoch": epoch + 1,
            # A term may start within the epoch: its mean is that over its own steps.
            **{name: sum(found) / len(found) for name, found in values.items()},
            "strength": strength if phase.name == "joint" else None,
            "learning_rate": optimizer.groups[0].rate,
            "seconds": time.perf_counter() - started,
        }

    def _step(
        self, phase: Phase, epoch: int, batch: Batch, progress: float, optimizer: Adam
    ) -> dict[str, float]:
        """Take one gradient step and return the losses as numbers."""
        losses = self.objective(
            phase.name, batch.to(self._device), progress=progress, strength=ramp(progress)
        )
        values = _finite_values(losses, phase, epoch)
        optimizer.clear()
        torch.autograd.backward(self.objective.total(phase.name, losses))
        clip = self.objective.options.training.gradient_clip
        if clip is not None:
            parameters = [p for group in optimizer.groups for p in group.parameters]
            torch.nn.utils.clip_grad_norm_(parameters, clip)
        optimizer.step()
        self.objective.after_step(phase.name, progress)
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


def _cuda_devices(objective: Objective) -> list[int]:
    device = next(objective.parameters()).device
    return [device.index or 0] if device.type == "cuda" else []
