"""What a term may look at: everything of one step, computed when first asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from torch import Tensor

from halfseen.networks.batch import Batch
from halfseen.networks.nets import Latents, Networks
from halfseen.options import Options

__all__ = ["PhaseName", "State", "Views"]

PhaseName = Literal["warm-up", "joint", "refine"]


@dataclass(frozen=True)
class Views:
    """How rows are augmented before a step sees them: a callable for each domain, or None."""

    source: Callable[[Tensor], Tensor] | None = None
    target: Callable[[Tensor], Tensor] | None = None


@dataclass
class State:
    """One step.

    What is lazy here is computed once and shared by all terms of the step; a term that asks for
    nothing of the target does not make the networks see it.
    """

    phase: PhaseName
    networks: Networks
    options: Options
    plain: Batch
    """Both batches as they came."""
    views: Views = field(default_factory=Views)
    """How they are augmented."""
    progress: float = 0.0
    """Through the phase, in [0, 1]."""
    strength: float = 1.0
    """The ramp of λ1 and λ2: the factor of gradients that divergences send into the latents."""

    def __post_init__(self) -> None:
        self.source = _augmented(self.plain.source, self.views.source)
        """Source rows, augmented."""
        self.target = _augmented(self.plain.target, self.views.target)
        """Target rows, augmented."""

    @property
    def labels(self) -> Tensor:
        """Of the source: class positions, or class probabilities."""
        return self.plain.labels

    @property
    def weights(self) -> Tensor | None:
        """How much each source row counts."""
        return self.plain.weights

    @cached_property
    def another_target(self) -> Tensor:
        """A second, independent view of the target rows."""
        return _augmented(self.plain.target, self.views.target)

    @property
    def pairs_domains(self) -> bool:
        """Whether both domains are encoded: by models that adapt or impute, after the warm-up."""
        method = self.networks.method
        return self.phase != "warm-up" and (method.adapts or method.imputes)

    @cached_property
    def latents(self) -> Latents:
        """z_S1, z_S2, ẑ_S2, z_T1, ẑ_T2 (section 3)."""
        return self.networks.latents(
            self.source,
            self.target,
            detach_generator_input=self.options.objective.detach_generator_input,
        )

    @cached_property
    def source_logits(self) -> Tensor:
        """f(ẑ_S); f(z_S) where the target plays no part yet."""
        if not self.pairs_domains:
            return self.networks.complete_logits(self.source)
        logits: Tensor = self.networks.classifier(self.latents.source)
        return logits

    @cached_property
    def complete_source_logits(self) -> Tensor:
        """f(z_S), with the true latent of the missing block."""
        if not self.pairs_domains:
            return self.source_logits
        logits: Tensor = self.networks.classifier(self.latents.complete_source)
        return logits

    @cached_property
    def target_logits(self) -> Tensor:
        """f(ẑ_T)."""
        logits: Tensor = self.networks.classifier(self.latents.target)
        return logits


def _augmented(rows: Tensor, view: Callable[[Tensor], Tensor] | None) -> Tensor:
    return rows if view is None else view(rows)
