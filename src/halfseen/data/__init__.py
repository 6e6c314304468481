"""What people hand over, as prepared rows: reading, schema, preprocessing, streams."""

from __future__ import annotations

from halfseen.data.preprocessing import transform
from halfseen.data.schema import CategoryColumn, NumberColumn, TableSchema

__all__ = ["CategoryColumn", "NumberColumn", "TableSchema", "transform"]
