"""What a search may vary: the paper's grids, and how a setting reaches an estimator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from halfseen.errors import OptionError
from halfseen.networks.methods import Method
from halfseen.options import Options, dotted, option_names

__all__ = ["Range", "Space", "paper_space", "with_given", "with_settings"]

RATES = tuple(10**exponent for exponent in (-2, -2.5, -3, -3.5, -4))
"""Learning rates of the paper on digits."""
SMALL_RATES = (1e-4, 1e-5, 1e-6, 1e-7)
"""Learning rates of the paper on ads."""
TRANSPORT_WEIGHTS = (1e-1, 1e-2, 1e-3)
"""λ_OT, and λ1 with it."""
RECONSTRUCTION_WEIGHTS = (1.0, 1e-1, 1e-2, 7.5e-3, 5e-3, 1e-3)
"""λ_MSE."""


@dataclass(frozen=True)
class Range:
    """All numbers between two, evenly spread or, with `log`, evenly over their logarithm."""

    low: float
    high: float
    log: bool = True

    def __post_init__(self) -> None:
        if not self.low < self.high or (self.log and self.low <= 0):
            raise OptionError(
                f"A range from {self.low} to {self.high} holds no number"
                f"{' with a logarithm' if self.log else ''}."
            )


Space = Mapping[str, Sequence[Any] | Range]
"""What each setting may be: a dotted option, or a parameter of the estimator."""


def paper_space(method: Method, options: Options) -> dict[str, Sequence[Any]]:
    """Return the paper's grids for what matters to one model (appendix, hyperparameters).

    The learning rate for every model: the grid of its digits, or that of its ads where the
    model's own rate lies below it. λ_MSE for a model that imputes; λ_OT for one that imputes with
    transport; λ1 for one that adapts with it. With critics the paper keeps those two at one.

    Examples
    --------
    >>> from halfseen import preset
    >>> from halfseen.networks.methods import method_named
    >>> options = preset("paper", divergence="transport")
    >>> list(paper_space(method_named("Adaptation-Imputation"), options))
    ['training.learning_rate', 'objective.reconstruction_weight', 'objective.imputation_weight', \
'objective.adaptation_weight']
    >>> list(paper_space(method_named("Source-IgnoreComponent"), options))
    ['training.learning_rate']
    """
    rates = RATES if options.training.learning_rate >= min(RATES) else SMALL_RATES
    space: dict[str, Sequence[Any]] = {"training.learning_rate": rates}
    if method.imputes:
        space["objective.reconstruction_weight"] = RECONSTRUCTION_WEIGHTS
        if options.objective.divergence_of_imputation == "transport":
            space["objective.imputation_weight"] = TRANSPORT_WEIGHTS
    if method.adapts and options.objective.divergence == "transport":
        space["objective.adaptation_weight"] = TRANSPORT_WEIGHTS
    return space


def with_settings(estimator: Any, settings: Mapping[str, Any]) -> Any:
    """Return an unfitted copy of an estimator with some settings replaced.

    Examples
    --------
    >>> from halfseen import AdaptationImputationClassifier
    >>> model = AdaptationImputationClassifier(options={"generator": {"noise_size": 2}})
    >>> changed = with_settings(model, {"training.learning_rate": 0.01, "refine": True})
    >>> changed.refine, changed.options
    (True, {'generator.noise_size': 2, 'training.learning_rate': 0.01})
    """
    parameters = estimator.get_params(deep=False)
    options = dotted(parameters["options"] or {})
    others: dict[str, Any] = {}
    for name, value in settings.items():
        if _is_option(name):
            options[name] = value
        elif name in parameters:
            others[name] = value
        else:
            raise OptionError(
                f"The search varies {name!r}, which is neither an option, such as "
                f"'training.learning_rate', nor a parameter of {type(estimator).__name__}."
            )
    return clone(estimator).set_params(options=options or None, **others)


def with_given(
    space: Space, estimator: Any, options: Options
) -> tuple[dict[str, Sequence[Any] | Range], dict[str, Any]]:
    """Return the space with each setting's present value in it, and those values.

    So a search always has the settings as given to compare with.
    """
    if not space:
        raise OptionError("The search has nothing to vary: its space is empty.")
    parameters, present = estimator.get_params(deep=False), dotted(options.model_dump())
    widened: dict[str, Sequence[Any] | Range] = {}
    given: dict[str, Any] = {}
    for name, choices in space.items():
        value = present.get(name) if _is_option(name) else parameters.get(name)
        if isinstance(choices, Range):
            inside = isinstance(value, int | float) and choices.low <= value <= choices.high
            widened[name] = choices
        else:
            inside = True
            widened[name] = tuple(choices) if value in choices else (*choices, value)
        if inside:
            given[name] = value
    with_settings(estimator, given | {name: None for name in space})  # unknown names
    return widened, given


def _is_option(name: str) -> bool:
    return name in option_names() or name.startswith("objective.terms.")
