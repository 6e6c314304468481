"""Every choice of the method in one place, and the presets that set them all.

Where the paper and its authors' code differ, the difference is a field here whose name says
what it does. ``preset("paper", ...)`` follows the text, ``preset("reference", ...)`` the
authors' code, ``preset("default", ...)`` is our own choice (docs/defaults.md says why).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from halfseen.errors import OptionError

__all__ = [
    "Activation",
    "Initialization",
    "Inputs",
    "Normalization",
    "Options",
    "Preset",
    "make_options",
    "preset",
]

Normalization = Literal["batch", "layer", "none"]
Activation = Literal["sigmoid", "tanh", "relu", "none"]
Initialization = Literal["torch", "reference"]
Preset = Literal["default", "paper", "reference"]
Inputs = Literal["image", "table"]

Weight = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=0)]
Size = Annotated[int, Field(ge=1)]
Widths = tuple[Size, ...]


class Options(BaseModel):
    """All settings of networks, objective and training; immutable and JSON-ready."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    # --- networks -----------------------------------------------------------------------
    channels: Widths = Field((64, 64, 128), description="filters of the image encoders g1, g2")
    kernel_size: Size = Field(5, description="width of their kernels")
    padding: Literal["valid", "same"] = Field("valid", description="of their convolutions")
    pools: Count = Field(2, description="convolutions followed by 2x2 pooling")
    encoder_widths: Widths = Field((128, 128), description="hidden layers of the table encoders")
    encoder_dropout: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.0, description="inside the table encoders"
    )
    linear_path: bool = Field(False, description="a linear map beside the table encoders' layers")
    latent_size: Size = Field(128, description="latent of the table encoders")
    latent_activation: Activation = Field("sigmoid", description="last activation of g1, g2, r")
    generator_widths: Widths = Field((512, 512), description="hidden layers of r")
    classifier_widths: Widths = Field((100, 100), description="hidden layers of f")
    dropout: Annotated[float, Field(ge=0, lt=1)] = Field(0.5, description="after f's first layer")
    critic_widths: Widths = Field((512, 512), description="hidden layers of D1 and D2")
    normalization: Normalization = Field("batch", description="inside every network")
    critic_normalization: Normalization | None = Field(
        None,
        description="inside D1 and D2, where it differs; batch statistics of each batch apart "
        "hide a shift of the mean from a critic",
    )
    initialization: Initialization = Field("torch", description="of all weights")
    batch_statistics: Literal["separate", "joint"] = Field(
        "separate",
        description="whether source and target rows (true and imputed ones, in a critic) pass a "
        "batch-normalised network apart, each with its own statistics, or as one batch",
    )
    prediction_statistics: Literal["running", "target"] = Field(
        "running",
        description="batch-norm statistics of an adapting model at prediction: the running ones "
        "of training, or estimated once on the unlabelled target",
    )
    standardize: bool = Field(
        False,
        description="scale columns by the source's mean and spread; by one common spread where "
        "its labels are predicted better so",
    )
    shortcut: bool = Field(
        False,
        description="whether a table's model carries a logistic regression of the observed "
        "columns, blended with f at prediction; `halfseen fit` fits it on held-out rows",
    )

    # --- stochastic imputation ----------------------------------------------------------
    noise_size: Count = Field(0, description="noise inputs of r; 0 is a deterministic generator")
    prediction_samples: Size = Field(1, description="imputations averaged at prediction")

    # --- objective ----------------------------------------------------------------------
    divergence: str = Field("adversarial", description="D of L1, and of L2 unless given apart")
    imputation_divergence: str | None = Field(None, description="the divergence inside L2")
    adaptation_weight: Weight = Field(1.0, description="λ1, of L1")
    imputation_weight: Weight = Field(1.0, description="weight of the divergence inside L2")
    reconstruction_weight: Weight = Field(1.0, description="λ_MSE, inside L2")
    classification_weight: Weight = Field(1.0, description="λ3, of L3")
    reconstruction: Literal["squared", "norm"] = Field(
        "squared",
        description="E‖z2 − ẑ2‖² per row (paper), or the un-squared norm of the batch (authors)",
    )
    ramp_reconstruction: bool = Field(
        True, description="whether the ramp of λ2 covers the reconstruction too"
    )
    classifier_latent: Literal["imputed", "true", "both"] = Field(
        "imputed", description="what f sees of the source's missing block: ẑ_S2, z_S2 or each"
    )
    detach_generator_input: bool = Field(
        False, description="whether ẑ_S2 = r(z_S1) keeps its gradient from reaching g1"
    )
    detach_true_latent: bool = Field(
        False, description="whether L2 treats z_S2 as given, so that g2 is shaped by labels alone"
    )

    # --- training -----------------------------------------------------------------------
    learning_rate: Positive = Field(1e-2, description="initial rate of every module")
    joint_rate_factor: Positive = Field(1.0, description="multiplies it after the warm-up")
    rate_decay: Weight = Field(10.0, description="a in lr / (1 + a p)^0.75 of the joint phase")
    imputation_rate_decay: Weight = Field(10.0, description="the same for r and D2")
    betas: tuple[Weight, Weight] = Field((0.8, 0.999), description="Adam's momenta")
    weight_decay: Weight = Field(0.0, description="decoupled weight decay")
    gradient_clip: Positive | None = Field(None, description="largest norm of the gradient")
    batch_size: Annotated[int, Field(ge=2)] | Literal["auto"] = Field(
        128, description="rows per domain and step; 'auto' fits it to the rows at hand"
    )
    warmup_batch_size: Annotated[int, Field(ge=2)] | Literal["auto"] = Field(
        32, description="the same for the warm-up"
    )
    balanced: bool = Field(True, description="oversample source classes to the largest one")
    warmup_epochs: Count = Field(10, description="source-only epochs before the joint phase")
    joint_epochs: Count | Literal["auto"] = Field(
        90, description="epochs of L1 + L2 + L3; 'auto' gives about 1,000 steps"
    )
    augmentation: Literal["none", "affine", "mask", "swap"] = Field(
        "none", description="of source batches: affine for images, mask or swap noise for tables"
    )

    # --- refinement ---------------------------------------------------------------------
    refine_epochs: Count = Field(10, description="epochs of self-training, where asked for")
    refine_threshold: Annotated[float, Field(gt=0, lt=1)] = Field(
        0.95, description="probability from which a target row's own prediction is its label"
    )
    refine_thresholds: Literal["fixed", "prior"] = Field(
        "fixed",
        description="which target rows get a pseudo-label: those above refine_threshold, or the "
        "surest of each class in proportion to the class proportions estimated on the target",
    )
    refine_share: Annotated[float, Field(gt=0, le=1)] = Field(
        0.5, description="share of the target rows that 'prior' gives a pseudo-label, at most"
    )
    refine_entropy_weight: Weight = Field(0.1, description="λ, of the entropy term")
    refine_source_weight: Weight = Field(1.0, description="of the source's classification term")
    refine_rate_factor: Positive = Field(0.1, description="multiplies the initial learning rate")
    refine_modules: Literal["all", "classifier"] = Field(
        "all", description="what refinement updates: f with ĝ, or f alone"
    )

    @property
    def divergence_of_imputation(self) -> str:
        """The divergence inside L2."""
        return self.imputation_divergence or self.divergence


