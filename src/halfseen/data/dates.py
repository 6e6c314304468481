"""Dates as numbers: the parts that somebody names, on the clock of one zone.

A time with a zone is an instant. A schema keeps one zone for each column of dates, that of the
source; every later value is shown on that clock, whatever zone or format it comes in, and one
without a zone is taken to be on it already.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfseen.arrays import Floats
from halfseen.data.arrow_columns import is_text, plain_array
from halfseen.data.schema import DateColumn
from halfseen.data.values import Unread, is_gap
from halfseen.errors import InputError, OptionError

PARTS: dict[str, Callable[[Any], Any]] = {
    "year": pc.year,
    "month": pc.month,
    "day": pc.day,
    "weekday": pc.day_of_week,  # Monday is 0
    "hour": pc.hour,
    "days": lambda values: values.cast(pa.date32()).cast(pa.int32()),  # since 1970
}
Dates = Mapping[str, DateColumn]
"""The parts that are made of each column of dates, and the zone of its clock."""
_DAY = (
    r"(?P<y1>\d{4})[-/](?P<m1>\d\d?)[-/](?P<d1>\d\d?)"
    r"|(?P<d2>\d\d?)\.(?P<m2>\d\d?)\.(?P<y2>\d{4})"
)
_CLOCK = r"(?P<H>\d\d):(?P<M>\d\d)(?::(?P<S>\d\d)(?:[.,]\d+)?)?"
_ZONE = r"\s?(?P<zone>Z|UTC|GMT|[-+]\d\d(?::?\d\d)?)"
DATE = re.compile(rf"\s*(?:{_DAY})(?:[ T]{_CLOCK}(?:{_ZONE})?)?\s*", re.ASCII)
"""Dates that can be read: 2024-05-17, 2024/05/17, 17.05.2024, each with 13:45:00+02:00."""
TIME = re.compile(rf"\s*{_CLOCK}\s*", re.ASCII)
"""Times of a day."""
AS_DATES = "write them as 2024-05-17, 17.05.2024 or 2024-05-17 13:45:00."


def date_names(dates: Dates) -> dict[str, str]:
    """Return the column of dates behind the name of each column that is made of one."""
    return {f"{name} {part}": name for name, of in dates.items() for part in of.parts}


def expanded(names: Sequence[str], dates: Dates) -> tuple[str, ...]:
    """Return columns with the parts of dates behind the others, in the place of those they have."""
    own = {name: of for name, of in dates.items() if name in names}
    return (*(name for name in names if name not in own), *date_names(own))


def read_dates(entries: Sequence[str] | Mapping[str, Any]) -> dict[str, DateColumn]:
    """Read which parts of which columns are wanted, as ``column=part,part`` or with ``@zone``."""
    if isinstance(entries, Mapping):
        pairs = [
            (name, of if isinstance(of, str) else ",".join(of)) for name, of in entries.items()
        ]
    else:
        pairs = [entry.partition("=")[::2] for entry in entries]
    found = {}
    for name, said in pairs:
        text, _, zone = (part.strip() for part in said.partition("@"))
        parts = tuple(part.strip() for part in text.split(",") if part.strip())
        unknown = [part for part in parts if part not in PARTS]
        if unknown or not parts:
            fault = f"{unknown[0]!r} is no part of a date" if unknown else "it names no part"
            raise OptionError(
                f"dates {name}: {fault}; write COLUMN=PART,PART with parts of {', '.join(PARTS)}."
            )
        try:
            _clock(zone or None)
        except (ValueError, OSError, KeyError):
            raise OptionError(
                f"dates {name}: {zone!r} is no zone; write one such as Europe/Berlin or +02:00."
            ) from None
        found[name] = DateColumn(parts=parts, zone=zone or None)
    return found


@lru_cache
def _clock(zone: str | None) -> tzinfo:
    """Return a zone by its name or as +02:00."""
    if not re.fullmatch(r"[-+]\d\d:\d\d", zone or ""):
        return ZoneInfo(zone or "UTC")
    assert zone is not None
    shift = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:]))
    return timezone(-shift if zone[0] == "-" else shift)


def date_parts(
    column: Any,
    name: str,
    of: DateColumn,
    *,
    where: str,
    first_row: int = 1,
    unread: Unread | None = None,
) -> dict[str, Floats]:
    """Return the parts of a column of dates as numbers, NaN where it has a gap."""
    values = plain_array(column)
    days, clocks = _days_and_clocks(values, name, of.zone, where)
    parts: dict[str, Floats] = {}
    for part in of.parts:
        numbers = PARTS[part](clocks if part == "hour" else days).cast(pa.float64())
        parts[part] = numbers.to_numpy(zero_copy_only=False).astype(np.float64)
    lacking = np.any([np.isnan(numbers) for numbers in parts.values()], axis=0)
    places = np.flatnonzero(lacking & pc.is_valid(values).to_numpy(zero_copy_only=False))
    texts = [(str(values[place].as_py()), place + first_row) for place in places.tolist()]
    cells = [(text, row) for text, row in texts if not is_gap(text)]
    if cells and unread is None:
        raise InputError(
            f"Column {name!r} of {where} holds {cells[0][0]!r} in row {cells[0][1]} where "
            f"{'dates with times' if 'hour' in of.parts else 'dates'} are needed: {AS_DATES}"
        )
    if unread is not None:
        unread.add(name, cells)
    return parts


def zones_of(column: Any) -> set[str]:
    """Return the zones, or offsets, that the times of a column have; "" for times without one."""
    values = plain_array(column)
    if pa.types.is_timestamp(values.type):
        return {values.type.tz or ""}
    if not is_text(values.type):
        return set()
    found = (DATE.fullmatch(text) for text in values.unique().drop_null().to_pylist())
    return {_offset(each["zone"]) for each in found if each and each["H"]}


def common_zone(found: set[str]) -> str | None:
    """Return the zone of a column whose times have these: theirs, or UTC where they differ."""
    zones = found - {""}
    return None if not zones else zones.pop() if len(zones) == 1 else "UTC"


def _days_and_clocks(values: Any, name: str, zone: str | None, where: str) -> tuple[Any, Any]:
    """Return dates on the clock of a zone and times of a day, null where there is none."""
    if pa.types.is_primitive(values.type) and not pa.types.is_temporal(values.type):
        values = values.cast(pa.string())  # numbers and truth values are no dates, as in CSV
    kind = values.type
    nothing = pa.nulls(len(values), pa.timestamp("s"))
    if is_text(kind):
        coded = values.dictionary_encode()
        read = [_moments(text, zone) for text in coded.dictionary.to_pylist()]
        days, clocks = (pa.array([pair[k] for pair in read], pa.timestamp("s")) for k in (0, 1))
        return days.take(coded.indices), clocks.take(coded.indices)
    if pa.types.is_timestamp(kind):
        if kind.tz is not None:
            values = pc.local_timestamp(values.cast(pa.timestamp(kind.unit, zone or "UTC")))
        return values, values
    if pa.types.is_date(kind):
        return values, nothing
    if pa.types.is_time(kind):
        return nothing, values
    if pa.types.is_null(kind):
        return nothing, nothing
    raise InputError(
        f"Column {name!r} of {where} holds {kind} values where dates are needed: {AS_DATES}"
    )


def _moments(text: str, zone: str | None) -> tuple[datetime | None, datetime | None]:
    """Return the day and the time of a day in a text, as the clock of a zone shows them."""
    date, time = DATE.fullmatch(text), TIME.fullmatch(text)
    found = date or time
    if found is None:
        return None, None
    try:
        ymd = [int(date[f"{k}1"] or date[f"{k}2"]) for k in "ymd"] if date else [1970, 1, 1]
        moment = datetime(*ymd, *(int(found[k] or 0) for k in "HMS"))  # type: ignore[arg-type]
        if date and date["zone"]:
            instant = moment.replace(tzinfo=_clock(_offset(date["zone"]))).astimezone(UTC)
            moment = instant.astimezone(_clock(zone)).replace(tzinfo=None)
    except (ValueError, OverflowError):  # the 31st of June
        return None, None
    return moment if date else None, moment if found["H"] else None


def _offset(zone: str | None) -> str:
    """Return an offset as +02:00."""
    if not zone or zone in ("Z", "UTC", "GMT"):
        return "UTC" if zone else ""
    digits = zone[1:].replace(":", "").ljust(4, "0")
    return f"{zone[0]}{digits[:2]}:{digits[2:]}"
