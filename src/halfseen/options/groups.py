"""The options as groups of fields, each with its meaning; immutable and JSON-ready."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

Normalization = Literal["batch", "none"]
Initialization = Literal["torch", "reference"]
ImageAugmentation = Literal[
    "auto", "affine", "wide", "mild", "light", "mild-light", "wide+light", "mild+light"
]
Augmentation = Literal["none", "mask", ImageAugmentation]
Inputs = Literal["image", "table"]

Weight = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, lt=1)]
Count = Annotated[int, Field(ge=0)]
Size = Annotated[int, Field(ge=1)]
BatchSize = Annotated[int, Field(ge=2)] | Literal["auto"]
Widths = tuple[Size, ...]


class Group(BaseModel):
    """Some options that belong together."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ImageNetworks(Group):
    """The encoders g1 and g2 of images."""

    channels: Widths = Field(default=(64, 64, 128), description="filters of each convolution")
    kernel_size: Size = Field(default=5, description="width of the kernels")
    padding: Literal["valid", "same"] = Field(default="valid", description="of the convolutions")
    pools: Count = Field(default=2, description="convolutions followed by 2x2 pooling")
    standardize: bool | Literal["auto"] = Field(
        default=False,
        description="whether each image is brought to mean 0 and spread 1 of its measured pixels; "
        "auto: where the domains look different and the source's light varies more",
    )


class TableNetworks(Group):
    """The encoders g1 and g2 of tables."""

    widths: Widths = Field(default=(128, 128), description="hidden layers")
    dropout: Share = Field(default=0.0, description="of the input and after the first hidden layer")
    linear_path: bool = Field(default=False, description="a linear map beside the hidden layers")
    latent_size: Size = Field(default=128, description="width of the latent")


class NetworkOptions(Group):
    """What all networks share, and the classifier f and the critics D1 and D2."""

    classifier_widths: Widths = Field(default=(100, 100), description="hidden layers of f")
    classifier_dropout: Share = Field(default=0.5, description="after f's first layer")
    critic_widths: Widths = Field(default=(512, 512), description="hidden layers of D1 and D2")
    normalization: Normalization = Field(default="batch", description="inside every network")
    initialization: Initialization = Field(default="torch", description="of all weights")
    prediction_statistics: Literal["running", "target"] = Field(
        default="running",
        description="batch-norm statistics of an adapting model at prediction: the running ones "
        "of training, or estimated once on the unlabelled target",
    )


class GeneratorOptions(Group):
    """The generator r, which imputes latents."""

    widths: Widths = Field(default=(512, 512), description="hidden layers of r")


class ObjectiveOptions(Group):
    """What is minimised in the joint phase."""

    divergence: str = Field(
        default="adversarial", description="D of L1, and of L2 unless given apart"
    )
    imputation_divergence: str | None = Field(default=None, description="the divergence inside L2")
    adaptation_weight: Weight = Field(default=1.0, description="λ1, of L1")
    imputation_weight: Weight = Field(default=1.0, description="weight of the divergence inside L2")
    reconstruction_weight: Weight = Field(default=1.0, description="λ_MSE, inside L2")
    classification_weight: Weight = Field(default=1.0, description="λ3, of L3")
    reconstruction: Literal["squared", "norm"] = Field(
        default="squared",
        description="E‖z2 − ẑ2‖² per row (paper), or the un-squared norm of the batch (authors)",
    )
    ramp_reconstruction: bool = Field(
        default=True, description="whether the ramp of λ2 covers the reconstruction too"
    )
    classifier_latent: Literal["imputed", "true", "both"] = Field(
        default="imputed",
        description="what f sees of the source's missing block: ẑ_S2, z_S2 or each",
    )
    adaptation_latent: Literal["both", "observed"] = Field(
        default="both",
        description="what L1 compares of source and target: (z1, ẑ2), or z1, of which ẑ2 is a "
        "function",
    )
    fading_adaptation: bool = Field(
        default=False,
        description="whether the pull of L1 on the encoders falls to zero until the joint phase "
        "ends: by then an averaged teacher knows more of the target than a critic",
    )
    detach_generator_input: bool = Field(
        default=False, description="whether ẑ_S2 = r(z_S1) keeps its gradient from reaching g1"
    )
    detach_true_latent: bool = Field(
        default=False,
        description="whether L2 treats z_S2 as given, so that g2 is shaped by labels alone",
    )
    terms: dict[str, dict[str, Any]] = Field(
        default={},
        description="further losses by their registered names, each with its own settings",
    )

    @property
    def divergence_of_imputation(self) -> str:
        return self.imputation_divergence or self.divergence


