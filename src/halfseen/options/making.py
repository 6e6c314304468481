"""Options from settings that people give, by dotted names or nested, each one checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any, get_args

from pydantic import ValidationError

from halfseen.errors import OptionError
from halfseen.options.groups import Group, Inputs, Options


def _group(annotation: Any) -> type[Group]:
    """Return the group of a field such as ``images: ImageNetworks | None``."""
    kinds = [annotation, *get_args(annotation)]
    found: type[Group] = next(k for k in kinds if isinstance(k, type) and issubclass(k, Group))
    return found


GROUPS: dict[str, type[Group]] = {
    name: _group(field.annotation) for name, field in Options.model_fields.items()
}
"""Every group by its name."""
TERM_SETTINGS: dict[str, type[Group]] = {}
"""Settings of each registered term; filled by ``halfseen.networks.terms.register``."""
_OTHER = {"image": "tables", "table": "images"}
"""The group of the other kind of inputs."""


def option_names(inputs: Inputs | None = None) -> list[str]:
    """Return the dotted name of every option, or of those that apply to one kind of inputs.

    Examples
    --------
    >>> [name for name in option_names("table") if name.startswith("tables.")]
    ['tables.widths', 'tables.dropout', 'tables.linear_path', 'tables.latent_size']
    """
    left_out = None if inputs is None else _OTHER[inputs]
    return [
        f"{group}.{field}"
        for group, model in GROUPS.items()
        if group != left_out
        for field in model.model_fields
    ]


def nested(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with dotted names, nested mappings or both as nested mappings.

    Examples
    --------
    >>> nested({"training.learning_rate": 0.1, "training": {"betas": (0.9, 0.99)}})
    {'training': {'learning_rate': 0.1, 'betas': (0.9, 0.99)}}
    """
    found: dict[str, Any] = {}
    for name, value in settings.items():
        inner = nested(value) if isinstance(value, Mapping) else value
        for part in reversed(str(name).split(".")):
            inner = {part: inner}
        found = _merged(found, inner)
    return found


def dotted(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same settings under dotted names; a term without settings is an empty mapping.

    Examples
    --------
    >>> dotted({"training": {"learning_rate": 0.1}, "objective.terms.class_alignment": {}})
    {'training.learning_rate': 0.1, 'objective.terms.class_alignment': {}}
    """
    return dict(_leaves(nested(settings), ""))


def _leaves(settings: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _merged(start: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested settings with others laid over them; lists and numbers are replaced."""
    found = dict(start)
    for name, value in given.items():
        before = found.get(name)
        both = isinstance(value, Mapping) and isinstance(before, Mapping)
        found[name] = _merged(before, value) if both else value  # type: ignore[arg-type]
    return found


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
        own, other = f"{base.inputs}s", _OTHER[base.inputs]
        if given.get(other):
            raise OptionError(f"{other}.{next(iter(given[other]))} does not apply to {own}.")
        if own in given and given[own] is None:
            raise OptionError(f"{own}=None: these options are for {own}.")
    else:
        start = {} if given.get("tables") is not None else {"images": {}}
    whole = _merged(start, given)
    if isinstance(whole.get("objective"), Mapping):
        terms = _terms(whole["objective"].get("terms") or {})
        whole["objective"] = {**whole["objective"], "terms": terms}
    try:
        return Options.model_validate(whole)
    except ValidationError as error:
        raise OptionError(_sentence(error, given)) from None


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
    near = _nearest(name, known)
    return f" Did you mean {near!r}?" if near else ""


def _nearest(name: str, names: Sequence[str]) -> str | None:
    """Return the name that a wrong one most likely meant: by its last word, or as a whole."""
    group, _, last = name.rpartition(".")
    within = [known for known in names if known.startswith(f"{group}.")] or names
    for known in (*within, *names):
        word = known.rpartition(".")[2]
        if word == last or (within != names and last in word):
            return known
    by_last = {known.rpartition(".")[2]: known for known in within}
    close = get_close_matches(last, by_last, n=1) or get_close_matches(name, names, n=1)
    return by_last.get(close[0], close[0]) if close else None
