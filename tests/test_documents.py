"""Every code block of README and docs runs, or is checked by what it calls."""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import importlib.util
import io
import json
import re
import runpy
import shlex
import shutil
import sys
import threading
import tomllib
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import sklearn

from declared import run_declared, undeclared_modules
from documents import GENERATED, LANGUAGES, PAGES, ROOT, Block, blocks, commands, name_of
from halfseen.cli import app
from halfseen.cli.fit_config import read_settings

sys.path.append(str(ROOT / "tests/cli"))
from tables_cli import halfseen, source_table, target_table, write

from made_up_data import write_data_folder

NOT_RUN = {
    "demo": "takes minutes; tests/cli/test_cli_demo.py runs it",
    "serve": "runs until it is stopped; tests/serve runs it",
    "report": "has tests of its own",
    "data card": "draws 800,000 rows; tests/data_sets/test_data_simulator_docs.py has them",
    "data get": "needs the network; tests/data_sets/test_data_obtain.py runs it",
    "bench run": "a benchmark; tests/cli/test_cli_bench.py runs it",
    "bench table": "needs a sweep; tests/cli/test_cli_bench.py runs it",
    "bench figures": "needs a sweep; tests/cli/test_cli_bench.py runs it",
    "bench few-labels": "a benchmark; tests/bench/test_bench_panel.py runs it",
    "bench panel run": "a benchmark; tests/bench/test_bench_panel.py runs it",
    "bench panel table": "needs its log; tests/bench/test_bench_panel.py runs it",
}
OTHER_PROGRAMS = {".", "cd", "git", "docker"}
ENGINE = "ray"  # large, and not installed: its example is read, not run
ALL = [block for page in PAGES for block in blocks(page)]


def of(*languages: str) -> list[Block]:
    return [block for block in ALL if block.language in languages]


@pytest.fixture(scope="session")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that pages speak of: two tables, a data folder."""
    folder = tmp_path_factory.mktemp("documents")
    for ending in ("parquet", "csv"):
        write(source_table(), folder / f"source.{ending}")
        write(target_table(), folder / f"target.{ending}")
        write(target_table(), folder / f"new.{ending}")
        write(source_table(120), folder / f"held_out.{ending}")
    write_data_folder(folder / "data")
    return folder


def test_names_and_paths_of_ours_exist():
    gone = []
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        text = page.read_text() if page.name != "CHANGELOG.md" else ""
        for name in re.findall(r"`((?:halfseen|halfseen_bench|halfseen_serve)(?:\.\w+)+)", text):
            try:
                resolve_name(name)
            except (ImportError, AttributeError):
                gone.append(f"{page.name}: {name}")
        paths = re.findall(r"`((?:src|tests|docs|benchmarks|examples)/[\w./-]+)`", text)
        gone += [f"{page.name}: {path}" for path in paths if not (ROOT / path).exists()]
    assert gone == ["extending.md: src/halfseen_bench/data/NAME.py"]


def test_every_block_says_what_it_is():
    unknown = [f"{block}: {block.language!r}" for block in ALL if block.language not in LANGUAGES]
    assert not unknown, f"choose one of {LANGUAGES}, see tests/documents.py"
    called = re.compile(r"^(\$ )?(halfseen|python|pip|make|pytest|curl) ", re.MULTILINE)
    hidden = [str(block) for block in of("text") if called.search(block.code)]
    assert not hidden, "commands belong into sh or console"


# --- python ---------------------------------------------------------------------------------


def run_python(block: Block, namespace: dict[str, object]) -> None:
    """Execute a block; what stands behind a `print(...)` as a comment is what it prints."""
    code = compile(block.code, str(block), "exec", dont_inherit=True)
    if re.search(rf"^(from|import) {ENGINE}\b", block.code, re.MULTILINE):
        check_imports(block)
        return
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)
    lines = iter(printed.getvalue().splitlines())
    for text in re.findall(r"^\s*print\(.*\)  # (.+)$", block.code, re.MULTILINE):
        assert any(same(line, text) for line in lines), f"{block} does not print {text!r}"


def check_imports(block: Block) -> None:
    """Check that what is taken from halfseen is there, without importing the engine."""
    for node in ast.walk(ast.parse(block.code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("halfseen"):
            file = ROOT / "src" / (node.module.replace(".", "/") + ".py")
            defined = {getattr(part, "name", "") for part in ast.parse(file.read_text()).body}
            assert {alias.name for alias in node.names} <= defined, block


def test_the_readme_is_good_and_needs_no_more_than_is_declared(tmp_path):
    """As a newcomer runs it: at its full budget, with what the README's install line brings."""
    write(source_table(), tmp_path / "source.parquet")
    write(target_table(), tmp_path / "target.parquet")
    shutil.copy(tmp_path / "target.parquet", tmp_path / "new.parquet")
    (example,) = (b for b in blocks(ROOT / "README.md") if b.language == "python")
    named = [
        words for b in blocks(ROOT / "README.md") if b.language == "sh" for words, _ in commands(b)
    ]
    shown = [words[1:] for words in named if words[0] == "halfseen" and words[1] != "serve"]
    shown[0] += ["--effort", "quick", "--id", "user"]  # nothing of it depends on the members
    assert [words[0] for words in shown] == ["fit", "predict", "explain", "report", "export"]
    code = f"{example.code}\nprint(score)\nimport halfseen.cli, contextlib\n"
    for words in shown:
        code += f"sys.argv = {['halfseen', *words]!r}\n"
        code += "with contextlib.suppress(SystemExit): halfseen.cli.main()\n"
    shape, score, *_ = run_declared(code, tmp_path, bench=True).splitlines()
    assert f"# {shape}" in example.code
    assert float(score) > 0.76  # a hundred labels alone: 0.735; all 1,728: 0.787
    assert {"model", "scores.parquet", "report.html", "model.onnx"} <= {
        path.name for path in tmp_path.iterdir()
    }


