"""Columns that may not be what they seem by name or by a few of their values: asked about."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from halfseen.errors import InputError, capitalized
from halfseen.front.preprocessing import are_numbers
from halfseen.front.roles import Roles
from halfseen.front.summary import TableSummary
from halfseen.front.tables import Table

FEWEST_NUMBERS = 10
"""Different numbers from which a column of texts looks like numbers,"""
MOST_STRAYS = 0.2
"""where at most this share of its rows holds other texts."""


def check_spelling(names: Sequence[str], target: Table, roles: Roles) -> None:
    """Refuse a column that the target seems to lack only because its name is spelled otherwise."""
    lacking = {spelling(n): n for n in names if n not in (*target.names, *roles.missing)}
    for other in target.names:
        name = lacking.get(spelling(other))
        if name is not None and other not in (*names, *roles.id):
            how = "rename it" if roles.in_python else f"--rename '{other}={name}'"
            raise InputError(
                f"{capitalized(target.where)} has a column {other!r}, and the source {name!r}: if "
                f"they are the same, {how}; if not, {roles.option('missing', name)}."
            )


def spelling(name: str) -> str:
    """Return a name without what people spell differently: capitals, spaces, dashes."""
    return re.sub(r"[\s_\-.]+", "", name).casefold()


def check_strays(seen: TableSummary, roles: Roles) -> None:
    """Refuse a column of numbers among which there are a few texts."""
    for name, column in seen.columns.items():
        if column.values != "text" or column.has_more or name in roles.categorical:
            continue
        texts = list(column.counts)
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
        return "replace such texts by NaN"
    return f"{roles.option('numeric', name)} takes such texts for gaps"
