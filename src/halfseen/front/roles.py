"""What a user says of columns, and whether it can be true; the rest is found."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from halfseen.blocks import Blocks
from halfseen.errors import InputError, capitalized
from halfseen.front.preprocessing import are_numbers
from halfseen.front.tables import ArrowTable, Table

Task = Literal["auto", "classification", "regression"]
"""What a label is; ``auto`` decides where there is no doubt."""

if TYPE_CHECKING:
    from halfseen.front.summary import TableSummary

Missing = Blocks | Sequence[str] | Sequence[int] | npt.NDArray[np.bool_] | str | None
"""How a user may name the missing block in Python; None finds it."""
FEWEST_NUMBERS = 10
"""Different numbers from which a column of texts looks like numbers,"""
MOST_STRAYS = 0.2
"""where at most this share of its rows holds other texts."""
_DAY = r"(\d\d?[-/. ](\d\d?|[A-Za-z]{3,9})|[A-Za-z]{3,9}\.? \d\d?)"
DATE = rf"(\d\d?/\d\d?/\d\d|{_DAY}[-/., ]+(19|20)\d\d|(19|20)\d\d\D\d\d?\D\d)"
"""How dates begin that are read as texts: 5/17/24, 17 May 2024, May 17, 2024."""


@dataclass(frozen=True)
class Roles:
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
    dates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Columns of dates, of which the tables show parts."""
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


def check_roles(source: Table, target: Table, roles: Roles) -> None:
    """Refuse names that are not there, and columns given two roles."""
    called = "source" if isinstance(source, ArrowTable) else f"source {source.where}"
    if roles.label not in source.names:
        raise InputError(
            f"The {called} has no column {roles.label!r} to take labels from"
            f"{similar(roles.label, source.names)}."
        )
    given = {
        "missing": roles.missing,
        "keep": roles.keep,
        "drop": roles.drop,
        "id": roles.id,
        "weight": () if roles.weight is None else (roles.weight,),
        "categorical": roles.categorical,
        "numeric": roles.numeric,
    }
    flag = "" if roles.in_python else "--"
    roles_of = {roles.label: "label"}
    for option, names in given.items():
        known = source.names if option != "id" else (*source.names, *target.names)
        for name in names:
            if name not in known:
                raise InputError(
                    f"{flag}{option} names column {name!r}, which the {called} does not have"
                    f"{similar(name, known)}."
                )
            # What is seen or missing may be of any kind.
            other = roles_of.setdefault(name, option)
            shared = option == "numeric" or (
                option == "categorical" and other in ("missing", "keep")
            )
            if other != option and not shared:
                raise InputError(
                    f"Column {name!r} is given to both {flag}{other} and {flag}{option}."
                )


def check_spelling(names: Sequence[str], target: Table, roles: Roles) -> None:
    """Refuse columns that the target seems to lack only because of how their names are spelled."""
    lacking = {spelling(n): n for n in names if n not in (*target.names, *roles.missing)}
    others = [other for other in target.names if other not in (*names, *roles.id)]
    alike = {lacking[spelling(other)]: other for other in others if spelling(other) in lacking}
    if not alike:
        return
    renames = " ".join(f"--rename '{other}={name}'" for name, other in alike.items())
    how = "rename them" if roles.in_python else renames
    here, there = (listed([repr(n) for n in some]) for some in (alike.values(), alike))
    raise InputError(
        f"{capitalized(target.where)} has {here}, and the source {there}: if they are the same, "
        f"{how}; if not, {roles.option('missing', ','.join(alike))}."
    )


def spelling(name: str) -> str:
    """Return a name without what people spell differently: capitals, spaces, dashes."""
    return re.sub(r"[\s_\-.]+", "", name).casefold()


def check_strays(seen: TableSummary, roles: Roles) -> None:
    """Refuse a column of numbers among which there are a few texts, and dates as texts."""
    for name, column in seen.columns.items():
        if column.values != "text" or column.has_more or name in roles.categorical:
            continue
        texts = list(column.counts)
        if texts and all(re.match(DATE, text) for text in texts):
            raise InputError(
                f"Column {name!r} holds dates as texts such as {texts[0]!r}, which can be read in "
                f"several ways: write them as 2024-05-17, or leave it out "
                f"({roles.option('drop', name)}); {roles.option('categorical', name)} takes each "
                "for a category."
            )
        numbers = are_numbers(pa.array(texts, pa.string())).to_pylist()
        strays = [text for text, is_number in zip(texts, numbers, strict=True) if not is_number]
        rows = sum(column.counts[text] for text in strays)
        known = column.rows - column.gaps
        if strays and len(texts) - len(strays) > FEWEST_NUMBERS and rows <= MOST_STRAYS * known:
            more = f" and {len(strays) - 1} other texts" if len(strays) > 1 else ""
            raise InputError(
                f"Column {name!r} looks like numbers except for {strays[0]!r}{more} in {rows:,} "
                f"row{'s' if rows > 1 else ''}: {as_gaps(name, roles)}, or "
                f"{roles.option('categorical', name)} takes all for categories."
            )


def as_gaps(name: str, roles: Roles) -> str:
    """Return how texts among numbers become gaps."""
    if roles.in_python:
        return "make them numbers, other texts NaN"
    return f"{roles.option('numeric', name)} takes such texts for gaps"


def similar(name: str, names: Sequence[str]) -> str:
    """Return how a sentence ends on a column that is not there: one like it, or all there are."""
    alike = {spelling(other): other for other in names}
    close = difflib.get_close_matches(spelling(name), alike, n=1)
    return f" (did you mean {alike[close[0]]!r}?)" if close else f"; it has {listed(names)}"


def listed(names: Sequence[object], most: int = 8) -> str:
    """Return names in a row; of many the first ones, and how many more there are."""
    shown = ", ".join(str(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