def preset(
    name: Preset = "default",
    *,
    inputs: Inputs = "image",
    divergence: str = "adversarial",
    imputes: bool = True,
) -> Options:
    """Return all settings of a preset for one kind of inputs, divergence and model.

    Examples
    --------
    >>> preset("reference").classifier_latent, preset("paper").classifier_latent
    ('true', 'imputed')
    >>> preset("paper", divergence="transport").adaptation_weight
    0.1
    """
    if name not in _PRESETS:
        raise OptionError(f"preset={name!r} is unknown; choose one of {list(_PRESETS)}.")
    settings: dict[str, Any] = {"divergence": divergence}
    kind = "transport" if divergence == "transport" else "critic"
    model = "imputing" if imputes else "plain"
    for key in ("all", inputs, kind, f"{inputs}-{kind}", f"{kind}-{model}"):
        settings |= _PRESETS[name].get(key, {})
    return make_options(settings)


def make_options(settings: Mapping[str, Any], base: Options | None = None) -> Options:
    """Return `base` (or the paper's values) with some settings replaced, each one checked.

    Examples
    --------
    >>> make_options({"learning_rate": -1})
    Traceback (most recent call last):
    halfseen.errors.OptionError: learning_rate=-1: Input should be greater than 0.
    """
    start = {} if base is None else base.model_dump()
    try:
        return Options(**{**start, **settings})
    except ValidationError as error:
        first = error.errors()[0]
        field = str(first["loc"][0])
        if first["type"] == "extra_forbidden":
            raise OptionError(
                f"There is no option {field!r}; the options are {sorted(Options.model_fields)}."
            ) from None
        raise OptionError(f"{field}={settings.get(field)!r}: {first['msg']}.") from None


