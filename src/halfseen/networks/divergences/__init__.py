"""How far apart two batches of latents are: callables on two batches that give a scalar.

A new divergence is a module with ``forward(first, second) -> scalar`` and one call of
:func:`register`. It need not know about ramps: the objective scales the gradient of the latents
that it hands over.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from halfseen.errors import OptionError
from halfseen.networks.divergences.adversarial import AdversarialDivergence, critic_loss
from halfseen.networks.divergences.gradients import reverse_gradient, scale_gradient
from halfseen.networks.divergences.transport import (
    TransportDivergence,
    squared_distances,
    transport_cost,
)
from halfseen.options import Options

__all__ = [
    "AdversarialDivergence",
    "TransportDivergence",
    "critic_loss",
    "make_divergence",
    "register",
    "reverse_gradient",
    "scale_gradient",
    "squared_distances",
    "transport_cost",
]

Factory = Callable[[int, Options], nn.Module]


def _adversarial(latent_size: int, options: Options) -> nn.Module:
    return AdversarialDivergence(
        latent_size,
        widths=options.networks.critic_widths,
        normalize=options.networks.normalization,
        initialization=options.networks.initialization,
    )


_FACTORIES: dict[str, Factory] = {
    "adversarial": _adversarial,
    "transport": lambda latent_size, options: TransportDivergence(),
}


def register(name: str, factory: Factory) -> None:
    """Add a divergence: `factory(latent_size, options)` returns its module."""
    _FACTORIES[name] = factory


def make_divergence(name: str, latent_size: int, options: Options) -> nn.Module:
    """Return a divergence by name, for latents of one size."""
    if name not in _FACTORIES:
        raise OptionError(f"divergence={name!r} is unknown; choose one of {sorted(_FACTORIES)}.")
    return _FACTORIES[name](latent_size, options)
