"""Data walks one way through the rooms: a lower room never imports a higher one."""

import ast
from pathlib import Path

import halfseen

ROOT = Path(halfseen.__file__).parent

# Rooms from the ground up; rooms in one set may not import each other.
STOREYS = [
    {"errors"},
    {"files", "parallel"},
    {"arrays", "outputs"},
    {"metrics", "splitting"},
    {"evidence", "saving"},
    {"blocks", "options"},
    {"front"},
    {"networks"},
    {"selection"},
    {"members"},
    {"weights"},
    {"model"},
    {"classifier", "export", "engines"},
    {"rehearsal", "tuning"},
    {"report", "serve"},
    {"cli"},
]
LEVEL = {room: level for level, rooms in enumerate(STOREYS) for room in rooms}


def imported_rooms(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("halfseen"):
            parts = node.module.split(".")
            names = [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]
            found.update(names)
        elif isinstance(node, ast.Import):
            parts = [alias.name.split(".") for alias in node.names]
            found.update(p[1] for p in parts if p[0] == "halfseen" and len(p) > 1)
    return found & set(LEVEL)


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def test_every_module_belongs_to_a_room():
    rooms = {room_of(path) for path in ROOT.rglob("*.py")} - {"__init__", "__main__"}
    assert rooms <= set(LEVEL), f"unknown rooms: {rooms - set(LEVEL)}"


def test_no_room_imports_a_higher_one():
    offences = []
    for path in ROOT.rglob("*.py"):
        room = room_of(path)
        if room in ("__init__", "__main__"):
            continue
        for other in imported_rooms(path) - {room}:
            if LEVEL[other] >= LEVEL[room]:
                offences.append(f"{path.relative_to(ROOT)} imports {other}")
    assert not offences


def test_the_check_sees_an_upward_import(tmp_path):
    offender = tmp_path / "nets.py"
    offender.write_text("from halfseen.cli.app import app\nimport halfseen.report.page\n")
    assert imported_rooms(offender) == {"cli", "report"}
