"""Lets the tests of this folder share a small problem."""

import sys
from pathlib import Path

import pytest

from halfseen_bench.report import figures

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def no_map(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw latents where they happen to lie: t-SNE takes seconds."""
    monkeypatch.setattr(figures, "in_the_plane", lambda rows, seed: rows[:, :2])
