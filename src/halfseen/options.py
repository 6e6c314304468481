"""Every choice of the networks in one place, in groups, checked where people make it.

Where the paper and its authors' code differ, the difference is a field here whose name says
what it does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, Any, Literal, Self, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from halfseen.errors import OptionError

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


def _opt(default: Any, description: str) -> Any:
    return Field(default=default, description=description)


class Group(BaseModel):
    """Some options that belong together; immutable and JSON-ready."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ImageNetworks(Group):
    """The encoders g1 and g2 of images."""

    channels: Widths = _opt((64, 64, 128), "filters of each convolution")
    kernel_size: Size = _opt(5, "width of the kernels")
    padding: Literal["valid", "same"] = _opt("valid", "of the convolutions")
    pools: Count = _opt(2, "convolutions followed by 2x2 pooling")
    standardize: bool | Literal["auto"] = _opt(
        False,
        "bring each image to mean 0 and spread 1 of its measured pixels; auto: where the domains "
        "look different and the source's light varies more",
    )


class TableNetworks(Group):
    """The encoders g1 and g2 of tables."""

    widths: Widths = _opt((128, 128), "hidden layers")
    dropout: Share = _opt(0.0, "of the input and after the first hidden layer")
    linear_path: bool = _opt(False, "a linear map beside the hidden layers")
    latent_size: Size = _opt(128, "width of the latent")


class NetworkOptions(Group):
    """What all networks share, and the classifier f and the critics D1 and D2."""

    classifier_widths: Widths = _opt((100, 100), "hidden layers of f")
    classifier_dropout: Share = _opt(0.5, "after f's first layer")
    critic_widths: Widths = _opt((512, 512), "hidden layers of D1 and D2")
    normalization: Normalization = _opt("batch", "inside every network")
    initialization: Initialization = _opt("torch", "of all weights")
    prediction_statistics: Literal["running", "target"] = _opt(
        "running",
        "batch-norm statistics of an adapting model at prediction: the running ones of training, "
        "or estimated once on the unlabelled target",
    )


class GeneratorOptions(Group):
    """The generator r, which imputes latents."""

    widths: Widths = _opt((512, 512), "hidden layers of r")


class ObjectiveOptions(Group):
    """What is minimised in the joint phase."""

    divergence: str = _opt("adversarial", "D of L1, and of L2 unless given apart")
    imputation_divergence: str | None = _opt(None, "the divergence inside L2")
    adaptation_weight: Weight = _opt(1.0, "λ1, of L1")
    imputation_weight: Weight = _opt(1.0, "weight of the divergence inside L2")
    reconstruction_weight: Weight = _opt(1.0, "λ_MSE, inside L2")
    classification_weight: Weight = _opt(1.0, "λ3, of L3")
    reconstruction: Literal["squared", "norm"] = _opt(
        "squared", "E‖z2 − ẑ2‖² per row (paper), or the norm of the batch (authors)"
    )
    ramp_reconstruction: bool = _opt(True, "let the ramp of λ2 cover the reconstruction too")
    classifier_latent: Literal["imputed", "true", "both"] = _opt(
        "imputed", "what f sees of the source's missing block: ẑ_S2, z_S2 or each"
    )
    adaptation_latent: Literal["both", "observed"] = _opt(
        "both", "what L1 compares: (z1, ẑ2), or z1, of which ẑ2 is a function"
    )
    fading_adaptation: bool = _opt(
        False,
        "let the pull of L1 on the encoders fall to zero until the joint phase ends: by then an "
        "averaged teacher knows more of the target than a critic",
    )
    detach_generator_input: bool = _opt(
        False, "keep the gradient of ẑ_S2 = r(z_S1) from reaching g1"
    )
    detach_true_latent: bool = _opt(False, "take z_S2 as given in L2: labels alone shape g2")
    terms: dict[str, dict[str, Any]] = _opt({}, "further losses by name, each with its settings")

    @property
    def divergence_of_imputation(self) -> str:
        return self.imputation_divergence or self.divergence


