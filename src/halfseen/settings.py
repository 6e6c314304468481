"""Every setting of a fit, declared once: help, documents, files and estimators read them here.

Both faces give the same settings. Nothing heavy is imported to declare them: help must not wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from halfseen.errors import OptionError

if TYPE_CHECKING:
    from halfseen.data.column_spec import ColumnSpec
    from halfseen.members import Learner
    from halfseen.networks.variants import NetworkVariant
    from halfseen.options import Inputs, Options

Effort = Literal["quick", "default", "best"]
Task = Literal["auto", "classification", "regression"]
TREES_AND_REGRESSION = ("boosted_trees", "forest", "regression")
"""The members of a table's model, the simplest last; networks join them where they are asked for.

On 33 development problems they brought nothing on average (docs/results/tables.md), and took most
of the time.
"""
OF_NETWORKS = ("models", "divergence", "refine", "encoder", "augmentation", "on_epoch", "options")
"""Settings that networks alone have."""
OF_TABLES = ("Adaptation-Imputation",)
OF_IMAGES = ("Adaptation-Imputation", "Adaptation-IgnoreComponent")
"""The networks of images: each is ahead somewhere, and together they are near the better.

No source row can tell which one is ahead on the target (docs/results/digits.md).
"""
QUICK_IMAGES: dict[str, Any] = {"training.joint_epochs": "auto", "training.joint_steps": 400}
"""Settings for images at ``effort="quick"``: 400 steps instead of 4,000."""


def _listed(given: Any) -> Any:
    """Take one name for a list of names."""
    return (given,) if isinstance(given, str) else given


Names = Annotated[tuple[str, ...], BeforeValidator(_listed)]
OPTION: dict[str, Any] = {"option": True}
"""Marks what is an option of commands; the rest can be said in a file and in Python."""


class FitSettings(BaseModel):
    """How to fit. Each field is an option of the same name, a line of a TOML file, a parameter."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    label: str | None = Field(
        default=None, description="Column of the source to predict.", json_schema_extra=OPTION
    )
    task: Task = Field(
        default="auto",
        description="What the label is: classification (classes), regression (an amount), or "
        "auto, which takes fractions of many values for amounts.",
        json_schema_extra=OPTION,
    )
    missing: Names = Field(
        default=(),
        description="Columns never measured on the target, beside those found.",
        json_schema_extra=OPTION,
    )
    keep: Names = Field(
        default=(),
        description="Columns measured on the target, although they look otherwise.",
        json_schema_extra=OPTION,
    )
    categorical: Names = Field(
        default=(),
        description="Columns of numbers that are names of categories.",
        json_schema_extra=OPTION,
    )
    numeric: Names = Field(
        default=(),
        description="Columns of numbers in which texts stand for gaps.",
        json_schema_extra=OPTION,
    )
    rename: Names = Field(
        default=(),
        description="Another name for a column of either table.",
        json_schema_extra=OPTION | {"metavar": "OLD=NEW"},
    )
    dates: Names | Mapping[str, Any] = Field(
        default=(),
        description="Parts to read of a column of dates: year, month, day, weekday, hour, days; "
        "on the clock of a zone with @ZONE.",
        json_schema_extra=OPTION | {"metavar": "COLUMN=PART,PART"},
    )
    drop: Names = Field(default=(), description="Columns not to use.", json_schema_extra=OPTION)
    id: Names = Field(
        default=(),
        description="Columns to carry through to predictions.",
        json_schema_extra=OPTION,
    )
    positive: bool | int | str | None = Field(
        default=None,
        description="The class of two that metrics speak of.",
        json_schema_extra=OPTION,
    )
    models: Names | None = Field(
        default=None,
        description="Which of the paper's models the networks are: of several one is chosen on "
        "tables, and on images they answer together. Adaptation-Imputation by default; on images "
        "with Adaptation-IgnoreComponent.",
        json_schema_extra=OPTION,
    )
    members: Names | None = Field(
        default=None,
        description="What learns beside each other: boosted_trees, forest and regression by "
        "default; networks join where they or one of their settings are asked for. Images have "
        "networks alone.",
        json_schema_extra=OPTION,
    )
    effort: Effort = Field(
        default="default",
        description="How long it may take: quick (no teachers; images a tenth of the steps), "
        "default, or best (also networks, of five folds, which answer together).",
        json_schema_extra=OPTION,
    )
    seed: int = Field(
        default=0, description="Same rows, settings and seed: same model.", json_schema_extra=OPTION
    )
    target_labels: bool | None = Field(
        default=None,
        description="Whether labels of target rows are used; by default where some rows have none.",
        json_schema_extra=OPTION,
    )
    weight: str | None = Field(
        default=None,
        description="Column of the source that says how much each row counts.",
        json_schema_extra=OPTION,
    )
    class_weight: str | Mapping[Any, float] | None = Field(
        default=None,
        description="How much rows of each class count: balanced, or class by class.",
        json_schema_extra=OPTION | {"metavar": "balanced|CLASS=WEIGHT"},
    )
    time_limit: float | None = Field(
        default=None,
        description="Seconds to keep to: what would take longer is left out, all but trees and "
        "regression; images get fewer steps.",
        json_schema_extra=OPTION | {"metavar": "SECONDS"},
    )
    seeds: int = Field(
        default=1,
        description="With how many seeds members are trained, which answer together.",
        json_schema_extra=OPTION,
    )
    report_data: Literal["aggregates", "none"] = Field(
        default="aggregates",
        description="What the model keeps for `halfseen report`: aggregates (never a single row), "
        "or none.",
        json_schema_extra=OPTION,
    )
    value_of_missing: bool = Field(
        default=False,
        description="Whether to find out what measuring each missing column would bring, for "
        "`halfseen measure`; it takes several times as long as the fit.",
        json_schema_extra=OPTION,
    )
    strict: bool = Field(
        default=False, description="Take every alarm as an error.", json_schema_extra=OPTION
    )
    align: bool = Field(
        default=True,
        description="Whether columns that have drifted are mapped onto the source's scale, where "
        "target rows are far from those of the source.",
    )
    preset: Literal["default", "paper", "reference"] = Field(
        default="default",
        description="Where the networks' settings start from: what measured best, the paper's "
        "text, or the authors' code.",
    )
    divergence: str = Field(
        default="adversarial",
        description="How distributions of latents are compared: adversarial, transport, or a "
        "registered name.",
    )
    refine: bool = Field(
        default=False, description="Whether networks that adapt end with self-training."
    )
    options: Mapping[str, Any] = Field(
        default={}, description="Any field of `halfseen.Options`, by its dotted name."
    )
    memory_mib: float = Field(
        default=256,
        ge=0,
        description="MiB of prepared rows up to which tables are held in memory; of larger ones "
        "members learn from a sample.",
    )
    measure: bool = Field(
        default=True,
        description="Whether rows are held out to measure on, also where nothing is chosen or "
        "weighed by them.",
    )
    teachers: Any = Field(
        default=(),
        description="Classifiers or regressors of scikit-learn's kind that teach beside ours, on "
        "complete source rows. They are never saved.",
    )
    device: str = Field(default="auto", description="`auto` takes a GPU where there is one.")
    encoder: Any = Field(
        default=None,
        description="An encoder of your own: a torch module, copied for g1 and g2, or a function "
        "from an input shape to one. It gives one flat latent per row.",
    )
    augmentation: Any = Field(
        default=None, description="Applied to source batches in the place of the options' own."
    )
    on_epoch: Any = Field(
        default=None, description="Called after each epoch with the objective and its record."
    )

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise _refusal(error) from None

    # --- the columns ----------------------------------------------------------------------

    def spec(self, *, in_python: bool = False) -> ColumnSpec:
        """Return what is said of columns."""
        from halfseen.data.column_spec import ColumnSpec
        from halfseen.data.dates import read_dates
        from halfseen.targets import class_name

        if self.label is None:
            raise OptionError("Say which column to predict: --label COLUMN.")
        return ColumnSpec(
            label=self.label,
            missing=self.missing,
            keep=self.keep,
            categorical=self.categorical,
            drop=self.drop,
            id=self.id,
            positive=None if self.positive is None else class_name(self.positive),
            in_python=in_python,
            numeric=self.numeric,
            dates=read_dates(self.dates),
            target_labels=self.target_labels,
            task=self.task,
            weight=self.weight,
        )

    # --- what is fitted -------------------------------------------------------------------

    @property
    def memory(self) -> int:
        """Bytes of prepared rows up to which tables are held in memory."""
        return int(self.memory_mib * 2**20)

    def variants(self, inputs: Inputs) -> tuple[NetworkVariant, ...]:
        """Return which of the paper's models the networks are."""
        from halfseen.networks.variants import variant_named

        default = OF_IMAGES if inputs == "image" else OF_TABLES
        return tuple(variant_named(name) for name in (self.models or default))

    def members_for(self, inputs: Inputs, *, classes: bool = True) -> tuple[str, ...]:
        """Return the kinds of members, the simplest last; amounts have no networks."""
        if self.members is not None:
            return self.members
        if inputs == "image" or self.preset != "default":
            return ("networks",)
        if classes and (self.effort == "best" or self._asks_for_networks):
            return ("networks", *TREES_AND_REGRESSION)
        return TREES_AND_REGRESSION

    @property
    def _asks_for_networks(self) -> bool:
        """Whether a setting differs from its default that means nothing without networks."""
        return any(getattr(self, n) != type(self).model_fields[n].default for n in OF_NETWORKS)

    def distils(self, inputs: Inputs) -> bool:
        """Whether trees learn from soft labels of teachers that see the complete source."""
        return inputs == "table" and self.preset == "default" and self.effort != "quick"

    def holds_out(self, inputs: Inputs) -> bool:
        """Whether rows must be held out: to choose, to weigh, or to measure."""
        several = len(self.members_for(inputs)) > 1 or len(self.models or ()) > 1
        return self.measure or several

    def options_for(self, variant: NetworkVariant, *, inputs: Inputs = "table") -> Options:
        """Return every setting of the networks of one variant."""
        from halfseen.options import make_options
        from halfseen.presets import preset

        base = preset(
            self.preset,
            inputs=inputs,
            divergence=self.divergence,
            imputes=variant.imputes,
            adapts=variant.adapts,
        )
        if inputs == "image" and self.effort == "quick":
            base = make_options(QUICK_IMAGES, base)
        return make_options(self.options, base)

    def for_side(self, side: int) -> Self:
        """Return the same for images of so many pixels, with encoders that suit them."""
        from halfseen.options import dotted
        from halfseen.presets import encoder_for

        if self.preset != "default":
            return self
        given, suitable = dotted(self.options), encoder_for(side)
        if suitable and "images.channels" in given:
            suitable["images.pools"] = min(suitable["images.pools"], len(given["images.channels"]))
        return self.model_copy(update={"options": suitable | given})

    def with_steps(self, steps: int) -> Self:
        """Return the same for images, with so many steps in twenty epochs."""
        limited = {"training.joint_steps": steps, "training.epoch_steps": max(steps // 20, 1)}
        return self.model_copy(update={"options": {**self.options, **limited}})

    def learners(
        self, variant: NetworkVariant, *, inputs: Inputs, classes: bool = True
    ) -> tuple[Learner, ...]:
        """Return what fits each member of one variant."""
        from halfseen.members import LEARNERS

        kinds = self.members_for(inputs, classes=classes)
        return tuple(
            self._networks(variant, inputs) if kind == "networks" else LEARNERS[kind]()
            for kind in kinds
        )

    def _networks(self, variant: NetworkVariant, inputs: Inputs) -> Learner:
        from dataclasses import replace

        from halfseen.members.network_members import NetworksLearner

        def of(one: NetworkVariant) -> NetworksLearner:
            return NetworksLearner(
                one,
                self.options_for(one, inputs=inputs),
                self.refine,
                self.device,
                self.encoder,
                self.augmentation,
                self.on_epoch,
            )

        if inputs == "table":
            return of(variant)
        others = tuple(of(each) for each in self.variants(inputs) if each != variant)
        return replace(of(variant), beside=others)

    # --- what contradicts itself ------------------------------------------------------------

    def check(self, inputs: Inputs = "table", *, classes: bool = True) -> None:
        """Refuse what contradicts itself, before any work."""
        from halfseen.members import LEARNERS, NETWORKS, member_named
        from halfseen.networks.variants import VARIANTS

        if self.models is not None and not self.models:
            raise OptionError(f"Name at least one model of {[v.name for v in VARIANTS]}.")
        variants = self.variants(inputs)
        if any(variant.needs_complete_target for variant in variants):
            raise OptionError(
                "Full models are for benchmarks: they need the target's missing part."
            )
        if self.time_limit is not None and not self.time_limit > 0:
            raise OptionError(f"time_limit={self.time_limit} must be more than no seconds.")
        if self.seeds < 1:
            raise OptionError(f"seeds={self.seeds} must be at least 1.")
        if not 0 <= self.seed <= 2**32 - self.seeds:
            raise OptionError(f"The seed {self.seed} must be a whole number from 0 to {2**32 - 1}.")
        kinds = self.members_for(inputs, classes=classes)
        known = [NETWORKS, *LEARNERS]
        unknown = [kind for kind in kinds if kind not in known]
        if unknown or not kinds or len(set(kinds)) < len(kinds):
            raise OptionError(f"members={list(kinds)} must name one or more of {known}, each once.")
        if NETWORKS in kinds and not classes:
            raise OptionError(
                "Networks learn classes, and regression predicts amounts: choose among "
                f"members={list(LEARNERS)}, with the default preset."
            )
        if inputs == "image" and kinds != (NETWORKS,):
            raise OptionError(f"members={list(kinds)}: images have networks alone.")
        if self.refine and not any(variant.adapts for variant in variants):
            raise OptionError(
                f"{variants[0].name} does not adapt, so there is nothing to refine; refine=True "
                "needs a model that adapts."
            )
        for variant in variants if NETWORKS in kinds or self._asks_for_networks else ():
            options = self.options_for(variant, inputs=inputs)
            if inputs == "image" and self.time_limit and options.training.joint_epochs != "auto":
                raise OptionError(
                    "time_limit says how long images are trained, and so does "
                    "training.joint_epochs (a preset's, or yours): give one of them."
                )
        if NETWORKS in kinds:
            member_named(NETWORKS)  # PyTorch is there before anybody limits its threads


def _refusal(error: ValidationError) -> OptionError:
    """Return the first fault as a sentence."""
    fault = error.errors()[0]
    name = str(fault["loc"][0])
    if fault["type"] == "extra_forbidden":
        known = ", ".join(FitSettings.model_fields)
        return OptionError(f"There is no setting {name!r}; there are {known}.")
    annotation = FitSettings.model_fields[name].annotation
    if choices := get_args(annotation) if "Literal" in str(annotation) else ():
        return OptionError(f"{name}={fault['input']!r} is unknown; choose one of {list(choices)}.")
    return OptionError(f"{name}={fault['input']!r}: {fault['msg']}.")
