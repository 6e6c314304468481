"""A term of the objective: what it is called with, and what it may bring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import Field
from torch import Tensor, nn

from halfseen.networks.nets import Networks
from halfseen.networks.terms.state import PhaseName, State
from halfseen.options import Group, Options

__all__ = ["Losses", "Part", "Setup", "Term", "TermSettings", "mean_where"]

Losses = dict[str, Tensor]


@dataclass(frozen=True)
class Part:
    """A module that is trained with a learning rate of its own."""

    name: str
    module: nn.Module
    decay: float = 0.0
    """a in lr / (1 + a p)^0.75, in phases whose rates decay."""
    rate_factor: float = 1.0
    """Multiplies the phase's learning rate."""


@dataclass(frozen=True)
class Setup:
    """What a term is built for: the networks as they are before training, and every setting."""

    networks: Networks
    n_classes: int
    options: Options


class TermSettings(Group):
    """Settings of a term; a subclass adds its own as fields."""

    weight: float = Field(default=1.0, ge=0, description="of the loss")


class Term(nn.Module):
    """Some losses that belong together.

    A subclass says what they are (`words`), when they apply (`phases`), and computes them
    (`forward`). Submodules that are to be trained are named in `parts`; all submodules and
    buffers are kept in checkpoints.
    """

    words: ClassVar[Mapping[str, str]] = {}
    """Every loss that the term brings, with the words it is shown with."""
    phases: tuple[PhaseName, ...] = ("joint",)
    needs_target: ClassVar[bool] = True
    """Whether it looks at target rows, which a model that does not adapt never sees."""
    Settings: ClassVar[type[TermSettings]] = TermSettings
    """Fields that ``objective.terms`` may set."""

    def __init__(self, setup: Setup, settings: Any = None) -> None:
        super().__init__()
        self.settings: Any = self.Settings() if settings is None else settings

    def forward(self, state: State) -> Losses:
        """Return the losses of one step, by name; one that does not apply yet is left out."""
        raise NotImplementedError

    def weights(self, phase: PhaseName) -> Mapping[str, float]:
        """Return the weight of each loss in a phase."""
        return dict.fromkeys(self.words, self.settings.weight)

    def parts(self) -> list[Part]:
        """Return what is trained beside the networks, in the term's own phases."""
        return []

    def after_step(self, networks: Networks, phase: PhaseName, progress: float) -> None:
        """React to a step, of whatever phase, when the weights have moved."""

    def predicting(self) -> Networks | None:
        """Return the networks that are to predict in place of the trained ones, if any."""
        return None


def mean_where(chosen: Tensor, values: Tensor) -> Tensor:
    """Mean over the chosen rows; zero, still with a gradient, when there is none."""
    return (values * chosen).sum() / chosen.sum().clamp_min(1)
