"""What a user has after the README's install line: the packages that are declared, with theirs."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Collection
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
BLOCK = """
import sys
from importlib.machinery import PathFinder


class Declared:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            return None
        return PathFinder.find_spec(name, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = Declared()
"""


def declared(extras: Collection[str] = ("all",), *, bench: bool = False) -> set[str]:
    """Return the distributions that ``pip install halfseen[extras]`` would install."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    waiting = [Requirement(text) for text in project["dependencies"]]
    if bench:
        other = tomllib.loads((ROOT / "src/halfseen_bench/pyproject.toml").read_text())["project"]
        waiting += [Requirement(text) for text in (other["name"], *other["dependencies"])]
    waiting += [Requirement(text) for extra in extras for text in optional[extra]]
    found: set[tuple[str, str]] = set()
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        for extra in ("", *wanted.extras):
            if (name, extra) in found:
                continue
            found.add((name, extra))
            if name == "halfseen":
                waiting += [Requirement(text) for text in optional.get(extra, ())]
                continue
            try:
                theirs = [Requirement(text) for text in requires(name) or ()]
            except PackageNotFoundError:  # for another platform
                continue
            waiting += [
                their
                for their in theirs
                if their.marker is None or their.marker.evaluate({"extra": extra})
            ]
    return {name for name, _ in found}


def undeclared_modules(extras: Collection[str] = ("all",), *, bench: bool = False) -> set[str]:
    """Return modules that are installed here, and would not be for that user."""
    there = declared(extras, bench=bench) | {"halfseen"}
    return {
        module
        for module, distributions in packages_distributions().items()
        if not there & {canonicalize_name(name) for name in distributions}
    }


def run_declared(
    code: str, folder: Path, extras: Collection[str] = ("all",), *, bench: bool = False
) -> str:
    """Run code in a new process that has only what was declared; return what it prints."""
    block = BLOCK.format(blocked=undeclared_modules(extras, bench=bench))
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    run = subprocess.run(
        [sys.executable, "-c", f"{block}\n{code}"],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return run.stdout
