"""The objective as a list of terms: what each may look at in a step, and what it may bring.

A new term is a file with a subclass of :class:`Term` under :func:`register`, and its line in
`FURTHER`; ``options={"objective.terms": {"its_name": {}}}`` switches it on. Its weight, phases,
words, modules and hooks are its own: nothing else need know it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

import torch
from pydantic import Field
from torch import Tensor, nn

from halfseen.errors import OptionError
from halfseen.networks.modules import Latents, Networks
from halfseen.options import TERM_SETTINGS, Group, Options

FURTHER = ("averaged_teacher",)
"""Files of terms that options can switch on."""

PhaseName = Literal["warm-up", "joint", "refine"]
Losses = dict[str, Tensor]


class Batch(NamedTuple):
    """Rows of both domains. There is no field for labels of the target."""

    source: Tensor
    labels: Tensor
    """Class positions; or class probabilities (soft labels), one row each."""
    target: Tensor
    weights: Tensor | None = None
    """How much each source row counts, one on average; equally by default."""

    def to(self, device: torch.device) -> Batch:
        return Batch(*(None if part is None else part.to(device) for part in self))  # type: ignore[arg-type]


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
        self.target = _augmented(self.plain.target, self.views.target)
        self.labels, self.weights = self.plain.labels, self.plain.weights

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
        detached = self.options.objective.detach_generator_input
        return self.networks.latents(self.source, self.target, detach_generator_input=detached)

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
        self.options = setup.options
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


BUILT_IN: dict[str, type[Term]] = {}
"""The paper's own, in the order in which their losses are computed."""
_REGISTERED: dict[str, type[Term]] = {}

AnyTerm = TypeVar("AnyTerm", bound=type[Term])


def register(name: str) -> Callable[[AnyTerm], AnyTerm]:
    """Add a term under the name by which ``objective.terms`` switches it on; a decorator.

    Examples
    --------
    >>> register("entropy_again")(BUILT_IN["refinement"])
    Traceback (most recent call last):
    halfseen.errors.OptionError: The term 'entropy_again' brings the loss 'pseudo_label', which \
'refinement' has already: choose another name.
    """

    def add(term: AnyTerm) -> AnyTerm:
        if name in BUILT_IN or not name.isidentifier():
            raise OptionError(
                f"A term cannot be called {name!r}: choose a name of letters, digits and "
                f"underscores that is none of {', '.join(BUILT_IN)}."
            )
        for other, known in (BUILT_IN | _REGISTERED).items():
            for loss in term.words:
                if loss in known.words and other != name:
                    raise OptionError(
                        f"The term {name!r} brings the loss {loss!r}, which {other!r} has "
                        "already: choose another name."
                    )
        _REGISTERED[name] = term
        TERM_SETTINGS[name] = term.Settings
        return term

    return add


def make_terms(setup: Setup) -> dict[str, Term]:
    """Return the terms of a model: what its method brings, then what the options switch on."""
    method = setup.networks.method
    left_out = {"adaptation", "refinement"} if not method.adapts else set()
    left_out |= {"imputation"} if not method.imputes else set()
    # In this order: every term draws its initial weights after those before it.
    terms = {name: term(setup) for name, term in BUILT_IN.items() if name not in left_out}
    for name, settings in setup.options.objective.terms.items():
        term = _REGISTERED[name]
        if term.needs_target and not method.adapts:
            raise OptionError(
                f"objective.terms.{name} looks at target rows in training, and {method.name} does "
                "not adapt: choose a model that adapts, or leave the term out."
            )
        terms[name] = term(setup, term.Settings(**settings))
    return terms


def loss_words() -> dict[str, str]:
    """Return every loss that a term can bring, in the order of the terms, with its words."""
    terms = BUILT_IN | _REGISTERED
    return {loss: words for term in terms.values() for loss, words in term.words.items()}


for _file in ("paper", *FURTHER):
    import_module(f"{__name__}.{_file}")
