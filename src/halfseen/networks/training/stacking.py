"""Several small networks trained as one: a step of five takes hardly longer than a step of one.

A stack is an objective whose linear layers hold one more axis, that of the networks; everything
else in it works row by row and need not know. Its losses are means over networks and rows alike,
so that their sum over the networks gives each the gradient it would have by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy

import torch
from torch import Tensor, nn

from halfseen.networks.divergences import AdversarialDivergence
from halfseen.networks.nets.encoders import VectorEncoder
from halfseen.networks.nets.layers import RowWise
from halfseen.networks.nets.networks import Networks
from halfseen.networks.objective import Objective
from halfseen.networks.terms import BUILT_IN
from halfseen.networks.terms.term import Batch
from halfseen.networks.training.batches import ResidentBatches
from halfseen.parallel import ALONE, Ranks

_STACKABLE = {
    *(Objective, Networks, VectorEncoder, AdversarialDivergence, *BUILT_IN.values()),
    *(nn.Linear, nn.Sequential, RowWise, nn.ModuleDict),
    *(nn.Dropout, nn.ReLU, nn.Sigmoid, nn.Identity),
}
"""What is made of linear layers, and of functions of single cells or rows."""


class StackedLinear(nn.Module):
    """As many linear layers as there are networks, each for its own rows."""

    def __init__(self, layer: nn.Linear, networks: int) -> None:
        super().__init__()
        # Inputs first, unlike in a linear layer: so its gradient comes in the order it is kept in.
        self.weight = _repeated(layer.weight.T, networks)
        self.bias = _repeated(layer.bias[None], networks)

    def forward(self, rows: Tensor) -> Tensor:
        """Return (networks, rows, outputs) of (networks, rows, inputs)."""
        return torch.baddbmm(self.bias, rows, self.weight)

    @torch.no_grad()
    def copy_to(self, layer: nn.Linear, network: int) -> None:
        layer.weight.copy_(self.weight[network].T)
        layer.bias.copy_(self.bias[network, 0])


class StackedBatches:
    """Batches of the rows of several problems that share a target, of shape (networks, rows, ...).

    Each network sees the rows that its own batches would show it; all take as many steps as the
    one with the fewest rows.
    """

    def __init__(self, parts: Sequence[ResidentBatches]) -> None:
        self.parts = parts
        self._inputs = torch.cat([part.source.inputs for part in parts])
        self._labels = torch.cat([part.source.labels for part in parts])
        sizes = torch.tensor([0] + [len(part.source) for part in parts[:-1]])
        self._first = sizes.cumsum(0)[:, None]
        weights = [part.weights for part in parts]
        known = [weight for weight in weights if weight is not None]
        self._weights = torch.cat(known) if known else None

    def steps(self, batch_size: int) -> int:
        return min(part.steps(batch_size) for part in self.parts)

    def epoch(self, batch_size: int, seed: int, ranks: Ranks = ALONE) -> Iterator[Batch]:
        rows = self.steps(batch_size) * batch_size
        orders = [part.orders(batch_size, seed) for part in self.parts]
        source = torch.stack([order[:rows] for order, _ in orders])
        target = torch.stack([order[:rows] for _, order in orders])
        source = source + self._first.to(source.device)
        own = ranks.rows(batch_size)
        for first in range(0, rows, batch_size):
            chosen = source[:, first + own.start : first + own.stop]
            yield Batch(
                self._inputs[chosen],
                self._labels[chosen],
                self.parts[0].target[target[:, first + own.start : first + own.stop]],
                None if self._weights is None else self._weights[chosen],
            )


def can_be_stacked(objective: Objective) -> bool:
    """Whether all parts of an objective are row by row, and none is a user's own."""
    options = objective.options
    return (
        all(type(module) in _STACKABLE for module in objective.modules())
        and options.objective.reconstruction == "squared"
    )


def stacked(objective: Objective, networks: int) -> Objective:
    """Return an objective of so many networks, which all begin as the given one."""
    stack = deepcopy(objective)
    for module in list(stack.modules()):
        for name, child in module.named_children():
            if isinstance(child, nn.Linear):
                setattr(module, name, StackedLinear(child, networks))
    return stack


def unstacked(stack: Objective, plain: Objective, networks: int) -> list[Objective]:
    """Return the networks of a stack, each as an objective of its own, built like `plain`."""
    found = []
    for place in range(networks):
        own = deepcopy(plain)
        for layer, together in zip(own.modules(), stack.modules(), strict=True):
            if isinstance(together, StackedLinear):
                assert isinstance(layer, nn.Linear)
                together.copy_to(layer, place)
        found.append(own)
    return found


def _repeated(parameter: Tensor, networks: int) -> nn.Parameter:
    copies = parameter.detach().expand(networks, *parameter.shape)
    return nn.Parameter(copies.clone(memory_format=torch.contiguous_format))
