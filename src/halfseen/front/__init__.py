"""What people hand over, as prepared rows: reading, schema, preprocessing, streams."""

from __future__ import annotations

from halfseen.front.preprocessing import transform
from halfseen.front.schema import CategoryColumn, NumberColumn, TableSchema

__all__ = ["CategoryColumn", "NumberColumn", "TableSchema", "transform"]
