"""Trained networks asked about rows: what members, scores and reports need of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from halfseen.arrays import Floats
from halfseen.networks import nets
from halfseen.networks.methods import Method
from halfseen.options import Options

__all__ = ["Predictor"]

Matrix = npt.NDArray[np.float32]
_BATCH = 128
"""Rows per batch where batch-norm statistics are estimated."""


@dataclass(eq=False)
class Predictor:
    """Networks as they predict.

    Parameters
    ----------
    networks
        g1, g2, r and f.
    options, seed
        Settings of the training; the seed is also that of a stochastic generator's noise.
    """

    networks: nets.Networks
    options: Options
    seed: int = 0

    @property
    def method(self) -> Method:
        """Which of the seven models they are."""
        return self.networks.method

    def log_probabilities(self, rows: Matrix) -> Floats:
        """Return log-probabilities of rows whose missing block is hidden."""
        samples = self.options.generator.prediction_samples
        inputs = torch.from_numpy(rows)
        scored = nets.log_probabilities(self.networks, inputs, samples=samples, seed=self.seed)
        found: Floats = scored.numpy()
        return found

    def complete_log_probabilities(self, rows: Matrix) -> Floats | None:
        """Return log-probabilities of rows with their missing block, by f(g1(x1), g2(x2))."""
        if not self.method.imputes:
            return None
        found: Floats = nets.complete_log_probabilities(
            self.networks, torch.from_numpy(rows)
        ).numpy()
        return found

    def latents(self, rows: Matrix, *, draw: int = 0) -> Matrix:
        """Return ẑ = (z1, ẑ2) of rows whose missing block is hidden; `draw` varies the noise."""
        seed = self.seed + draw
        found: Matrix = nets.latents(self.networks, torch.from_numpy(rows), seed=seed).numpy()
        return found

    def complete_latents(self, rows: Matrix) -> Matrix:
        """Return z = (z1, z2) of rows whose missing block is there."""
        found: Matrix = nets.complete_latents(self.networks, torch.from_numpy(rows)).numpy()
        return found

    @contextmanager
    def source_statistics(self, rows: Matrix) -> Iterator[None]:
        """Let batch-norm layers that hold the target's statistics hold the source's for a while.

        Training normalises each domain by its own statistics. A source row under the target's is
        none that the classifier has ever seen, and its loss says nothing.
        """
        networks = self.networks
        if not (self.options.networks.prediction_statistics == "target" and self.method.adapts):
            yield
            return
        kept = {name: buffer.clone() for name, buffer in networks.named_buffers()}
        device = next(networks.parameters()).device
        chunks = nets.chunks(torch.from_numpy(rows), _BATCH)
        try:
            networks.estimate_statistics(chunk.to(device) for chunk in chunks)
            yield
        finally:
            with torch.no_grad():
                for name, buffer in networks.named_buffers():
                    buffer.copy_(kept[name])
