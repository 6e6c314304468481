"""Trained networks asked about rows: what members, scores and reports need of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

from halfseen.arrays import Floats, Matrix
from halfseen.networks.nets.modules import Networks
from halfseen.networks.variants import NetworkVariant
from halfseen.options import Options

_CHUNK = 1024
"""Rows that are asked about at a time: they stay in cache."""
_BATCH = 128
"""Rows per batch where batch-norm statistics are estimated."""


@dataclass(eq=False)
class Predictor:
    """Networks as they predict.

    `options` are the settings of their training.
    """

    networks: Networks
    options: Options

    @property
    def method(self) -> NetworkVariant:
        return self.networks.method

    def log_probabilities(self, rows: Matrix) -> Floats:
        """Return log-probabilities of rows whose missing block is hidden."""
        return self._asked(rows, lambda chunk: _log_probabilities(self.networks(chunk)))

    raw_prediction = log_probabilities
    """What networks answer."""

    def raw_prediction_complete(self, rows: Matrix) -> Floats | None:
        """Return log-probabilities of rows with their missing block, by f(g1(x1), g2(x2))."""
        if not self.method.imputes:
            return None
        logits = self.networks.complete_logits
        return self._asked(rows, lambda chunk: _log_probabilities(logits(chunk)))

    def latents(self, rows: Matrix) -> Matrix:
        """Return ẑ = (z1, ẑ2) of rows whose missing block is hidden."""
        return self._asked(rows, self.networks.target_latent)

    compared_in = latents
    """Domains are compared in the latents."""

    def complete_latents(self, rows: Matrix) -> Matrix:
        """Return z = (z1, z2) of rows whose missing block is there."""
        return self._asked(rows, self.networks.source_latent)

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
        batches = torch.split(torch.from_numpy(rows), _BATCH)
        try:
            networks.estimate_statistics(batch.to(self._device) for batch in batches)
            yield
        finally:
            with torch.no_grad():
                for name, buffer in networks.named_buffers():
                    buffer.copy_(kept[name])

    @property
    def _device(self) -> torch.device:
        return next(self.networks.parameters()).device

    @torch.no_grad()
    def _asked(self, rows: Matrix, function: Callable[[Tensor], Tensor]) -> npt.NDArray[Any]:
        networks, device = self.networks, self._device
        chunks = torch.split(torch.from_numpy(rows), _CHUNK)
        training = networks.training
        networks.eval()
        try:
            found = torch.cat([function(chunk.to(device)).cpu() for chunk in chunks])
        finally:
            networks.train(training)
        array: npt.NDArray[Any] = found.numpy()
        return array


def _log_probabilities(logits: Tensor) -> Tensor:
    return logits.double().log_softmax(1)