_TABLE_NETWORKS: dict[str, Any] = {
    "normalization": "none",
    "dropout": 0.0,
    "encoder_widths": (128, 128),
    "latent_size": 128,
    "classifier_widths": (128,),
    "critic_widths": (128, 128),
    "generator_widths": (256, 256),
}

# What the paper and its code share on ads-kaggle. (On Amazon the paper sets λ_MSE to 1.)
_ADS: dict[str, Any] = _TABLE_NETWORKS | {
    "learning_rate": 1e-6,
    "imputation_rate_decay": 30.0,
    "reconstruction_weight": 0.005,
    "batch_size": 500,
    "warmup_batch_size": 500,
    "balanced": False,
    "refine_entropy_weight": 1.0,
}

# Applied in this order: all, kind of inputs, kind of divergence, both, divergence and model.
_PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "paper": {
        "image": {"padding": "same", "pools": 3},
        "table": _ADS | {"warmup_epochs": 5, "joint_epochs": 45},
        "transport": {"batch_size": 500, "adaptation_weight": 0.1, "imputation_weight": 0.1},
        # Without imputation, transport halves the rate once and does not decay it.
        "transport-plain": {"joint_rate_factor": 0.5, "rate_decay": 0.0},
    },
    "reference": {
        "all": {
            "initialization": "reference",
            "classifier_latent": "true",
            "reconstruction": "norm",
            "ramp_reconstruction": False,
        },
        "image": {
            "critic_widths": (500, 100),
            "warmup_epochs": 11,
            "joint_epochs": 89,
            "refine_entropy_weight": 0.01,
            "refine_source_weight": 0.01,
        },
        "table": _ADS
        | {
            "warmup_epochs": 6,
            "joint_epochs": 44,
            "refine_rate_factor": 1.0,
            "refine_modules": "classifier",
        },
        "transport": {
            "batch_size": 500,
            "adaptation_weight": 0.1,
            "imputation_weight": 0.1,
            "betas": (0.9, 0.999),
            "detach_generator_input": True,
        },
        "transport-plain": {"joint_rate_factor": 0.5, "rate_decay": 0.0},
    },
    "default": {
        "all": {
            "batch_size": "auto",
            "warmup_batch_size": "auto",
            "joint_epochs": "auto",
            "classifier_latent": "both",
            "detach_true_latent": True,
            "prediction_statistics": "target",
            "gradient_clip": 10.0,
        },
        "table": _TABLE_NETWORKS
        | {
            "standardize": True,
            "encoder_widths": (128,),
            "encoder_dropout": 0.6,
            "linear_path": True,
            "latent_size": 32,
            "classifier_widths": (),
            "balanced": False,
            "augmentation": "mask",
            "learning_rate": 1e-3,
            "betas": (0.9, 0.999),
            "weight_decay": 0.1,
            "warmup_epochs": 5,
            "reconstruction_weight": 10.0,
        },
        "transport": {"adaptation_weight": 0.1, "imputation_weight": 0.1},
    },
}