class TrainingOptions(Group):
    """Optimiser, batches and lengths of the phases."""

    learning_rate: Positive = Field(default=1e-2, description="initial rate of every module")
    joint_rate_factor: Positive = Field(default=1.0, description="multiplies it after the warm-up")
    rate_decay: Weight = Field(
        default=10.0, description="a in lr / (1 + a p)^0.75 of the joint phase"
    )
    imputation_rate_decay: Weight = Field(default=10.0, description="the same for r and D2")
    betas: tuple[Weight, Weight] = Field(default=(0.8, 0.999), description="Adam's momenta")
    weight_decay: Weight = Field(default=0.0, description="decoupled weight decay")
    gradient_clip: Positive | None = Field(default=None, description="largest norm of the gradient")
    batch_size: BatchSize = Field(
        default=128, description="rows per domain and step; 'auto' fits it to the rows at hand"
    )
    warmup_batch_size: BatchSize = Field(default=32, description="the same for the warm-up")
    balanced: bool = Field(default=True, description="oversample source classes to the largest one")
    warmup_epochs: Count = Field(
        default=10, description="source-only epochs before the joint phase"
    )
    joint_epochs: Count | Literal["auto"] = Field(
        default=90, description="epochs of L1 + L2 + L3; 'auto' aims for a number of steps"
    )
    joint_steps: Size | None = Field(
        default=None,
        description="steps that joint_epochs='auto' aims for; 300 (4,000 for images) if not given",
    )
    epoch_steps: Size | None = Field(
        default=None,
        description="steps after which an epoch ends, where a pass over the source has more",
    )
    augmentation: Augmentation = Field(
        default="none",
        description="of source batches: mask noise for tables; for images affine changes "
        "(affine, wide, half as wide: mild), contrast, inversion and brightness (light; mild-light "
        "without inversion), both, or auto: wide, with light where the domains look different",
    )
    target_augmentation: Augmentation = Field(
        default="none",
        description="the same of target batches; auto: wide, or mild with mild-light where the "
        "domains look different",
    )


class RefinementOptions(Group):
    """Self-training on the target, where it is asked for."""

    epochs: Count = Field(default=10, description="epochs of self-training")
    threshold: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.95,
        description="probability from which a target row's own prediction is its label",
    )
    entropy_weight: Weight = Field(default=0.1, description="λ, of the entropy term")
    source_weight: Weight = Field(default=1.0, description="of the source's classification term")
    rate_factor: Positive = Field(default=0.1, description="multiplies the initial learning rate")
    modules: Literal["all", "classifier"] = Field(
        default="all", description="what refinement updates: f with ĝ, or f alone"
    )


class Options(Group):
    """All settings of networks, objective and training.

    Exactly one of `images` and `tables` is set: the one for the inputs at hand.
    """

    images: ImageNetworks | None = Field(
        default=None, description="encoders, where inputs are images"
    )
    tables: TableNetworks | None = Field(
        default=None, description="encoders, where inputs are tables"
    )
    networks: NetworkOptions = NetworkOptions()
    generator: GeneratorOptions = GeneratorOptions()
    objective: ObjectiveOptions = ObjectiveOptions()
    training: TrainingOptions = TrainingOptions()
    refinement: RefinementOptions = RefinementOptions()

    @property
    def inputs(self) -> Inputs:
        return "image" if self.tables is None else "table"

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.images is None) == (self.tables is None):
            raise ValueError("Options have either images or tables, for the inputs at hand.")
        if self.tables is not None:
            for name in ("augmentation", "target_augmentation"):
                given = getattr(self.training, name)
                if given in get_args(ImageAugmentation):
                    raise ValueError(f"training.{name}={given!r} does not apply to tables.")
        return self
