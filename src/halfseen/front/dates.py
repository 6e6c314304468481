"""Dates as numbers: the parts that somebody names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from halfseen.errors import InputError, OptionError

PARTS: dict[str, Callable[[Any], Any]] = {
    "year": pc.year,
    "month": pc.month,
    "day": pc.day,
    "weekday": pc.day_of_week,  # Monday is 0
    "hour": pc.hour,
    "days": lambda values: values.cast(pa.date32()).cast(pa.int32()),  # since 1970
}
Dates = Mapping[str, Sequence[str]]
"""The parts that are made of each column of dates."""


def date_names(dates: Dates) -> dict[str, tuple[str, str]]:
    """Return the column and the part behind the name of each column that is made."""
    return {f"{name} {part}": (name, part) for name, parts in dates.items() for part in parts}


def read_dates(entries: Sequence[str] | Dates) -> dict[str, tuple[str, ...]]:
    """Read which parts of which columns are wanted, as ``column=part,part``."""
    if isinstance(entries, Mapping):
        pairs = [(name, list(parts)) for name, parts in entries.items()]
    else:
        split = [entry.partition("=")[::2] for entry in entries]
        pairs = [
            (name, [p.strip() for p in parts.split(",") if p.strip()]) for name, parts in split
        ]
    for name, parts in pairs:
        unknown = [part for part in parts if part not in PARTS]
        if unknown or not parts:
            said = f"{unknown[0]!r} is no part of a date" if unknown else "it names no part"
            raise OptionError(
                f"dates {name}: {said}; write COLUMN=PART,PART with parts of {', '.join(PARTS)}."
            )
    return {name: tuple(parts) for name, parts in pairs}


def with_date_parts(table: Any, dates: Dates, where: str) -> Any:
    """Return a table or batch in which columns of dates are replaced by their parts."""
    names = list(table.schema.names)
    own = {name: parts for name, parts in dates.items() if name in names}
    if not own:
        return table
    columns = {name: table.column(name) for name in names if name not in own}
    for made, (name, part) in date_names(own).items():
        values = table.column(name)
        kind = values.type
        is_hour = part == "hour" and pa.types.is_time(kind)
        is_date = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
        if not (is_date or is_hour or pa.types.is_null(kind)):
            raise InputError(
                f"Column {name!r} of {where} holds {kind} values where dates are needed: write "
                "them as 2024-05-17, 17.05.2024 or 2024-05-17 13:45:00."
            )
        if pa.types.is_null(kind):
            columns[made] = values
            continue
        if part == "hour" and pa.types.is_date(kind):
            raise InputError(f"Column {name!r} of {where} holds dates, which have no hour.")
        columns[made] = PARTS[part](values)
    make = pa.record_batch if isinstance(table, pa.RecordBatch) else pa.table
    return make(list(columns.values()), names=list(columns))
