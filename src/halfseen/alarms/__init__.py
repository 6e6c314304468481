"""What looks wrong with a target: other units, swapped columns, sentinels, far rows, one class.

Pure functions on the distributions of columns (:class:`halfseen.data.schema.Shape`), which a fit
makes of both tables and keeps of the source, and on predictions. An alarm is raised only where no
honest shift is likely to look so: thresholds are wide, and few rows raise none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError

from halfseen.errors import InputError

FEWEST_ROWS = 20
"""Values on each side below which a distribution says nothing."""
MOST_SHOWN = 5
"""Alarms of one kind that are told in full."""


@dataclass(frozen=True)
class Alarm:
    """One thing that looks wrong."""

    kind: str
    """Unit, range, outlier, constant, categories, sentinel, swapped, drift, leak, and others."""
    says: str
    """A sentence with the figures, and what to do."""
    columns: tuple[str, ...] = ()
    """Which it is about; none where it is about rows."""
    figures: Mapping[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"columns": list(self.columns)}

    @classmethod
    def from_dict(cls, data: Any) -> Alarm:
        """Rebuild an alarm from plain data that somebody else may have written."""
        try:
            return TypeAdapter(cls).validate_python(data)
        except ValidationError:
            raise InputError("The alarms in model.json cannot be understood: fit again.") from None


def refuse(alarms: Sequence[Alarm]) -> None:
    """Make alarms an error, as ``--strict`` asks."""
    if alarms:
        count = "An alarm" if len(alarms) == 1 else f"{len(alarms)} alarms"
        raise InputError(f"{count}, refused as asked: {' '.join(alarm.says for alarm in alarms)}")


def sentences(alarms: Sequence[Alarm]) -> list[str]:
    """Return what alarms say; of many of one kind the first few, and how many more there are."""
    told = []
    for kind in dict.fromkeys(alarm.kind for alarm in alarms):
        own = [alarm.says for alarm in alarms if alarm.kind == kind]
        rest = len(own) - MOST_SHOWN
        told += own[:MOST_SHOWN]
        if rest > 0:
            told.append(f"{rest} more alarm{'s' if rest > 1 else ''} of this kind ({kind}).")
    return told
