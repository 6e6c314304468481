"""Soft labels from teachers that see the complete source, and the control that does not."""

from __future__ import annotations

from halfseen.teaching.soft_labels import (
    Lessons,
    is_student,
    lessons,
    of_all_rows,
    taught,
    what_was_taught,
)

__all__ = ["Lessons", "is_student", "lessons", "of_all_rows", "taught", "what_was_taught"]
