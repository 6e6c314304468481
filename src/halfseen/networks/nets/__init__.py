"""Encoders, generator and classifier, and the module that joins them."""

from __future__ import annotations

from halfseen.networks.nets.encoders import ConvEncoder, EncoderFactory, VectorEncoder
from halfseen.networks.nets.layers import initialize, mlp, of_both
from halfseen.networks.nets.networks import CONTRAST, Latents, Networks, build_networks

__all__ = [
    "CONTRAST",
    "ConvEncoder",
    "EncoderFactory",
    "Latents",
    "Networks",
    "VectorEncoder",
    "build_networks",
    "initialize",
    "mlp",
    "of_both",
]
