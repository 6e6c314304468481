"""Soft labels from teachers that see the complete source, and the control that does not."""

from __future__ import annotations

from halfseen.teaching.soft_labels import Lessons, lessons, taught

__all__ = ["Lessons", "lessons", "taught"]