class TrainingOptions(Group):
    """Optimiser, batches and lengths of the phases."""

    learning_rate: Positive = _opt(1e-2, "initial rate of every module")
    joint_rate_factor: Positive = _opt(1.0, "multiplies it after the warm-up")
    rate_decay: Weight = _opt(10.0, "a in lr / (1 + a p)^0.75 of the joint phase")
    imputation_rate_decay: Weight = _opt(10.0, "the same for r and D2")
    betas: tuple[Weight, Weight] = _opt((0.8, 0.999), "Adam's momenta")
    weight_decay: Weight = _opt(0.0, "decoupled weight decay")
    gradient_clip: Positive | None = _opt(None, "largest norm of the gradient")
    batch_size: BatchSize = _opt(128, "rows per domain and step; auto: by the rows at hand")
    warmup_batch_size: BatchSize = _opt(32, "the same for the warm-up")
    balanced: bool = _opt(True, "oversample source classes to the largest one")
    warmup_epochs: Count = _opt(10, "source-only epochs before the joint phase")
    joint_epochs: Count | Literal["auto"] = _opt(90, "epochs of L1 + L2 + L3; auto: by steps")
    joint_steps: Size | None = _opt(None, "steps that auto aims for; if none, 300, of images 4,000")
    epoch_steps: Size | None = _opt(None, "most steps of an epoch; if none, a pass over the source")
    augmentation: Augmentation = _opt(
        "none",
        "of source batches: mask noise for tables; for images affine changes (affine, wide, half "
        "as wide: mild), contrast, inversion and brightness (light; mild-light without "
        "inversion), both, or auto: wide, with light where the domains look different",
    )
    target_augmentation: Augmentation = _opt(
        "none",
        "the same of target batches; auto: wide, or mild with mild-light where the domains look "
        "different",
    )


class RefinementOptions(Group):
    """Self-training on the target, where it is asked for."""

    epochs: Count = _opt(10, "epochs of self-training")
    threshold: Annotated[float, Field(gt=0, lt=1)] = _opt(
        0.95, "probability from which a target row's own prediction is its label"
    )
    entropy_weight: Weight = _opt(0.1, "λ, of the entropy term")
    source_weight: Weight = _opt(1.0, "of the source's classification term")
    rate_factor: Positive = _opt(0.1, "multiplies the initial learning rate")
    modules: Literal["all", "classifier"] = _opt(
        "all", "what refinement updates: f with ĝ, or f alone"
    )


class Options(Group):
    """All settings of networks, objective and training.

    Exactly one of `images` and `tables` is set: the one for the inputs at hand.
    """

    images: ImageNetworks | None = _opt(None, "encoders, where inputs are images")
    tables: TableNetworks | None = _opt(None, "encoders, where inputs are tables")
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


GROUPS: dict[str, type[Group]] = {
    "images": ImageNetworks,
    "tables": TableNetworks,
    "networks": NetworkOptions,
    "generator": GeneratorOptions,
    "objective": ObjectiveOptions,
    "training": TrainingOptions,
    "refinement": RefinementOptions,
}
"""Every group by its name."""
TERM_SETTINGS: dict[str, type[Group]] = {}
"""Settings of each registered term; filled by ``halfseen.networks.terms.register``."""
_OTHER = {"image": "tables", "table": "images"}
"""The group of the other kind of inputs."""


def option_names(inputs: Inputs | None = None) -> list[str]:
    """Return the dotted name of every option, or of those that apply to one kind of inputs."""
    left_out = None if inputs is None else _OTHER[inputs]
    return [f"{g}.{f}" for g, model in GROUPS.items() if g != left_out for f in model.model_fields]


