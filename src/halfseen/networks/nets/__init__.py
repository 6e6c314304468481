"""Encoders, generator and classifier, and the module that joins them."""

from __future__ import annotations

from halfseen.networks.nets.encoders import ConvEncoder, EncoderFactory, VectorEncoder
from halfseen.networks.nets.layers import initialize, mlp
from halfseen.networks.nets.networks import (
    Latents,
    Networks,
    apply_to_both,
    build_networks,
)
from halfseen.networks.nets.prediction import (
    chunks,
    complete_latents,
    complete_log_probabilities,
    complete_probabilities,
    latents,
    log_probabilities,
    probabilities,
)

__all__ = [
    "ConvEncoder",
    "EncoderFactory",
    "Latents",
    "Networks",
    "VectorEncoder",
    "apply_to_both",
    "build_networks",
    "chunks",
    "complete_latents",
    "complete_log_probabilities",
    "complete_probabilities",
    "initialize",
    "latents",
    "log_probabilities",
    "mlp",
    "probabilities",
]
