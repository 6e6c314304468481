"""How to fit: which models and members, with which options. Both faces give the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from halfseen.errors import OptionError
from halfseen.members import LEARNERS, NETWORKS, Learner, member_named
from halfseen.networks.variants import VARIANTS, NetworkVariant, variant_named
from halfseen.options import Inputs, Options, Preset, make_options, preset
from halfseen.targets import ClassTarget, TargetType
from halfseen.targets.target_type import ClassWeight

if TYPE_CHECKING:
    from torch import nn

    from halfseen.networks.nets.encoders import EncoderFactory
    from halfseen.networks.training.augmentation import Augmentation
    from halfseen.networks.training.loop import EpochHook

IN_MEMORY = 256 * 2**20
"""Bytes of prepared rows, of both tables together, up to which they are held in memory."""
Effort = Literal["quick", "default", "best"]
EFFORTS = get_args(Effort)
AnyTargetType = TargetType | type[TargetType]
TREES_AND_LINES = ("boosted_trees", "forest", "regression")
"""The members of a table's model, the simplest last; networks join them where they are asked for.

On 33 development problems they brought nothing on average (docs/results/tables.md), and took most
of the time.
"""
OF_NETWORKS = ("models", "divergence", "refine", "encoder", "augmentation", "on_epoch")
"""Settings, beside the options, that networks alone have."""
STREAMED: dict[str, Any] = {
    "training.batch_size": 1024,
    "training.warmup_batch_size": 1024,
    "training.warmup_epochs": 1,
    "training.joint_epochs": 2,
}
"""Settings for tables that are streamed, where the user gives none."""
OF_IMAGES = ("Adaptation-Imputation", "Adaptation-IgnoreComponent")
"""The models of images: each is ahead somewhere, and together they are near the better.

