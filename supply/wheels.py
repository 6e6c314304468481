"""Build all wheels twice from copies that differ in everything but content, and compare them.

    python supply/wheels.py --output dist

Wheels of one commit are the same bytes, whoever builds them: what is released can be built again.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECTS = (".", "src/halfseen_bench", "src/halfseen_serve")
EPOCH = "1767225600"
"""The time that every file in a wheel has: the beginning of 2026."""


def copy_of(place: Path, seconds: int, mask: int) -> Path:
    """Copy what is built, with another time and other rights of every file."""
    place.mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE", "src"):
        source = ROOT / name
        if source.is_dir():
            unwanted = shutil.ignore_patterns("__pycache__", "*.pyc")
            shutil.copytree(source, place / name, ignore=unwanted)
        else:
            shutil.copy(source, place / name)
    for path in [place, *place.rglob("*")]:
        path.chmod(0o777 & ~mask if path.is_dir() else 0o666 & ~mask)
        os.utime(path, (seconds, seconds))
    return place


def built(place: Path, output: Path) -> dict[str, bytes]:
    """Build the wheels in a copy; return them by name."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
    for project in PROJECTS:
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(output)]
        subprocess.run(
            command, cwd=place / project, env=environment, check=True, capture_output=True
        )
    return {path.name: path.read_bytes() for path in sorted(output.glob("*.whl"))}


def build_twice(folder: Path) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Build from two copies, in folders of other names."""
    first = copy_of(folder / "one", 1_000_000_000, 0o022)
    second = copy_of(folder / "another place", 1_500_000_000, 0o077)
    return built(first, folder / "first"), built(second, folder / "second")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("dist"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        first, second = build_twice(Path(folder))
    if first != second:
        sys.exit("The wheels differ: they are not built reproducibly.")
    given.output.mkdir(parents=True, exist_ok=True)
    for name, content in first.items():
        (given.output / name).write_bytes(content)
        print(f"{hashlib.sha256(content).hexdigest()}  {given.output / name}")


if __name__ == "__main__":
    main()