def test_pages_and_examples_import_what_is_declared_or_say_so():
    undeclared = undeclared_modules() | {ENGINE}
    said = {"docs/examples.md": {"pandas", "skada"}, "docs/scale.md": {ENGINE}}
    said |= {"docs/data.md": {"matplotlib"}, "README.md": {"halfseen_bench"}}
    shown = [(name_of(block.page), block.code) for block in of("python")]
    scripts = (ROOT / "examples").glob("*.py")
    shown += [("docs/examples.md", script.read_text()) for script in scripts]
    for page, code in shown:
        for module in imported(code) & undeclared:
            assert module in said.get(page, set()), f"{page} needs {module}"
    assert "pip install pandas" in (ROOT / "docs/examples.md").read_text()


def imported(code: str) -> set[str]:
    """Return the packages that code imports."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return found


def your_data() -> dict[str, object]:
    """What pages take for granted: two tables of your own, and source rows held out."""
    random = np.random.default_rng(0)
    names = ["age", "pressure", "pulse", "thallium"]
    source = pd.DataFrame(random.normal(size=(120, 4)), columns=names)
    label = (source.sum(axis=1) + 0.3 * random.normal(size=120) > 0).astype(int)
    target = pd.DataFrame(random.normal(0.3, size=(90, 3)), columns=names[:3])
    return {
        "source": source[:80],
        "label": label[:80],
        "target": target,
        "X_held_out": source[80:],
        "y_held_out": label[80:],
    }


def same(printed: str, said: str) -> bool:
    """Whether two lines are equal, numbers up to what is shown of them."""
    number = r"-?\d+\.\d+"
    if re.sub(number, "", printed) != re.sub(number, "", said):
        return False
    pairs = zip(re.findall(number, printed), re.findall(number, said), strict=True)
    return all(abs(float(a) - float(b)) <= 1e-3 for a, b in pairs)


@pytest.mark.parametrize("block", [b for b in of("python") if b.excerpt_of], ids=str)
def test_excerpts_stand_in_the_code(block):
    text = block.excerpt_of.read_text(encoding="utf-8")
    assert "".join(block.code.split()) in "".join(text.split())


STOPS = re.findall(r"^`src/(\S+\.py)`: (.+)$", (ROOT / "docs/walk.md").read_text(), re.MULTILINE)
"""Each module of the walk, with the names that its heading speaks of."""


def test_the_walk_names_what_is_there_and_visits_each_module_once():
    files = [file for file, _ in STOPS]
    assert len(files) > 12
    assert len(set(files)) == len(files)
    for file, names in STOPS:
        defined = defined_in(ROOT / "src" / file)
        for name in re.findall(r"`([\w.]+)`", names):
            assert name in defined, f"{file} has no {name}"


def test_the_walk_is_in_the_order_of_first_calls(workplace, tmp_path, monkeypatch):
    """The first name of each stop is what is called there."""
    shutil.copytree(workplace, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    stops = {str(ROOT / "src" / file): names.split("`")[1] for file, names in STOPS}
    called: list[str] = []

    def note(frame, event, argument):
        code = frame.f_code
        if event == "call" and stops.get(code.co_filename) == code.co_qualname:
            called.append(code.co_filename)

    fit = shlex.split("fit source.csv target.csv --label click --id user -o model -q")
    predict = shlex.split("predict model target.csv -o scores.csv -q")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # one call after the other
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        for words in (fit, predict):
            monkeypatch.setattr(sys, "argv", ["halfseen", *words])
            with contextlib.suppress(SystemExit):
                app.main()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert list(dict.fromkeys(called)) == list(stops)


def defined_in(file: Path) -> set[str]:
    """Return the functions, classes and methods of a module."""
    found = set()
    for part in ast.parse(file.read_text(encoding="utf-8")).body:
        found.add(getattr(part, "name", ""))
        if isinstance(part, ast.ClassDef):
            found |= {f"{part.name}.{getattr(own, 'name', '')}" for own in part.body}
    return found


# --- settings and documents -----------------------------------------------------------------


@pytest.mark.parametrize("block", of("toml"), ids=str)
def test_settings_are_settings_of_fit(block, tmp_path):
    path = tmp_path / "fit.toml"
    path.write_text(block.code)
    settings = read_settings(path, {"label": "click"})
    assert settings.model_fields_set >= set(tomllib.loads(block.code))


@pytest.mark.parametrize("block", of("json"), ids=str)
def test_json_is_json(block):
    assert json.loads(block.code)


# --- commands -------------------------------------------------------------------------------


command_line = functools.cache(functools.partial(app.command, whole=True))


def parsed(words: list[str]) -> str:
    """Let the command line read the words; return the command's name."""
    part, names, rest = command_line(), [], words[1:]
    while rest and hasattr(part, "commands") and rest[0] in part.commands:
        names.append(rest.pop(0))
        part = part.commands[names[-1]]
    if hasattr(part, "commands"):  # an option of the whole, such as --install-completion
        known = {text for option in part.params for text in option.opts}
        assert set(rest) <= known, f"{words}: no such command or option"
        return ""
    part.make_context(names[-1], rest)
    return " ".join(names)


