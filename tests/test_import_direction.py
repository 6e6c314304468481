"""Data walks one way through the modules: a lower module never imports a higher one."""

import ast
import re
import subprocess
import sys
from pathlib import Path
from pkgutil import resolve_name

import pytest

import halfseen

ROOT = Path(halfseen.__file__).parent
PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"
BENCH, SERVE = PACKAGES = ("halfseen_bench", "halfseen_serve")
ENTRANCES = ("__init__", "__main__")


def layers_of(page: str) -> list[list[str]]:
    """Return the modules of each layer, from the ground up, as a page's table draws them."""
    rows = re.findall(r"^\| (\d+) \| ([^|]*) \|", page, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, len(rows) + 1))
    return [re.findall(r"`(\w+)`", modules) for _, modules in rows]


LAYERS = layers_of(PAGE.read_text())
LEVEL = {module: level for level, modules in enumerate(LAYERS) for module in modules}


def imported_modules(path: Path, package: str) -> set[str]:
    """Return the full names of what a module imports; `package` is what a dot stands for."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1]
            parts = [*parents, node.module] if node.level else [node.module]
            base = ".".join(filter(None, parts))
            found.update(f"{base}.{alias.name}" for alias in node.names)
    return found


def imported_parts(path: Path, package: str = "halfseen") -> set[str]:
    """Return the modules that a module imports; a name of the package itself counts as its home."""
    found = set()
    for module in imported_modules(path, package):
        top, _, rest = module.partition(".")
        if top in PACKAGES:
            found.add(top)
        elif top == "halfseen" and rest:
            home = halfseen._HOMES.get(rest, module)
            found.add(home.split(".")[1])
    return found - {"__version__"}


def part_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def package_of(path: Path) -> str:
    return ".".join(["halfseen", *path.relative_to(ROOT).parts[:-1]])


MODULES = {path: part_of(path) for path in sorted(ROOT.rglob("*.py"))}


def test_the_page_draws_every_part_once():
    drawn = [module for modules in LAYERS for module in modules]
    assert len(set(drawn)) == len(drawn)
    assert set(drawn) == set(MODULES.values()) - set(ENTRANCES)


def test_no_part_imports_its_own_layer_or_a_higher_one():
    offences = []
    for path, module in MODULES.items():
        if module in ENTRANCES:
            continue
        for other in imported_parts(path, package_of(path)) - {module}:
            if other not in LEVEL or LEVEL[other] >= LEVEL[module]:
                offences.append(f"{path.relative_to(ROOT)} imports {other}")
    assert not offences


@pytest.mark.parametrize("package", PACKAGES)
def test_the_library_never_names_a_package_that_adds_to_it(package):
    """Not even in a text that is imported later."""
    assert not [path for path in MODULES if package in path.read_text()]


def test_what_the_package_offers_is_at_home_in_a_part():
    assert set(halfseen._HOMES) == set(halfseen.__all__) - {"__version__"}
    assert {home.split(".")[1] for home in halfseen._HOMES.values()} <= set(LEVEL)


@pytest.mark.parametrize(
    ("line", "modules"),
    [
        ("from halfseen.cli.app import app", {"cli"}),
        ("import halfseen.report.html", {"report"}),
        ("from halfseen import report", {"report"}),
        ("from halfseen import load, Blocks", {"model", "blocks"}),
        ("from halfseen import __version__", set()),
        ("from ..data.table_files import open_table", {"data"}),
        ("from . import objective", {"networks"}),
        ("from .. import cli", {"cli"}),
        ("def late():\n    from halfseen.model.model import Model", {"model"}),
        ("import halfseen_bench.metrics", {BENCH}),
        ("from halfseen_bench.report import page", {BENCH}),
        ("from halfseen_serve import server", {SERVE}),
        ("import numpy, halfseenish.cli", set()),
    ],
)
def test_the_check_sees_every_way_to_import(line, modules, tmp_path):
    module = tmp_path / "nets.py"
    module.write_text(line)
    assert imported_parts(module, "halfseen.networks") == modules


def test_the_check_reads_a_drawing():
    page = "| 1 | `a`, `b` | below |\n| 2 | `c` | above, says `a` |\n"
    assert layers_of(page) == [["a", "b"], ["c"]]
    with pytest.raises(AssertionError):
        layers_of(page.replace("| 2 |", "| 3 |"))


def test_the_page_says_where_each_thing_is_done():
    """From a question that a reader has to the function that answers it."""
    rows = re.findall(r"^\| (?:a|an|each|how|the) .*? \| `([\w.]+)`.*? \| `([\w.]+)` \|$",
                      PAGE.read_text(), re.MULTILINE)  # fmt: skip
    assert len(rows) == 9
    for module, name in rows:
        assert resolve_name(f"{module}:{name}").__module__ == module


def test_no_two_classes_have_one_name():
    homes: dict[str, list[str]] = {}
    for path in ROOT.parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(str(path.relative_to(ROOT.parent)))
    assert not {name: places for name, places in homes.items() if len(places) > 1}


MOST_LOADED = 69
"""Modules of ours that a fit of two CSV tables imports; a new one is imported where it is used."""
COUNTED = """
import sys
from halfseen.cli import main
sys.argv = ["halfseen", "fit", "s.csv", "t.csv", "--label", "y", "--quiet", "-o", "model"]
try:
    main()
except SystemExit as end:
    assert not end.code
print(*(name for name in sys.modules if name.partition(".")[0] == "halfseen"))
"""


def test_a_fit_of_two_tables_loads_few_modules(tmp_path):
    rows = [(a, b, a * b % 5) for a in range(8) for b in range(7)]
    source = [f"{a},{b},{c},{a + c > 5}" for a, b, c in rows]
    (tmp_path / "s.csv").write_text("\n".join(["a,b,c,y", *source]))
    (tmp_path / "t.csv").write_text("\n".join(["a,b", *(f"{a},{b}" for a, b, _ in rows)]))
    run = subprocess.run(
        [sys.executable, "-c", COUNTED], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    names = run.stdout.splitlines()[-1].split()
    assert len(names) <= MOST_LOADED, sorted(names)
    assert "halfseen.fitting.pipeline" in names
