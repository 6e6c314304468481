from __future__ import annotations

import ast
from pathlib import Path

import pytest

import halfseen

ROOT = Path(halfseen.__file__).parent
ALLOWED = {
    "shift": ("halfseen.arrays", "halfseen.errors", "halfseen.shift"),
    "selection": ("halfseen.arrays", "halfseen.errors", "halfseen.shift", "halfseen.selection"),
}


@pytest.mark.parametrize("room", ALLOWED)
def test_selection_stands_on_shift_and_never_the_other_way(room: str) -> None:
    for file in (ROOT / room).glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("halfseen"):
                assert str(node.module).startswith(ALLOWED[room]), f"{file.name}: {node.module}"