def check_halfseen(words: list[str], output: str, block: Block) -> None:
    name = parsed(words)
    if not name or name in NOT_RUN:
        return
    small = [re.sub(r"^rows=\d+$", "rows=300", word) for word in words[1:]]
    run = halfseen(*small)
    if output:
        assert (run.out + run.err).strip() == output
    else:
        assert run.code == 0, f"{block}: {' '.join(words)}\n{run.err}"


def check_python(words: list[str], output: str, block: Block) -> None:
    """Check that code compiles, or that a script exists and takes the options."""
    if words[1] == "-c":
        compile(words[2], str(block), "exec")
        return
    if words[1] == "-m":
        assert importlib.util.find_spec(words[2].split(".")[0]), words
        return
    script = ROOT / words[1]
    assert script.is_file(), f"{block} calls {words[1]}"
    if "argparse" not in script.read_text():
        compile(script.read_text(), words[1], "exec")
        assert script.parent.name == "examples" or not words[2:], "it takes no arguments"
        if len(words) > 3:  # it writes what later lines read
            runpy.run_path(str(script))["main"]("quick", *words[3:])
        return
    read = argparse.ArgumentParser.parse_args

    class ReadError(Exception):
        pass

    def stop(parser: argparse.ArgumentParser, *given: object) -> None:
        read(parser, *given)
        raise ReadError

    path = mock.patch.object(sys, "path", [str(script.parent), *sys.path])
    argv = mock.patch.object(sys, "argv", words[1:])
    reading = mock.patch.object(argparse.ArgumentParser, "parse_args", stop)
    with path, argv, reading, pytest.raises(ReadError):
        runpy.run_path(str(script), run_name="__main__")


def check_make(words: list[str], output: str, block: Block) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for word in words[1:]:
        name, sign, _ = word.partition("=")
        known = rf"^{name} \?=" if sign else rf"^{name}:"
        assert re.search(known, makefile, re.MULTILINE), f"{block}: make {word}"


def check_pip(words: list[str], output: str, block: Block) -> None:
    for name, extras in re.findall(r"(\S+?)\[([\w,-]+)\]", " ".join(words)):
        project = ROOT / "src/halfseen_bench" if "bench" in name else ROOT
        assert set(extras.split(",")) <= extras_of(project), block
    for file in re.findall(r"-c (\S+)", " ".join(words)):
        assert (ROOT / file).is_file()