No source row can tell which one is ahead on the target (docs/results/digits.md).
"""
QUICK_IMAGES: dict[str, Any] = {"training.joint_epochs": "auto", "training.joint_steps": 400}
"""Settings for images at ``effort="quick"``: 400 steps instead of 4,000."""


@dataclass(frozen=True)
class FitSettings:
    """How to fit.

    Parameters
    ----------
    models
        Names of the paper's models to choose from; on images those that answer together.
    members
        What learns beside each other; by default trees and regression for tables, with networks
        at the best effort or where a setting of theirs is given, and networks alone for images
        and for presets that repeat the paper.
    effort
        How long a fit may take: ``quick`` leaves teachers out for tables, and gives images a tenth
        of the steps; ``best`` adds networks and holds rows in memory out in five folds, whose
        networks answer together.
    align
        Whether drifted columns are mapped; by default where target rows are far from the source.
    preset, divergence, options
        Where the networks' settings start, and what replaces them.
    refine
        Whether models that adapt end with self-training.
    seed
        Same rows, settings and seed: the same model.
    seeds
        With how many seeds, from `seed` on, each member is trained that depends on one; they
        answer together.
    class_weight
        How much rows of each class count: ``balanced``, or a mapping.
    time_limit
        Seconds to keep to, by leaving members of tables out or by fewer steps on images.
    memory
        Bytes of prepared rows up to which tables are held in memory.
    measure
        Whether to hold rows out to measure on, even where nothing is chosen or weighed by them.
    device, encoder, augmentation, on_epoch
        As for :class:`halfseen.members.NetworksLearner`.
    """

    models: tuple[str, ...] = ("Adaptation-Imputation",)
    members: tuple[str, ...] | None = None
    effort: Effort = "default"
    align: bool = True
    preset: Preset = "default"
    divergence: str = "adversarial"
    options: Mapping[str, Any] = field(default_factory=dict)
    refine: bool = False
    seed: int = 0
    seeds: int = 1
    class_weight: ClassWeight = None
    time_limit: float | None = None
    memory: int = IN_MEMORY
    measure: bool = True
    device: str = "auto"
    encoder: nn.Module | EncoderFactory | None = None
    augmentation: Augmentation | None = None
    on_epoch: EpochHook | None = None

    def check(self, inputs: Inputs = "table", target_type: AnyTargetType = ClassTarget) -> None:
        """Refuse what contradicts itself, before any work."""
        if not self.models:
            raise OptionError(f"Name at least one model of {[m.name for m in VARIANTS]}.")
        methods = [variant_named(name) for name in self.models]
        if any(method.needs_complete_target for method in methods):
            raise OptionError(
                "Full models are for benchmarks: they need the target's missing part."
            )
        if self.effort not in EFFORTS:
            raise OptionError(f"effort={self.effort!r} is unknown; choose one of {list(EFFORTS)}.")
        if self.time_limit is not None and not self.time_limit > 0:
            raise OptionError(f"time_limit={self.time_limit} must be more than no seconds.")
        if self.seeds < 1:
            raise OptionError(f"seeds={self.seeds} must be at least 1.")
        if not 0 <= self.seed <= 2**32 - self.seeds:
            raise OptionError(f"The seed {self.seed} must be a whole number from 0 to {2**32 - 1}.")
        kinds = self.members_for(inputs, target_type)
        known = [NETWORKS, *LEARNERS]
        unknown = [kind for kind in kinds if kind not in known]
        if unknown or not kinds or len(set(kinds)) < len(kinds):
            raise OptionError(f"members={list(kinds)} must name one or more of {known}, each once.")
        if NETWORKS in kinds and not target_type.networks:
            raise OptionError(
                f"Networks learn classes, and {target_type.task} predicts amounts: choose among "
                f"members={list(LEARNERS)}, with the default preset."
            )
        if inputs == "image" and kinds != (NETWORKS,):
            raise OptionError(f"members={list(kinds)}: images have networks alone.")
        if self.refine and not any(method.adapts for method in methods):
            raise OptionError(
                f"{methods[0].name} does not adapt, so there is nothing to refine; refine=True "
                "needs a model that adapts."
            )
        for method in methods:
            options = self.options_for(method, inputs=inputs)
            if inputs == "image" and self.time_limit and options.training.joint_epochs != "auto":
                raise OptionError(
                    "time_limit says how long images are trained, and so does "
                    "training.joint_epochs (a preset's, or yours): give one of them."
                )
        if NETWORKS in kinds:
            member_named(NETWORKS)  # PyTorch is there before anybody limits its threads

    def members_for(
        self, inputs: Inputs, target_type: AnyTargetType = ClassTarget
    ) -> tuple[str, ...]:
        """Return the kinds of members, the simplest last."""
        if self.members is not None:
            return tuple(self.members)
        if inputs == "image" or self.preset != "default":
            return ("networks",)
        if target_type.networks and (self.effort == "best" or self._asks_for_networks):
            return (NETWORKS, *TREES_AND_LINES)
        return TREES_AND_LINES

    @property
    def _asks_for_networks(self) -> bool:
        """Whether a setting differs from its default that means nothing without networks."""
        plain = {entry.name: entry.default for entry in fields(self)}
        return bool(self.options) or any(getattr(self, n) != plain[n] for n in OF_NETWORKS)

    def teaches(self, inputs: Inputs) -> bool:
        """Whether trees learn from soft labels of teachers that see the complete source."""
        return inputs == "table" and self.preset == "default" and self.effort != "quick"

    def holds_out(self, inputs: Inputs) -> bool:
        """Whether rows must be held out: to choose, to weigh, or to measure."""
        return self.measure or len(self.models) > 1 or len(self.members_for(inputs)) > 1

    def options_for(
        self, method: NetworkVariant, *, inputs: Inputs = "table", resident: bool = True
    ) -> Options:
        """Return every setting of the networks of one model."""
        base = preset(
            self.preset,
            inputs=inputs,
            divergence=self.divergence,
            imputes=method.imputes,
            adapts=method.adapts,
        )
        options = base if resident else make_options(STREAMED, base)
        if inputs == "image" and self.effort == "quick":
            options = make_options(QUICK_IMAGES, base)
        chosen = make_options(self.options, options)
        if resident:
            return chosen
        # Oversampling needs all rows at hand.
        return make_options({"training.balanced": False}, chosen)

    def with_steps(self, steps: int) -> FitSettings:
        """Return the same for images, with so many steps in twenty epochs."""
        told = {"training.joint_steps": steps, "training.epoch_steps": max(steps // 20, 1)}
        return replace(self, options={**self.options, **told})

    def learners(
        self,
        method: NetworkVariant,
        *,
        inputs: Inputs,
        resident: bool,
        target_type: AnyTargetType = ClassTarget,
    ) -> tuple[Learner, ...]:
        """Return what fits each member of one model."""
        kinds = self.members_for(inputs, target_type)
        if NETWORKS not in kinds:
            return tuple(LEARNERS[kind]() for kind in kinds)
        from halfseen.members.network_members import NetworksLearner

        def of(model: NetworkVariant) -> NetworksLearner:
            return NetworksLearner(
                model,
                self.options_for(model, inputs=inputs, resident=resident),
                self.refine,
                self.device,
                self.encoder,
                self.augmentation,
                self.on_epoch,
            )

        networks = of(method)
        if inputs == "image":
            others = (variant_named(name) for name in self.models if name != method.name)
            networks = replace(networks, beside=tuple(of(other) for other in others))
        return tuple(networks if kind == NETWORKS else LEARNERS[kind]() for kind in kinds)


def needs_complete_target(models: Sequence[str]) -> bool:
    """Whether the models are those of a target that lacks nothing."""
    return any(variant_named(name).needs_complete_target for name in models)
