from __future__ import annotations

import ast
from pathlib import Path

import halfseen

ROOT = Path(halfseen.__file__).parent / "evidence"
FORMULAS = {"features.py", "risk.py"}
"""What selection reads models by."""
ALLOWED = (
    "halfseen.arrays",
    "halfseen.errors",
    "halfseen.evidence",
    "halfseen.logistic",
    "halfseen.metrics",
    "halfseen.splitting",
)


def test_formulas_know_arrays_alone_and_never_a_model_or_its_choice() -> None:
    files = list(ROOT.rglob("*.py"))
    assert {file.name for file in files} >= FORMULAS
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("halfseen"):
                assert str(node.module).startswith(ALLOWED), f"{file.name}: {node.module}"
            if isinstance(node, ast.Import):
                assert not any(name.name.startswith("halfseen") for name in node.names), file.name
