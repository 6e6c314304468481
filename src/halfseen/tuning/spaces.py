"""What a search may vary, and how a setting reaches an estimator.

Of networks the paper's grids; without networks members, and whether they are taught.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sklearn.base import clone

from halfseen.errors import OptionError
from halfseen.estimators import HalfSeenClassifier, HalfSeenRegressor
from halfseen.networks.variants import NetworkVariant
from halfseen.options import Inputs, Options, dotted, option_names
from halfseen.settings import TREES_AND_REGRESSION

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

RATES = tuple(10**exponent for exponent in (-2, -2.5, -3, -3.5, -4))
"""Learning rates of the paper on digits."""
SMALL_RATES = (1e-4, 1e-5, 1e-6, 1e-7)
"""Learning rates of the paper on ads."""
TRANSPORT_WEIGHTS = (1e-1, 1e-2, 1e-3)
"""λ_OT, and λ1 with it."""
RECONSTRUCTION_WEIGHTS = (1.0, 1e-1, 1e-2, 7.5e-3, 5e-3, 1e-3)
"""λ_MSE."""

MEMBERS = "Trees and regression"
"""What a model without networks is called."""
PLUS = "+"
"""Joins members to one choice."""

Estimator = HalfSeenClassifier | HalfSeenRegressor
E = TypeVar("E", bound=Estimator)
Space = Mapping[str, "Sequence[Any] | BaseDistribution"]
"""What each setting may be: choices, or a distribution of Optuna's."""


class Searched(NamedTuple):
    """What is searched: a model's name, what may be varied by default, the options as given."""

    name: str
    space: Space
    options: Mapping[str, Any]

    @classmethod
    def of(cls, estimator: Estimator, *, image: bool) -> Searched:
        inputs: Inputs = "image" if image else "table"
        settings = estimator.settings_of_fit()
        kinds = settings.members_for(inputs)
        if isinstance(estimator, HalfSeenRegressor) or "networks" not in kinds:
            return cls(MEMBERS, member_space(), {})
        method = settings.variants(inputs)[0]
        options = settings.options_for(method, inputs=inputs)
        return cls(method.name, paper_space(method, options), options.model_dump(mode="json"))


def member_space() -> dict[str, Sequence[Any]]:
    """Return every choice of members, with teachers that see the missing block and without.

    Examples
    --------
    >>> member_space()["members"][:2], member_space()["effort"]
    (('boosted_trees+forest+regression', 'boosted_trees+forest'), ('default', 'quick'))
    """
    sizes = range(len(TREES_AND_REGRESSION), 0, -1)
    some = (chosen for size in sizes for chosen in combinations(TREES_AND_REGRESSION, size))
    return {"members": tuple(map(PLUS.join, some)), "effort": ("default", "quick")}


def members_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with members that were one choice as a list of them."""
    given = settings.get("members")
    return dict(settings) | ({"members": given.split(PLUS)} if isinstance(given, str) else {})


def paper_space(method: NetworkVariant, options: Options) -> dict[str, Sequence[Any]]:
    """Return the paper's grids for what matters to one model (appendix, hyperparameters).

    The learning rate for every model: the grid of its digits, or that of its ads where the
    model's own rate lies below it. λ_MSE for a model that imputes; λ_OT for one that imputes with
    transport; λ1 for one that adapts with it. With critics the paper keeps those two at one.
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


def with_settings(estimator: E, settings: Mapping[str, Any]) -> E:
    """Return an unfitted copy of an estimator with some options or parameters replaced.

    Examples
    --------
    >>> model = HalfSeenClassifier(options={"generator": {"widths": [8]}})
    >>> changed = with_settings(model, {"training.learning_rate": 0.01, "refine": True})
    >>> changed.refine, changed.options
    (True, {'generator.widths': [8], 'training.learning_rate': 0.01})
    """
    known = estimator.get_params(deep=False)
    for name in settings:
        if name not in known and not ("options" in known and _is_option(name)):
            raise OptionError(
                f"The search varies {name!r}, which is neither an option, such as "
                f"'training.learning_rate', nor a parameter of {type(estimator).__name__}."
            )
    changed: E = clone(estimator)
    given = members_of(settings)
    return changed.set_params(**{name.replace(".", "__"): v for name, v in given.items()})


def with_given(
    space: Space, estimator: Estimator, options: Mapping[str, Any]
) -> tuple[dict[str, BaseDistribution], dict[str, Any]]:
    """Return the space with each setting's present value in it, and those values.

    So a search always has the settings as given to compare with.
    """
    from optuna.distributions import BaseDistribution, CategoricalDistribution

    if not space:
        raise OptionError("The search has nothing to vary: its space is empty.")
    with_settings(estimator, dict.fromkeys(space))  # unknown names
    present = estimator.get_params(deep=False) | dotted(options)
    present["members"] = PLUS.join(present["members"] or TREES_AND_REGRESSION)
    widened: dict[str, BaseDistribution] = {}
    given: dict[str, Any] = {}
    for name, choices in space.items():
        value = present.get(name)
        if not isinstance(choices, BaseDistribution):
            choices = tuple(choices) if value in choices else (*choices, value)
            widened[name], given[name] = CategoricalDistribution(choices), value
            continue
        widened[name] = choices
        if isinstance(value, int | float) and choices.low <= value <= choices.high:  # type: ignore[attr-defined]
            given[name] = value
    return widened, given


def _is_option(name: str) -> bool:
    return name in option_names() or name.startswith("objective.terms.")
