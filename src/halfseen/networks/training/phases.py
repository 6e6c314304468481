"""The plan of a run: warm-up on the source, joint training, refinement.

Schedules are pure functions of progress p in [0, 1]: resuming a run cannot shift them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from halfseen.networks.terms import Part, PhaseName
from halfseen.networks.training.batches import Batches
from halfseen.networks.variants import NetworkVariant
from halfseen.options import Inputs, Options

JOINT_STEPS: dict[Inputs, int] = {"table": 300, "image": 4000}
"""Steps that ``joint_epochs="auto"`` aims for, unless others are asked for."""
USUAL_BATCH: dict[Inputs, int] = {"table": 128, "image": 64}
"""Rows of each domain that ``batch_size="auto"`` gives a step, where there are enough."""
MOST_EPOCHS = 200
"""Epochs that ``auto`` gives at most: 100 rows get their steps too."""

SOURCE_NETWORKS = frozenset({"encoder", "missing_encoder", "classifier"})
ALL_NETWORKS = SOURCE_NETWORKS | {"generator"}


def ramp(progress: float) -> float:
    """Strength of adaptation and imputation, from 0 to 1: s = 2 / (1 + exp(-10 p)) - 1."""
    return 2.0 / (1.0 + math.exp(-10.0 * progress)) - 1.0


def annealed_rate(initial: float, progress: float, decay: float = 10.0) -> float:
    """Learning rate lr_i / (1 + a p)^0.75, with a = 10, or 30 for r and D2 on the ads data."""
    return initial * math.pow(1.0 + decay * progress, -0.75)


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
        return _at_most(self.epoch_steps, batches.steps(self.batch_size))

    def rate(self, part: Part, progress: float) -> float:
        initial = self.learning_rate * part.rate_factor
        return annealed_rate(initial, progress, part.decay if self.anneals else 0.0)


def plan_phases(
    options: Options, method: NetworkVariant, batches: Batches, *, rows: int, refine: bool
) -> list[Phase]:
    """Return the phases of a run on data whose smaller domain has `rows` rows."""
    batch_size = _batch_size(options.training.batch_size, rows, USUAL_BATCH[options.inputs])
    epoch_steps = options.training.epoch_steps
    steps = max(_at_most(epoch_steps, batches.steps(batch_size)), 1)
    aim = options.training.joint_steps or JOINT_STEPS[options.inputs]
    wanted = options.training.joint_epochs
    enough = min(max(-(-aim // steps), 5), MOST_EPOCHS)
    joint_epochs = enough if wanted == "auto" else wanted
    refined = ALL_NETWORKS if options.refinement.modules == "all" else frozenset({"classifier"})
    phases = [
        Phase(
            "warm-up",
            options.training.warmup_epochs,
            _batch_size(options.training.warmup_batch_size, rows, 32),
            options.training.learning_rate,
            SOURCE_NETWORKS,
            epoch_steps=epoch_steps,
        ),
        Phase(
            "joint",
            joint_epochs,
            batch_size,
            options.training.learning_rate * options.training.joint_rate_factor,
            anneals=True,
            epoch_steps=epoch_steps,
        ),
    ]
    if refine:
        rate = options.training.learning_rate * options.refinement.rate_factor
        epochs = options.refinement.epochs
        phases.append(Phase("refine", epochs, batch_size, rate, refined, epoch_steps=epoch_steps))
    return [phase for phase in phases if phase.epochs]


def _at_most(most: int | None, steps: int) -> int:
    return steps if most is None else min(most, steps)


def _batch_size(wanted: int | Literal["auto"], rows: int, usual: int) -> int:
    """Fit ``auto`` to the data: about twenty batches an epoch, of 16 rows up to the usual size."""
    if wanted == "auto":
        return max(min(usual, max(rows // 20, 16), rows), 2)
    return wanted
