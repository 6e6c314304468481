"""Dates as numbers: the parts that somebody names, on the clock of one zone.

A time with a zone is an instant. A schema keeps one zone for each column of dates, that of the
source; every later value is shown on that clock, whatever zone or format it comes in, and one
without a zone is taken to be on it already.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfseen.arrays import Floats
from halfseen.data.schema import DateColumn
from halfseen.data.values import GAPS, Unread, is_text, one_array, plain_array
from halfseen.errors import InputError, OptionError

HOUR = "hour"
PARTS: dict[str, Callable[[Any], Any]] = {
    "year": pc.year,
    "month": pc.month,
    "day": pc.day,
    "weekday": pc.day_of_week,  # Monday is 0
    HOUR: pc.hour,
    "days": lambda values: values.cast(pa.date32()).cast(pa.int32()),  # since 1970
}
Dates = Mapping[str, DateColumn]
"""The parts that are made of each column of dates, and the zone of its clock."""
UTC = "UTC"
_DAY = (
    r"(?P<y1>\d{4})[-/](?P<m1>\d\d?)[-/](?P<d1>\d\d?)"
    r"|(?P<d2>\d\d?)\.(?P<m2>\d\d?)\.(?P<y2>\d{4})"
)
_CLOCK = r"(?P<H>\d\d):(?P<M>\d\d)(?::(?P<S>\d\d)(?:[.,]\d+)?)?"
_ZONE = r"\s?(?P<zone>Z|UTC|GMT|[-+]\d\d(?::?\d\d)?)"
DATE = rf"^\s*(?:(?:{_DAY})(?:[ T]{_CLOCK}(?:{_ZONE})?)?)\s*$"
"""Dates that can be read: 2024-05-17, 2024/05/17, 17.05.2024, each with 13:45:00+02:00."""
TIME = rf"^\s*{_CLOCK}\s*$"
"""Times of a day."""


def date_names(dates: Dates) -> dict[str, tuple[str, str]]:
    """Return the column and the part behind the name of each column that is made."""
    return {f"{name} {part}": (name, part) for name, of in dates.items() for part in of.parts}


def expanded(names: Sequence[str], dates: Dates) -> tuple[str, ...]:
    """Return columns with the parts of dates behind the others, in the place of those they have."""
    own = {name: of for name, of in dates.items() if name in names}
    return (*(name for name in names if name not in own), *date_names(own))


def read_dates(entries: Sequence[str] | Mapping[str, Any]) -> dict[str, DateColumn]:
    """Read which parts of which columns are wanted, as ``column=part,part`` or with ``@zone``.

    Examples
    --------
    >>> read_dates(["visit=month,hour@Europe/Berlin"])["visit"]
    DateColumn(parts=('month', 'hour'), zone='Europe/Berlin')
    """
    if isinstance(entries, Mapping):
        pairs = [
            (name, of if isinstance(of, str) else ",".join(of)) for name, of in entries.items()
        ]
    else:
        pairs = [entry.partition("=")[::2] for entry in entries]
    found = {}
    for name, said in pairs:
        text, _, zone = said.partition("@")
        parts = tuple(part.strip() for part in text.split(",") if part.strip())
        unknown = [part for part in parts if part not in PARTS]
        if unknown or not parts:
            fault = f"{unknown[0]!r} is no part of a date" if unknown else "it names no part"
            raise OptionError(
                f"dates {name}: {fault}; write COLUMN=PART,PART with parts of {', '.join(PARTS)}."
            )
        found[name] = DateColumn(parts=parts, zone=_checked_zone(name, zone.strip()))
    return found


def _checked_zone(name: str, zone: str) -> str | None:
    if not zone:
        return None
    if not re.fullmatch(r"[-+]\d\d:\d\d", zone):
        try:
            ZoneInfo(zone)
        except (ValueError, OSError, KeyError):
            raise OptionError(
                f"dates {name}: {zone!r} is no zone; write one such as Europe/Berlin or +02:00."
            ) from None
    return zone


class DaysAndClocks(NamedTuple):
    """Dates of a column on the clock of its zone, null where there is none; and times of a day."""

    days: Any
    """Timestamps, null where there is no date."""
    clocks: Any
    """Timestamps or times, null where there is no time of a day."""


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
    values = plain_array(one_array(column))
    found = _moments(values, name, of.zone, where)
    parts = {}
    lacking = pa.array(np.zeros(len(values), dtype=bool))
    for part in of.parts:
        moments = found.clocks if part == HOUR else found.days
        lacking = pc.or_(lacking, pc.is_null(moments))
        numbers = pa.nulls(len(values)) if pa.types.is_null(moments.type) else PARTS[part](moments)
        parts[part] = _doubles(numbers)
    strange = pc.and_(lacking, pc.invert(_is_gap(values)))
    places = np.flatnonzero(strange.to_numpy(zero_copy_only=False))
    if len(places):
        cells = [(str(values[int(place)].as_py()), int(place) + first_row) for place in places]
        if unread is None:
            raise InputError(
                f"Column {name!r} of {where} holds {cells[0][0]!r} in row {cells[0][1]} where "
                f"{'dates with times' if HOUR in of.parts else 'dates'} are needed: write them as "
                "2024-05-17, 17.05.2024 or 2024-05-17 13:45:00."
            )
        unread.add(name, cells)
    return parts


def zones_of(column: Any) -> set[str]:
    """Return the zones, or offsets, that the times of a column have; "" for times without one."""
    values = plain_array(one_array(column))
    if pa.types.is_timestamp(values.type):
        return {values.type.tz or ""}
    if not is_text(values.type):
        return set()
    found = pc.extract_regex(values.cast(pa.string()), DATE).drop_null()
    on_clocks = found.filter(pc.not_equal(pc.struct_field(found, "H"), ""))
    return {_offset(zone) for zone in pc.unique(pc.struct_field(on_clocks, "zone")).to_pylist()}


def common_zone(found: set[str]) -> str | None:
    """Return the zone of a column whose times have these: theirs, or UTC where they differ."""
    zones = found - {""}
    if not zones:
        return None
    return zones.pop() if len(zones) == 1 else UTC


def _moments(values: Any, name: str, zone: str | None, where: str) -> DaysAndClocks:
    kind = values.type
    nothing = pa.nulls(len(values))
    if is_text(kind):
        return _of_texts(values.cast(pa.string()), zone)
    if pa.types.is_timestamp(kind):
        shown = _on_clock(values, zone)
        return DaysAndClocks(shown, shown)
    if pa.types.is_date(kind):
        return DaysAndClocks(values, nothing)
    if pa.types.is_time(kind):
        return DaysAndClocks(nothing, values)
    if pa.types.is_null(kind):
        return DaysAndClocks(nothing, nothing)
    raise InputError(
        f"Column {name!r} of {where} holds {kind} values where dates are needed: write "
        "them as 2024-05-17, 17.05.2024 or 2024-05-17 13:45:00."
    )


def _on_clock(instants: Any, zone: str | None) -> Any:
    """Return timestamps as the clock of a zone shows them; those without a zone as they are."""
    if instants.type.tz is None:
        return instants
    return pc.local_timestamp(instants.cast(pa.timestamp(instants.type.unit, zone or UTC)))


def _of_texts(texts: Any, zone: str | None) -> DaysAndClocks:
    """Return texts as timestamps on the zone's clock."""
    dates, times = pc.extract_regex(texts, DATE), pc.extract_regex(texts, TIME)
    parts = (_either(_group(dates, f"{letter}1"), _group(dates, f"{letter}2")) for letter in "ymd")
    days = pc.binary_join_element_wise(*(pc.utf8_lpad(part, 2, "0") for part in parts), "-")
    clock = pc.binary_join_element_wise(
        *(_either(_group(dates, letter), _either(_group(times, letter), "00")) for letter in "HMS"),
        ":",
    )
    has_date = pc.is_valid(dates)
    has_clock = pc.not_equal(_either(_group(dates, "H"), _group(times, "H")), "")
    whole = pc.binary_join_element_wise(pc.if_else(has_date, days, "1970-01-01"), clock, " ")
    moments = pc.strptime(whole, format="%Y-%m-%d %H:%M:%S", unit="s", error_is_null=True)
    # It takes the 31st of June for the 1st of July.
    same = pc.equal(pc.strftime(moments, format="%Y-%m-%d %H:%M:%S"), whole)
    moments = _where(same, moments)
    placed = _placed(moments, _group(dates, "zone"), zone)
    return DaysAndClocks(_where(has_date, placed), _where(has_clock, placed))


