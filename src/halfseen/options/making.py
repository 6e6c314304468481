"""Options from settings that people give, each one checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from pydantic import ValidationError

from halfseen.errors import OptionError
from halfseen.options.groups import Group, Options
from halfseen.options.names import GROUPS, check_names, merged, nested

__all__ = ["TERM_SETTINGS", "make_options"]

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
    check_names(given)
    if base is not None:
        start = base.model_dump()
        _check_inputs(given, "tables" if base.inputs == "table" else "images")
    else:
        start = {} if given.get("tables") is not None else {"images": {}}
    whole = merged(start, given)
    objective = whole.get("objective", {})
    whole["objective"] = {**objective, "terms": _terms(objective.get("terms") or {})}
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
            first = error.errors()[0]
            field = str(first["loc"][0]) if first["loc"] else ""
            if first["type"] == "extra_forbidden":
                hint = _hint(field, kind.model_fields, f"objective.terms.{name}.")
                own = ", ".join(kind.model_fields) or "none"
                raise OptionError(
                    f"There is no option 'objective.terms.{name}.{field}'.{hint} The options of "
                    f"{name} are {own}."
                ) from None
            raise OptionError(
                f"objective.terms.{name}.{field}={settings.get(field)!r}: {first['msg']}."
            ) from None
    return found


def _settings_of(name: str) -> type[Group]:
    if name not in TERM_SETTINGS:
        import_module("halfseen.networks.terms")  # where the library's own terms are registered
    if name not in TERM_SETTINGS:
        raise OptionError(
            f"There is no term {name!r} for objective.terms.{_hint(name, TERM_SETTINGS)} The terms "
            f"are {', '.join(sorted(TERM_SETTINGS))}."
        )
    return TERM_SETTINGS[name]


def _hint(name: str, known: Iterable[str], prefix: str = "") -> str:
    """Return a question for the nearest known name, or nothing where none is near."""
    near = get_close_matches(name, known, n=1)
    return f" Did you mean {prefix + near[0]!r}?" if near else ""


def _sentence(error: ValidationError, given: Mapping[str, Any]) -> str:
    """Return the first complaint with the dotted name and the value as it was given."""
    first = error.errors()[0]
    message = first["msg"].removeprefix("Value error, ").rstrip(".")
    place = [str(part) for part in first["loc"]]
    if len(place) < 2 or place[0] not in GROUPS:
        return f"{message}."
    group, name = place[:2]
    value = given.get(group, {}).get(name) if group in given else first["input"]
    return f"{group}.{name}={value!r}: {message}."
