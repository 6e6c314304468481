"""A newcomer's first minutes: a fresh environment by the README's own line, then its commands.

Run by ``make test-install``: it downloads everything that halfseen needs.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from documents import ROOT, blocks

pytestmark = pytest.mark.install
COPIED = ("src", "examples", "README.md", "LICENSE", "pyproject.toml", "constraints.txt")
EXAMPLES = {"hospitals": "quick", "grid_search": "quick", "own_divergence": 1, "drift": "quick"}


def installing() -> str:
    """The README's line that installs the library and its benchmarks, without ``dev``."""
    lines = [
        line
        for block in blocks(ROOT / "README.md")
        if block.language == "sh"
        for line in block.code.splitlines()
        if line.startswith("pip install") and "src/halfseen_bench" in line
    ]
    assert len(lines) == 1
    assert "dev" not in lines[0]
    return lines[0]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository with an environment of its own, as README says."""
    folder = tmp_path_factory.mktemp("clone")
    for name in COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    subprocess.run([sys.executable, "-m", "venv", folder / ".venv"], check=True)
    run(folder, installing())
    return folder


def run(folder: Path, command: str) -> str:
    """Run a line in a shell whose programs are the environment's."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    environment["PATH"] = f"{folder / '.venv' / 'bin'}:{environment['PATH']}"
    done = subprocess.run(
        ["bash", "-ec", command], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_pandas_is_not_there(clone):
    """Otherwise the others would show nothing: before, README's lines needed it."""
    assert run(clone, "python -c 'import importlib.util as u; print(u.find_spec(\"pandas\"))'")[
        :4
    ] == ("None")


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_every_line_of_python_and_every_command_runs(page, clone):
    ran = 0
    for block in blocks(ROOT / page):
        if block.language == "python":
            script = clone / "block.py"
            script.write_text(block.code)
            run(clone, "python block.py")
            ran += 1
        elif block.language == "sh" and page != "README.md":
            kept = [
                line
                for line in block.code.splitlines()
                if line.startswith("halfseen ") and "serve" not in line
            ]
            for line in kept:
                run(clone, line)
                ran += 1
    assert ran >= 1


def test_examples_run_once_pandas_is_installed(clone):
    run(clone, "pip install -q -c constraints.txt pandas")
    for name, budget in EXAMPLES.items():
        code = f"import runpy; runpy.run_path('examples/{name}.py')['main']({budget!r})"
        said = run(clone, f"python -c {shlex.quote(code)}")
        assert said.strip(), name
