"""What a user says of columns and whether it can be true; and what is said back."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from halfseen.blocks import Blocks
from halfseen.data.dates import expanded
from halfseen.data.schema import DateColumn
from halfseen.data.table_summary import TableSummary
from halfseen.data.tables import ArrowTable, Table
from halfseen.data.values import quoted, spelling
from halfseen.errors import capitalized

Task = Literal["auto", "classification", "regression"]
"""What a label is; ``auto`` decides where there is no doubt."""

Missing = Blocks | Sequence[str] | Sequence[int] | npt.NDArray[np.bool_] | str | None
"""How a user may name the missing block in Python; None finds it."""
_DAY = r"(\d\d?[-/. ](\d\d?|[A-Za-z]{3,9})|[A-Za-z]{3,9}\.? \d\d?)"
_DATE = re.compile(rf"(\d\d?/\d\d?/\d\d|{_DAY}[-/., ]+(19|20)\d\d|(19|20)\d\d\D\d\d?\D\d)")
"""How dates begin that are read as texts: 5/17/24, 17 May 2024, May 17, 2024."""


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


# --- what is said of columns that were read -------------------------------------------------


def texts_problems(here: TableSummary, spec: ColumnSpec) -> list[str]:
    """Return what is wrong with columns of texts: dates as texts, numbers with a few others."""
    problems = []
    for name, undecided in here.undecided.items():
        column = here.columns.get(name)
        if column is None or column.values != "text" or name in spec.categorical:
            continue
        if column.counts and not column.has_more and all(map(_DATE.match, column.counts)):
            problems.append(
                f"Column {name!r} holds dates as texts such as {next(iter(column.counts))!r}, "
                "which can be read in several ways: write them as 2024-05-17, or leave it out "
                f"({spec.option('drop', name)}); {spec.option('categorical', name)} takes each "
                "for a category."
            )
        elif not undecided.code and (strays := undecided.numbers_but_for(column)):
            more = f" and {len(strays) - 1} other texts" if len(strays) > 1 else ""
            rows = strays.total()
            problems.append(
                f"Column {name!r} looks like numbers except for {quoted(next(iter(strays)))}{more} "
                f"in {rows:,} row{'s' if rows > 1 else ''}: {as_gaps(name, spec)}, or "
                f"{spec.option('categorical', name)} takes all for categories."
            )
    return problems


def written_notes(here: TableSummary) -> list[str]:
    """Say how texts were read that could be read in several ways."""
    columns = here.undecided
    codes = [n for n, c in columns.items() if c.code and not c.categorical and not c.kinds["text"]]
    numbers = {n: c.written for n, c in here.columns.items() if c.values == "number"}
    commas = [name for name, written in numbers.items() if written.decimal == ","]
    marked = [name for name, written in numbers.items() if written.marks]
    named = {
        name: [word for word, _ in column.words.most_common(3)]
        for name, column in columns.items()
        if column.words and name in here.columns and here.columns[name].values == "text"
    }
    notes = []
    if codes:
        notes.append(
            f"Kept as text, because numbers in them begin with 0 or are too long: {listed(codes)}."
        )
    if commas:
        notes.append(f"Read with decimal commas: {listed(commas)}.")
    if marked:
        notes.append(
            "Read as numbers without thousands separators, percent and currency signs: "
            f"{listed(marked)}."
        )
    for name, words in named.items():
        notes.append(
            f"{name} is a column of texts, with categories such as "
            f"{listed([repr(word) for word in words])}: leave cells empty if nothing is known."
        )
    return notes


def zone_notes(here: TableSummary, there: TableSummary) -> list[str]:
    """Say so where the times of a column are of several zones."""
    notes = []
    for name, of in here.dates.items():
        zones = here.zones.get(name, set()) | there.zones.get(name, set())
        if len(zones) > 1:
            shown = ", ".join(sorted(zone or "none" for zone in zones))
            notes.append(
                f"{name} has times of several zones ({shown}): all are read on the clock of "
                f"{of.zone or 'UTC'}; --dates {name}={','.join(of.parts)}@ZONE names another."
            )
    return notes


def extra_notes(source: Table, target: Table, spec: ColumnSpec) -> list[str]:
    """Say which columns the target has alone, and which of them may be the label."""
    extra = [name for name in target.names if name not in (*source.names, *spec.id)]
    notes = [f"Ignored, because the source lacks them: {listed(extra)}."] if extra else []
    respelled = [name for name in extra if spelling(name) == spelling(spec.label)]
    if respelled and spec.label not in target.names:
        notes.append(
            f"{respelled[0]!r} of the target looks like the label {spec.label!r}: rename it "
            "if its labels are to be used."
        )
    return notes
