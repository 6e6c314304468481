"""Why a model answers as it does: what each column adds, what is missing, how far a row is.

Columns are compared with those of typical rows, which are made of the source's quantiles that a
model's schema holds: no row of anybody is kept for it.
"""

from __future__ import annotations

from halfseen.explain.missing import ExpectedColumn, expected_columns
from halfseen.explain.rows import distances, outside_columns, typical_rows
from halfseen.explain.shapley import Contributions, shapley_values
from halfseen.explain.telling import Explanation

__all__ = [
    "Contributions",
    "ExpectedColumn",
    "Explanation",
    "distances",
    "expected_columns",
    "outside_columns",
    "shapley_values",
    "typical_rows",
]
