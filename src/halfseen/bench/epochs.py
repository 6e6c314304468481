"""Choosing an epoch without target labels: what may be looked at, and the scores that do.

After each epoch every score in :data:`EPOCH_SCORES` is taken; a run then reports the target
metrics at the epoch that each score would have chosen. Another score is one line there.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from halfseen import nets
from halfseen.arrays import Floats
from halfseen.bench.metrics import row_losses
from halfseen.data import DomainPair
from halfseen.methods import Method
from halfseen.objective import Objective
from halfseen.selection import SCORES, Score
from halfseen.training import LabelledRows

__all__ = ["EPOCH_SCORES", "EpochView", "ScoringRows", "scoring_rows", "tensor"]


@dataclass(frozen=True)
class ScoringRows:
    """Rows on which label-free scores are taken, the same ones after every epoch.

    Parameters
    ----------
    training
        Some of the source rows that the model learns from.
    held_out
        Some of those that it does not: the source's test part.
    target
        Some of the unlabelled target rows that it adapts to.
    """

    training: LabelledRows
    held_out: LabelledRows
    target: Tensor


def scoring_rows(pair: DomainPair, method: Method, rows: int, seed: int) -> ScoringRows:
    """Draw at most so many rows of each part."""
    random = np.random.default_rng(seed)

    def some(count: int) -> npt.NDArray[np.intp]:
        return np.sort(random.permutation(count)[:rows])

    def labelled(inputs: npt.NDArray[np.float32], labels: npt.NDArray[np.int64]) -> LabelledRows:
        chosen = some(len(labels))
        return LabelledRows(tensor(inputs[chosen]), tensor(labels[chosen]))

    target = pair.target_train
    if method.needs_complete_target and pair.complete_target is not None:
        target = pair.complete_target.open("the Full models of a benchmark")[0]
    return ScoringRows(
        labelled(pair.source_train.inputs, pair.source_train.labels),
        labelled(pair.source_test.inputs, pair.source_test.labels),
        tensor(target[some(len(target))]),
    )


@dataclass(frozen=True)
class EpochView:
    """What a choice of epoch may see after one epoch: everything but the target's labels.

    Source rows are predicted as target rows are, without their x2, and normalised by the
    source's own batch statistics where the model adapted those to the target.
    """

    objective: Objective
    rows: ScoringRows
    seed: int = 0

    @cached_property
    def target_probabilities(self) -> Floats:
        """Predictions for the target rows."""
        return self._probabilities(self.rows.target)

    @cached_property
    def held_out_probabilities(self) -> Floats:
        """Predictions for the held-out source rows."""
        with self._source_statistics():
            return self._probabilities(self.rows.held_out.inputs)

    @cached_property
    def held_out_losses(self) -> Floats:
        """Cross-entropy of each held-out source row."""
        return row_losses(self.held_out_probabilities, self.rows.held_out.labels.numpy())

    @cached_property
    def target_latents(self) -> Tensor:
        """What the classifier sees of the target rows: ẑ_T."""
        return nets.latents(self.objective.networks, self.rows.target, seed=self.seed)

    @cached_property
    def training_latents(self) -> Tensor:
        """What it sees of the source's training rows, predicted as the target: ẑ_S."""
        with self._source_statistics():
            inputs = self.rows.training.inputs
            return nets.latents(self.objective.networks, inputs, seed=self.seed)

    @cached_property
    def held_out_latents(self) -> Tensor:
        """What it sees of the held-out source rows, predicted as the target: ẑ_S."""
        with self._source_statistics():
            inputs = self.rows.held_out.inputs
            return nets.latents(self.objective.networks, inputs, seed=self.seed)

    def _probabilities(self, rows: Tensor) -> Floats:
        samples = self.objective.options.prediction_samples
        found = nets.probabilities(self.objective.networks, rows, samples=samples, seed=self.seed)
        return found.double().numpy()

    @contextmanager
    def _source_statistics(self) -> Iterator[None]:
        """Normalise by the source's batch statistics for a while, as training did."""
        networks = self.objective.networks
        adapted = self.objective.options.prediction_statistics == "target"
        if not (adapted and networks.method.adapts):
            yield
            return
        kept = {name: buffer.clone() for name, buffer in networks.named_buffers()}
        try:
            networks.estimate_statistics(nets.chunks(self.rows.training.inputs))
            yield
        finally:
            with torch.no_grad():
                for name, buffer in networks.named_buffers():
                    buffer.copy_(kept[name])


def tensor(array: npt.NDArray[np.generic]) -> Tensor:
    """Return an array as a tensor that shares its memory; nothing here writes to one."""
    with warnings.catch_warnings():  # grey digits in three channels are read-only on purpose
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)


def _of_predictions(name: str) -> Score:
    score = SCORES[name]
    return Score(name, score.better, ("epoch",), lambda e: score.function(e.target_probabilities))


def _source_loss(epoch: EpochView) -> float:
    return float(epoch.held_out_losses.mean())


EPOCH_SCORES: dict[str, Score] = {
    score.name: score
    for score in (
        Score("source_loss", "lower", ("epoch",), _source_loss),
        _of_predictions("entropy"),
        _of_predictions("mutual_information"),
        _of_predictions("neighbourhood_density"),
    )
}
"""Scores of an :class:`EpochView` by name; `best` picks an epoch from their values."""
