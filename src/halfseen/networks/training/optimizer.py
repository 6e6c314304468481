"""Adam with decoupled weight decay, a group of parameters for each part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

from halfseen.networks.objective import Objective
from halfseen.networks.terms import Part
from halfseen.networks.training.phases import Phase


@dataclass
class ParameterGroup:
    part: Part
    rate: float
    parameters: list[nn.Parameter]


@dataclass
class Adam:
    """PyTorch's own step (:func:`torch.optim.adamw.adamw`).

    Its class imports the compiler at the first use, two seconds that a small fit does not have.
    """

    groups: Sequence[ParameterGroup]
    betas: tuple[float, float]
    weight_decay: float
    state: dict[nn.Parameter, dict[str, Tensor]] = field(default_factory=dict)
    """Moments and step counter of each parameter that has had a gradient."""

    def clear(self) -> None:
        for group in self.groups:
            for parameter in group.parameters:
                parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        for group in self.groups:
            moved = [p for p in group.parameters if p.grad is not None]
            if not moved:
                continue
            states = [self._state(p) for p in moved]
            adamw(
                moved,  # type: ignore[arg-type]
                [p.grad for p in moved],  # type: ignore[misc]
                [s["exp_avg"] for s in states],
                [s["exp_avg_sq"] for s in states],
                [],
                [s["step"] for s in states],
                fused=moved[0].device.type in ("cpu", "cuda"),
                amsgrad=False,
                beta1=self.betas[0],
                beta2=self.betas[1],
                lr=group.rate,
                weight_decay=self.weight_decay,
                eps=1e-8,
                maximize=False,
            )

    def tensors(self, names: Mapping[nn.Parameter, str]) -> dict[str, Tensor]:
        """Return moments and counters as ``field/parameter``."""
        return {
            f"{field}/{names[parameter]}": tensor
            for parameter, own in self.state.items()
            for field, tensor in own.items()
        }

    @torch.no_grad()
    def restore(self, names: Mapping[nn.Parameter, str], tensors: Mapping[str, Tensor]) -> None:
        """Put saved tensors back, on the parameters' device and in their order in memory."""
        for parameter, name in names.items():
            if f"step/{name}" in tensors:
                for field, tensor in self._state(parameter).items():
                    tensor.copy_(tensors[f"{field}/{name}"])

    def _state(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        if parameter not in self.state:
            place = parameter.device if parameter.device.type == "cuda" else "cpu"
            self.state[parameter] = {
                "step": torch.zeros((), device=place),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }
        return self.state[parameter]


def make_optimizer(objective: Objective, phase: Phase) -> Adam:
    options = objective.options.training
    parts = [part for part in objective.network_parts() if part.name in phase.networks]
    parts += [part for term in objective.terms_in(phase.name) for part in term.parts()]
    groups = [ParameterGroup(p, phase.learning_rate, list(p.module.parameters())) for p in parts]
    return Adam(
        [group for group in groups if group.parameters], options.betas, options.weight_decay
    )
