from __future__ import annotations

import ast
from pathlib import Path

import pytest

import halfseen

ROOT = Path(halfseen.__file__).parent
FORMULAS = ("registry.py", "rehearsal.py", "reverse.py", "risk.py", "scores.py")
"""The part of selection that is plain functions on arrays."""
ALLOWED = {
    "shift": ("halfseen.arrays", "halfseen.errors", "halfseen.evidence"),
    "selection": ("halfseen.arrays", "halfseen.errors", "halfseen.evidence", "halfseen.selection"),
}


@pytest.mark.parametrize("room", ALLOWED)
def test_formulas_know_arrays_alone_and_shift_never_knows_selection(room: str) -> None:
    files = [f for f in (ROOT / room).glob("*.py") if room == "shift" or f.name in FORMULAS]
    assert len(files) >= len(FORMULAS)
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("halfseen"):
                assert str(node.module).startswith(ALLOWED[room]), f"{file.name}: {node.module}"