def _group(found: Any, name: str) -> Any:
    """Return what a group of a pattern matched, empty where nothing did."""
    return pc.fill_null(pc.struct_field(found, name), "")


def _either(one: Any, other: Any) -> Any:
    return pc.if_else(pc.equal(one, ""), other, one)


def _where(chosen: Any, values: Any) -> Any:
    return pc.if_else(pc.fill_null(chosen, False), values, pa.scalar(None, values.type))


def _placed(moments: Any, zones: Any, zone: str | None) -> Any:
    """Return moments on the clock of a zone: those that have an offset are instants."""
    offsets = [each for each in pc.unique(zones).to_pylist() if each]
    if not offsets:
        return moments
    codes = pc.index_in(zones, value_set=pa.array(offsets))
    shifts = pa.array([60 * _minutes(_offset(each)) for each in offsets], pa.int64())
    seconds = pc.subtract(moments.cast(pa.int64()), shifts.take(codes))
    shown = _on_clock(seconds.cast(pa.timestamp("s", tz=UTC)), zone)
    return pc.if_else(pc.is_valid(codes), shown, moments)


def _offset(zone: str) -> str:
    """Return an offset as +02:00."""
    if not zone or zone in ("Z", "UTC", "GMT"):
        return UTC if zone else ""
    digits = zone[1:].replace(":", "").ljust(4, "0")
    return f"{zone[0]}{digits[:2]}:{digits[2:]}"


def _minutes(offset: str) -> int:
    if offset == UTC:
        return 0
    sign = -1 if offset[0] == "-" else 1
    return sign * (60 * int(offset[1:3]) + int(offset[4:6]))


def _is_gap(values: Any) -> Any:
    """Say which cells are empty, or hold a word that means a gap."""
    empty = pc.is_null(values)
    if is_text(values.type):
        words = pc.utf8_lower(pc.utf8_trim_whitespace(values.cast(pa.string())))
        empty = pc.or_(empty, pc.is_in(words, value_set=pa.array(sorted(GAPS))))
    return empty


def _doubles(numbers: Any) -> Floats:
    found: Floats = numbers.cast(pa.float64()).to_numpy(zero_copy_only=False).astype(np.float64)
    return found
