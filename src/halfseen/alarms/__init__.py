"""What looks wrong with a target: other units, swapped columns, sentinels, far rows, one class.

Pure functions on the distributions of columns (:class:`halfseen.front.schema.Shape`), which a fit
makes of both tables and keeps of the source, and on predictions. An alarm is raised only where no
honest shift is likely to look so: thresholds are wide, and few rows raise none.
"""

from __future__ import annotations

from halfseen.alarms.columns import FEWEST_ROWS, Alarm, column_alarms
from halfseen.alarms.rows import (
    Watch,
    answer_alarms,
    copy_alarms,
    drift_alarms,
    leak_alarms,
    prediction_alarms,
    refuse,
    sentences,
    table_alarms,
)

__all__ = [
    "FEWEST_ROWS",
    "Alarm",
    "Watch",
    "answer_alarms",
    "column_alarms",
    "copy_alarms",
    "drift_alarms",
    "leak_alarms",
    "prediction_alarms",
    "refuse",
    "sentences",
    "table_alarms",
]
