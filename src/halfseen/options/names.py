"""Names of options: dotted (``training.learning_rate``) or as nested mappings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, get_args

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
_OTHER: dict[Inputs, str] = {"image": "tables", "table": "images"}


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
        found = merged(found, inner)
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


def merged(start: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested settings with others laid over them; lists and numbers are replaced."""
    found = dict(start)
    for name, value in given.items():
        before = found.get(name)
        both = isinstance(value, Mapping) and isinstance(before, Mapping)
        found[name] = merged(before, value) if both else value  # type: ignore[arg-type]
    return found


def nearest(name: str, names: Sequence[str]) -> str | None:
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