def extras_of(project: Path) -> set[str]:
    text = (project / "pyproject.toml").read_text()
    return set(tomllib.loads(text)["project"]["optional-dependencies"])


def test_the_quick_start_states_the_extras():
    table = (ROOT / "docs/quickstart.md").read_text().split("| extra |")[1].split("\n\n")[0]
    rows = re.findall(r"^\| (`.+?) \|", table, re.MULTILINE)
    ours = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    research = {name for row in rows if "bench" in row for name in re.findall(r"\[(\w+)\]", row)}
    assert ours == extras_of(ROOT)
    assert research == extras_of(ROOT / "src/halfseen_bench")


def check_pytest(words: list[str], output: str, block: Block) -> None:
    assert any((ROOT / word).exists() for word in words[1:]), f"{block}: {words}"


def check_curl(words: list[str], output: str, block: Block) -> None:
    (address,) = [word for word in words if word.startswith("localhost:8000")]
    assert address.removeprefix("localhost:8000") in {"/predict", "/schema", "/health"}
    if "-d" in words:
        json.loads(words[words.index("-d") + 1])
    if output:
        json.loads(output)


CHECKS: dict[str, Callable[[list[str], str, Block], None]] = {
    "halfseen": check_halfseen,
    "python": check_python,
    "make": check_make,
    "pip": check_pip,
    "pytest": check_pytest,
    "curl": check_curl,
}


def run_commands(block: Block) -> None:
    for words, output in commands(block):
        if words[0] not in OTHER_PROGRAMS:
            assert words[0] in CHECKS, f"{block}: nobody checks {words[0]!r}"
            CHECKS[words[0]](words, output, block)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_runs_from_top_to_bottom(page, small_budget, workplace, tmp_path, monkeypatch):
    shutil.copytree(workplace, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HALFSEEN_DATA", str(tmp_path / "data"))
    namespace = {} if page.name == "README.md" else your_data()
    with sklearn.config_context():  # a page may switch metadata routing on
        for block in blocks(page):
            if block.language == "python" and not block.excerpt_of:
                run_python(block, namespace)
            elif block.language in ("sh", "console"):
                run_commands(block)


def test_every_command_has_an_example_that_it_takes():
    def walk(part, words):
        if hasattr(part, "commands"):
            for name, child in part.commands.items():
                yield from walk(child, [*words, name])
        else:
            yield words, part

    for words, part in walk(command_line(), ["halfseen"]):
        _, _, example = part.help.partition("Example: ")
        example = example.split("\n\n")[0]
        assert " ".join(words) in example, words
        ((given, _),) = commands(Block(ROOT, 0, "sh", " ".join(example.split()), ""))
        assert parsed(given) == " ".join(words[1:])


# --- links and pages ------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_linked_file_exists(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for link, anchor in re.findall(r"\]\((?!https?://)([^)#]*)#?([^)]*)\)", text):
        linked = page.parent / link if link else page
        if link and name_of(linked) in GENERATED:
            continue
        assert linked.exists(), f"{page.name} links to {link}"
        assert not anchor or anchor in anchors(linked), f"{page.name} links to {link}#{anchor}"


def anchors(page: Path) -> set[str]:
    """Return the names that headings get where the code is hosted, and on the site."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_site_has_every_page():
    index = (ROOT / "docs/index.md").read_text()
    listed = {
        line
        for block in re.findall(r"```\{toctree\}\n(.*?)```", index, re.DOTALL)
        for line in block.splitlines()
        if line and not line.startswith(":")
    }
    for page in ROOT.glob("docs/*.md"):
        assert page.stem == "index" or any(re.fullmatch(entry, page.stem) for entry in listed), (
            f"docs/index.md does not list {page.name}"
        )
    assert "results/*" in listed


def test_pages_and_tables_hold_what_the_logs_say():
    """The smallest log stands for all: `python docs/fill_tables.py --check` compares every one."""
    fill = runpy.run_path(str(ROOT / "docs/fill_tables.py"))
    results = ROOT / "docs/results"
    assert fill["full_table"](results / "patch") == (results / "patch/table.csv").read_text()
    page = (results / "digits.md").read_text()
    assert fill["filled"](page, results) == page


def test_documents_stay_short():
    others = [ROOT / "CHANGELOG.md", ROOT / "SECURITY.md", *ROOT.glob("src/**/*.md")]
    words = sum(len(page.read_text().split()) for page in [*PAGES, *others])
    assert words < 25_000, "move tables into CSV beside their logs, or delete"
