"""What a user says of columns, and whether it can be true; the rest is found."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from halfseen.blocks import Blocks
from halfseen.data.dates import expanded
from halfseen.data.schema import DateColumn
from halfseen.data.tables import ArrowTable, Table
from halfseen.data.values import quoted, spelling
from halfseen.errors import capitalized

Task = Literal["auto", "classification", "regression"]
"""What a label is; ``auto`` decides where there is no doubt."""

Missing = Blocks | Sequence[str] | Sequence[int] | npt.NDArray[np.bool_] | str | None
"""How a user may name the missing block in Python; None finds it."""


@dataclass(frozen=True)
class ColumnSpec:
    """What the user says of a table's columns."""

    label: str
    missing: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    """Columns that the target has although they look otherwise."""
    categorical: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    id: tuple[str, ...] = ()
    """Columns carried through."""
    positive: str | None = None
    """The class of two that metrics speak of."""
    in_python: bool = False
    """Whether messages speak of Python or of the command line."""
    numeric: tuple[str, ...] = ()
    """Columns of numbers in which texts stand for gaps."""
    dates: Mapping[str, DateColumn] = field(default_factory=dict)
    """Columns of dates, of which parts are read."""
    target_labels: bool | None = None
    """Whether labels that target rows have are used; None uses them where some rows lack one."""
    task: Task = "auto"
    weight: str | None = None
    """Column of the source that says how much each row counts."""

    @property
    def apart(self) -> set[str]:
        """Columns that are no inputs."""
        return {self.label, *self.id, *self.drop, *([] if self.weight is None else [self.weight])}

    def option(self, name: str, *columns: str) -> str:
        """Return how the user would say it."""
        return f"{name}={list(columns)}" if self.in_python else f"--{name} {','.join(columns)}"

    def said(self, name: str, value: str) -> str:
        """Return how the user would say one value."""
        return f"{name}={value!r}" if self.in_python else f"--{name} {value}"


def check_spec(source: Table, target: Table, spec: ColumnSpec) -> list[str]:
    """Return what is wrong with the names: some are not there, or have two spec."""
    problems = []
    called = "source" if isinstance(source, ArrowTable) else f"source {source.where}"
    if spec.label not in source.names:
        problems.append(
            f"The {called} has no column {spec.label!r} to take labels from"
            f"{similar(spec.label, source.names)}."
        )
    given = {
        "missing": spec.missing,
        "keep": spec.keep,
        "drop": spec.drop,
        "id": spec.id,
        "weight": () if spec.weight is None else (spec.weight,),
        "categorical": spec.categorical,
        "numeric": spec.numeric,
        "dates": tuple(spec.dates),
    }
    flag = "" if spec.in_python else "--"
    roles_of = {spec.label: "label"}
    for option, names in given.items():
        made = expanded(source.names, spec.dates)
        known = {"id": (*source.names, *target.names), "dates": source.names}.get(
            option, tuple(dict.fromkeys((*made, *source.names)))
        )
        for name in names:
            if name not in known:
                problems.append(
                    f"{flag}{option} names column {name!r}, which the {called} does not have"
                    f"{similar(name, known)}."
                )
                continue
            # What is seen or missing may be of any kind.
            other = roles_of.setdefault(name, option)
            shared = option in ("numeric", "dates") or (
                option == "categorical" and other in ("missing", "keep")
            )
            if other != option and not shared:
                problems.append(
                    f"Column {name!r} is given to both {flag}{other} and {flag}{option}."
                )
    return problems


def check_spelling(
    names: Sequence[str], target: Table, there: Sequence[str], spec: ColumnSpec
) -> list[str]:
    """Say so where the target seems to lack columns only because of how they are spelled."""
    lacking = {spelling(n): n for n in names if n not in (*there, *spec.missing)}
    others = [other for other in there if other not in (*names, *spec.id)]
    alike = {lacking[spelling(other)]: other for other in others if spelling(other) in lacking}
    if not alike:
        return []
    renames = " ".join(f"--rename '{other}={name}'" for name, other in alike.items())
    how = "rename them" if spec.in_python else renames
    own, other = (listed([quoted(n) for n in some]) for some in (alike.values(), alike))
    return [
        f"{capitalized(target.where)} has {own}, and the source {other}: if they are the same, "
        f"{how}; if not, {spec.option('missing', ','.join(alike))}."
    ]


def as_gaps(name: str, spec: ColumnSpec) -> str:
    """Return how texts among numbers become gaps."""
    if spec.in_python:
        return "make them numbers, other texts NaN"
    return f"{spec.option('numeric', name)} takes such texts for gaps"


def similar(name: str, names: Sequence[str]) -> str:
    """Return how a sentence ends on a column that is not there: one like it, or all there are."""
    alike = {spelling(other): other for other in names}
    close = difflib.get_close_matches(spelling(name), alike, n=1)
    return f" (did you mean {alike[close[0]]!r}?)" if close else f"; it has {listed(names)}"


def listed(names: Sequence[object], most: int = 8) -> str:
    """Return names in a row; of many the first ones, and how many more there are."""
    shown = ", ".join(str(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
