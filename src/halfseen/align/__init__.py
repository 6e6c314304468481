"""Observed columns that have drifted: maps onto the source's scale, and the choice among them."""

from __future__ import annotations

from halfseen.align.judging import FAR, drift_of, implausibility, judged_weights
from halfseen.align.maps import ColumnMap, Continuous, continuous_columns

__all__ = [
    "FAR",
    "ColumnMap",
    "Continuous",
    "continuous_columns",
    "drift_of",
    "implausibility",
    "judged_weights",
]
