"""Probabilities and latents of many rows, in chunks that stay in cache."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from halfseen.networks.nets.networks import Networks

__all__ = [
    "chunks",
    "complete_latents",
    "complete_log_probabilities",
    "complete_probabilities",
    "latents",
    "log_probabilities",
    "probabilities",
]

CHUNK = 1024


def chunks(rows: Tensor, size: int = CHUNK) -> Iterator[Tensor]:
    """Yield consecutive slices of the rows."""
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def probabilities(networks: Networks, rows: Tensor, *, samples: int = 1, seed: int = 0) -> Tensor:
    """Return class probabilities of target rows.

    With a stochastic generator, the probabilities of several imputations are averaged; the
    noise depends on the seed alone, so the same rows get the same answer.
    """
    if not networks.noise_size:
        samples = 1

    def averaged(chunk: Tensor) -> Tensor:
        return torch.stack([networks(chunk).softmax(1) for _ in range(samples)]).mean(0)

    return _in_chunks(networks, rows, averaged, seed)


def log_probabilities(
    networks: Networks, rows: Tensor, *, samples: int = 1, seed: int = 0
) -> Tensor:
    """Return the logarithms of :func:`probabilities`, without rounding small ones to zero."""
    samples = samples if networks.noise_size else 1

    def averaged(chunk: Tensor) -> Tensor:
        drawn = torch.stack([networks(chunk).double().log_softmax(1) for _ in range(samples)])
        return drawn[0] if samples == 1 else drawn.logsumexp(0) - math.log(samples)

    return _in_chunks(networks, rows, averaged, seed)


def complete_log_probabilities(networks: Networks, rows: Tensor) -> Tensor:
    """Return log-probabilities of rows whose missing block is there: f(g1(x1), g2(x2))."""

    def scored(chunk: Tensor) -> Tensor:
        return networks.complete_logits(chunk).double().log_softmax(1)

    return _in_chunks(networks, rows, scored, 0)


def complete_probabilities(networks: Networks, rows: Tensor) -> Tensor:
    """Return class probabilities of rows whose missing block is there: f(g1(x1), g2(x2))."""
    return _in_chunks(networks, rows, lambda chunk: networks.complete_logits(chunk).softmax(1), 0)


def complete_latents(networks: Networks, rows: Tensor) -> Tensor:
    """Return the latents z_S = (g1(x1), g2(x2)) of rows whose missing block is there."""
    return _in_chunks(networks, rows, networks.source_latent, 0)


def latents(networks: Networks, rows: Tensor, *, seed: int = 0) -> Tensor:
    """Return the latents ẑ_T that the classifier sees of target rows."""
    return _in_chunks(networks, rows, networks.target_latent, seed)


@torch.no_grad()
def _in_chunks(
    networks: Networks, rows: Tensor, function: Callable[[Tensor], Tensor], seed: int
) -> Tensor:
    device = next(networks.parameters()).device
    training = networks.training
    networks.eval()
    try:
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(seed)
            return torch.cat([function(chunk.to(device)).cpu() for chunk in chunks(rows)])
    finally:
        networks.train(training)
