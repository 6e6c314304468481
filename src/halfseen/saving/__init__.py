"""Models as folders: loading, and what is made from a saved model."""

from __future__ import annotations

from halfseen.saving.loading import load, load_table_model

__all__ = ["load", "load_table_model"]
