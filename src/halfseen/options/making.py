"""Options from settings that people give, each one checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from pydantic import ValidationError

from halfseen.errors import OptionError
from halfseen.options.groups import Group, Options
from halfseen.options.names import GROUPS, merged, nearest, nested, option_names

TERM_SETTINGS: dict[str, type[Group]] = {}
"""Settings of each registered term; filled by ``halfseen.networks.terms.register``."""


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
    if base is not None:
        start = base.model_dump()
        _check_inputs(given, "tables" if base.inputs == "table" else "images")
    else:
        start = {} if given.get("tables") is not None else {"images": {}}
    whole = merged(start, given)
    if isinstance(whole.get("objective"), Mapping):
        terms = _terms(whole["objective"].get("terms") or {})
        whole["objective"] = {**whole["objective"], "terms": terms}
    try:
        return Options.model_validate(whole)
    except ValidationError as error:
        raise OptionError(_sentence(error, given)) from None


def _check_inputs(given: Mapping[str, Any], own: str) -> None:
    """Refuse settings of the encoders of another kind of inputs."""
    other = {"images": "tables", "tables": "images"}[own]
    if given.get(other):
        raise OptionError(f"{other}.{next(iter(given[other]))} does not apply to {own}.")
    if own in given and given[own] is None:
        raise OptionError(f"{own}=None: these options are for {own}.")


def _terms(named: Any) -> dict[str, Any]:
    """Return the settings of each further term, checked by that term's own group."""
    if not isinstance(named, Mapping):
        raise OptionError(
            f"objective.terms={named!r}: give a mapping from the names of terms to their settings."
        )
    found: dict[str, Any] = {}
    for name, settings in named.items():
        kind = _settings_of(name)
        if settings is None:
            continue
        if not isinstance(settings, Mapping):
            raise OptionError(
                f"objective.terms.{name}={settings!r}: give a mapping of its settings, {{}} for "
                "all as they are, or None to leave the term out."
            )
        try:
            found[name] = kind(**settings).model_dump()
        except ValidationError as error:
            names = [f"objective.terms.{name}.{field}" for field in kind.model_fields]
            raise OptionError(
                _sentence(error, settings, f"objective.terms.{name}.", names)
            ) from None
    return found


def _settings_of(name: str) -> type[Group]:
    if name not in TERM_SETTINGS:
        import_module("halfseen.networks.terms")  # where the library's own terms are registered
    if name not in TERM_SETTINGS:
        raise OptionError(
            f"There is no term {name!r} for objective.terms.{_hint(name, list(TERM_SETTINGS))} The "
            f"terms are {', '.join(sorted(TERM_SETTINGS))}."
        )
    return TERM_SETTINGS[name]


def _sentence(
    error: ValidationError, given: Mapping[str, Any], prefix: str = "", names: Sequence[str] = ()
) -> str:
    """Return the first complaint, with the dotted name and the value as it was given."""
    first = error.errors()[0]
    message = first["msg"].removeprefix("Value error, ").rstrip(".")
    depth = 1 if prefix else 2
    place = [str(part) for part in first["loc"][:depth]]
    name = prefix + ".".join(place)
    if first["type"] == "extra_forbidden":
        group = name.rpartition(".")[0]
        known = list(names) or option_names()
        own = [other.rpartition(".")[2] for other in known if other.startswith(f"{group}.")]
        kind = f"options of {group.rpartition('.')[2]}" if group else "groups of options"
        hint = _hint(name, known)
        return f"There is no option {name!r}.{hint} The {kind} are {', '.join(own or GROUPS)}."
    if not place:
        return f"{message}."
    value: Any = given
    for part in place:
        value = value.get(part, first["input"]) if isinstance(value, Mapping) else first["input"]
    if name in GROUPS:
        example = next(iter(GROUPS[name].model_fields))
        message = (
            f"{name} is a group of options; give a mapping, or name one of them, as in "
            f"{name}.{example}"
        )
    return f"{name}={value!r}: {message}."


def _hint(name: str, known: Sequence[str]) -> str:
    """Return a question for the nearest known name, or nothing where none is near."""
    near = nearest(name, known)
    return f" Did you mean {near!r}?" if near else ""
