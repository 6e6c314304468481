"""Two tables in, probabilities out: reading, schema, preprocessing, fitting, scoring."""

from __future__ import annotations

from halfseen.tables.preprocessing import transform
from halfseen.tables.schema import CategoryColumn, NumberColumn, TableSchema

__all__ = ["CategoryColumn", "NumberColumn", "TableSchema", "transform"]