def nested(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with dotted names, nested mappings or both as nested mappings."""
    whole: dict[str, Any] = {}
    for name, value in settings.items():
        inner = nested(value) if isinstance(value, Mapping) else value
        for part in reversed(str(name).split(".")):
            inner = {part: inner}
        whole = _merged(whole, inner)
    return whole


def dotted(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same settings under dotted names; a term without settings is an empty mapping."""

    def leaves(settings: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
        for name, value in settings.items():
            if isinstance(value, Mapping) and value:
                yield from leaves(value, f"{prefix}{name}.")
            else:
                yield f"{prefix}{name}", value

    return dict(leaves(nested(settings), ""))


def _merged(start: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested settings with others laid over them; lists and numbers are replaced."""
    merged = dict(start)
    for name, value in given.items():
        before = merged.get(name)
        both = isinstance(value, Mapping) and isinstance(before, Mapping)
        merged[name] = _merged(before, value) if both else value  # type: ignore[arg-type]
    return merged


def make_options(settings: Mapping[str, Any], base: Options | None = None) -> Options:
    """Return `base` (or the paper's values for images) with some settings replaced and checked.

    Parameters
    ----------
    settings
        By dotted names, as nested mappings, or both. A term that is None is taken away.
    base
        Where the others come from; it also says what kind of inputs the options are for.

    Examples
    --------
    >>> options = make_options({"training.learning_rate": 0.1, "networks": {"critic_widths": [8]}})
    >>> options.training.learning_rate, options.networks.critic_widths
    (0.1, (8,))
    >>> make_options({"training.learning_rate": -1})
    Traceback (most recent call last):
    halfseen.errors.OptionError: training.learning_rate=-1: Input should be greater than 0.
    >>> make_options({"learning_rate": 0.1})
    Traceback (most recent call last):
    halfseen.errors.OptionError: There is no option 'learning_rate'. Did you mean \
'training.learning_rate'? The groups of options are images, tables, networks, generator, \
objective, training, refinement.
    """
    given = nested(settings)
    start: dict[str, Any] = {} if given.get("tables") is not None else {"images": {}}
    if base is not None:
        start = base.model_dump()
        own, other = f"{base.inputs}s", _OTHER[base.inputs]
        if given.get(other):
            raise OptionError(f"{other}.{next(iter(given[other]))} does not apply to {own}.")
        if own in given and given[own] is None:
            raise OptionError(f"{own}=None: these options are for {own}.")
    whole = _merged(start, given)
    if isinstance(whole.get("objective"), Mapping):
        terms = _terms(whole["objective"].get("terms") or {})
        whole["objective"] = {**whole["objective"], "terms": terms}
    return _valid(Options, whole, given)


def _terms(named: Any) -> dict[str, Any]:
    """Return the settings of each further term, checked by that term's own group."""
    place = "objective.terms"
    if not isinstance(named, Mapping):
        raise OptionError(
            f"{place}={named!r}: give a mapping from the names of terms to their settings."
        )
    if named:
        import_module("halfseen.networks.terms")  # where the library's own are registered
    terms: dict[str, Any] = {}
    for name, settings in named.items():
        if name not in TERM_SETTINGS:
            raise OptionError(
                f"There is no term {name!r} for {place}.{_hint(name, list(TERM_SETTINGS))} The "
                f"terms are {', '.join(sorted(TERM_SETTINGS))}."
            )
        if settings is not None and not isinstance(settings, Mapping):
            raise OptionError(
                f"{place}.{name}={settings!r}: give a mapping of its settings, {{}} for all as "
                "they are, or None to leave the term out."
            )
        if settings is not None:
            kind = TERM_SETTINGS[name]
            terms[name] = _valid(kind, settings, settings, f"{place}.{name}.").model_dump()
    return terms


AnyGroup = TypeVar("AnyGroup", bound=Group)


def _valid(
    kind: type[AnyGroup], settings: Mapping[str, Any], given: Mapping[str, Any], prefix: str = ""
) -> AnyGroup:
    """Return checked settings, or say the first complaint with the value as it was `given`."""
    try:
        return kind.model_validate(settings)
    except ValidationError as error:
        first = error.errors()[0]
    message = first["msg"].removeprefix("Value error, ").rstrip(".")
    place = [str(part) for part in first["loc"][: 1 if prefix else 2]]
    name = prefix + ".".join(place)
    if first["type"] == "extra_forbidden":
        known = [f"{prefix}{field}" for field in kind.model_fields] if prefix else option_names()
        group = name.rpartition(".")[0]
        own = [one.rpartition(".")[2] for one in known if one.startswith(f"{group}.")] or [*GROUPS]
        what = f"options of {group.rpartition('.')[2]}" if group else "groups of options"
        raise OptionError(
            f"There is no option {name!r}.{_hint(name, known)} The {what} are {', '.join(own)}."
        )
    if not place:
        raise OptionError(f"{message}.")
    value: Any = given
    for part in place:
        value = value.get(part, first["input"]) if isinstance(value, Mapping) else first["input"]
    if name in GROUPS:
        example = next(iter(GROUPS[name].model_fields))
        message = (
            f"{name} is a group of options; give a mapping, or name one of them, as in "
            f"{name}.{example}"
        )
    raise OptionError(f"{name}={value!r}: {message}.")


def _hint(name: str, known: Sequence[str]) -> str:
    """Return what a wrong name most likely meant: by its last word, or as a whole."""
    group, _, last = name.rpartition(".")
    words = {one: one.rpartition(".")[2] for one in known}
    within = [one for one in known if group and one.startswith(f"{group}.")]
    near = [one for one in within if last in words[one]]
    near += [one for one in known if words[one] == last]
    near += [
        one for one in (within or known) if words[one] in get_close_matches(last, words.values(), 1)
    ]
    near += get_close_matches(name, known, 1)
    return f" Did you mean {near[0]!r}?" if near else ""
