"""What is declared is what is used: dependencies against imports, versions against pins."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions, version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "halfseen": (ROOT / "src/halfseen", ROOT / "pyproject.toml"),
    "halfseen_bench": (ROOT / "src/halfseen_bench", ROOT / "src/halfseen_bench/pyproject.toml"),
}
NOT_IMPORTED = {"skorch"}
"""Declared because something declared here needs it to be there: skada.deep imports skorch."""


COMES_WITH = {"distributed": "dask"}
"""Installed by the extra of another: dask[distributed]."""


def plain(requirement: str) -> str:
    """Return the name of a distribution in its normal form."""
    return re.sub(r"[-_.]+", "-", re.split(r"[ <>=!~;\[]", requirement, maxsplit=1)[0]).lower()


def declared(project: Path) -> tuple[set[str], set[str]]:
    """Return what users get, and what only developers get."""
    data = tomllib.loads(project.read_text())["project"]
    extras = data.get("optional-dependencies", {})
    ours = [r for name, group in extras.items() if name not in ("dev", "docs") for r in group]
    others = [r for name in ("dev", "docs") for r in extras.get(name, [])]
    found = {plain(r) for r in [*data["dependencies"], *ours]}
    return found - {"halfseen"}, {plain(r) for r in others}


def imported(folder: Path) -> dict[str, Path]:
    """Return the foreign packages that are imported, each with a file that does it."""
    found = {}
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
                ("import_module", "optional_module")
            ):
                names = [a.value for a in node.args[:1] if isinstance(a, ast.Constant)]
            found |= {name.split(".")[0]: path for name in names}
    own = {"halfseen", "halfseen_bench", "__future__"}
    return {name: path for name, path in found.items() if name not in sys.stdlib_module_names | own}


@pytest.mark.parametrize("package", PACKAGES)
def test_what_is_imported_is_declared_and_what_is_declared_is_imported(package):
    folder, project = PACKAGES[package]
    ours, _ = declared(project)
    if package == "halfseen_bench":
        ours |= declared(PACKAGES["halfseen"][1])[0]
    distributions = packages_distributions()
    used = set()
    for name, path in imported(folder).items():
        candidates = {plain(COMES_WITH.get(d, d)) for d in distributions.get(name, [name])}
        assert candidates & ours, f"{path} imports {name}, which {project} does not declare"
        used |= candidates
    own = declared(project)[0]
    assert own - used - NOT_IMPORTED == set(), "declared and never imported"


def test_every_version_of_the_tests_is_pinned():
    """The file says which versions the tests run with: all of them, and these are they."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = {plain(line): line.partition("==")[2] for line in lines if not line.startswith("#")}
    assert pins["torch"] == "2.13.0"
    needed = set().union(
        *(ours | others for ours, others in map(declared, (p for _, p in PACKAGES.values())))
    )
    optional = {"dask", "ray", "pyspark"}  # those of `make test-engines`
    assert needed - optional - {"halfseen"} <= set(pins)
    for name in ("numpy", "onnxruntime", "starlette"):
        assert pins[name] == version(name), f"constraints.txt is not of this environment: {name}"


def test_every_promise_names_a_test_that_exists():
    text = (ROOT / "docs/security.md").read_text()
    known = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8"))
    }
    named = set(re.findall(r"`(test_\w+)`", text))
    assert named - known == set()
    promises = re.findall(r"^\| ([A-Z`].*?) \| (.*) \|$", text, re.MULTILINE)
    assert len(promises) > 25
    assert [promise for promise, tests in promises if "`test_" not in tests] == []
