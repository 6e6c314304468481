"""A few cases of every class of `make torture`, so that the suite itself stays whole."""

from __future__ import annotations

import importlib
import random
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture(scope="module")
def modules():
    """The modules of the torture, by name."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        names = ("run", "power", "traced")
        return {name: importlib.import_module(f"torture.{name}") for name in names}
    finally:
        sys.path.remove(str(BENCHMARKS))


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked")
def test_every_class_survives_a_few_cases(modules, tmp_path):
    run = modules["run"]
    found = run.torture(seed=1, seconds=1e6, failures=tmp_path / "failures", most=2)
    assert len(found) == 31
    assert {name: t.first_failure for name, t in found.items() if t.failed} == {}
    tried = {name: tally.cases for name, tally in found.items() if not tally.skipped}
    assert set(tried.values()) == {2}
    assert len(tried) == 31 or modules["traced"].missing_strace()
    assert f"| all | {2 * len(tried)} | {2 * len(tried)} | 0 |" in run.table_of(found)


def test_a_failure_is_counted_and_its_input_kept(modules, tmp_path):
    class Broken:
        input = b""

    kit = Broken()

    def case(draw):
        kit.input = b"hostile"
        raise TypeError("a mistake")

    tally = modules["run"].run_class(kit, "broken", case, 7, 60, 2, tmp_path / "failures")
    assert (tally.cases, tally.failed) == (2, 2)
    assert "TypeError('a mistake')" in tally.first_failure
    assert (tmp_path / "failures" / "7 broken 1").read_bytes() == b"hostile"


def test_what_cannot_be_tried_is_named_in_the_table(modules):
    run = modules["run"]
    table = run.table_of({"faults": run.Tally(skipped="strace is not installed")})
    assert "| faults | skipped: strace is not installed | | |" in table


def hexed(text: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in text.encode())


def played(modules, root: Path, *steps: str) -> object:
    """Play calls as strace writes them; FOLDER stands for the root, `text` for hexadecimal."""
    call = modules["traced"]._LINE
    disk = modules["power"].Disk(root)
    for step in steps:
        parts = step.replace("FOLDER", str(root)).split("`")
        line = "".join(hexed(part) if place % 2 else part for place, part in enumerate(parts))
        disk.play(modules["traced"]._call(call.match(f"1 {line}")))
    return disk


def left(disk, folder: Path, draw=None) -> dict[str, str]:
    disk.written_after_a_cut(folder, draw)
    return {path.name: path.read_text() for path in folder.iterdir()}


NEW = (
    'openat(AT_FDCWD, "`FOLDER/new`", O_WRONLY|O_CREAT, 0666) = 3<`FOLDER/new`>',
    'write(3<`FOLDER/new`>, "`whole`", 5) = 5',
)
RENAMED = 'rename("`FOLDER/new`", "`FOLDER/file`") = 0'


def test_a_power_cut_drops_what_was_not_synced(modules, tmp_path):
    """The simulated disk must find what it is there to find: a rename before its content."""
    root = tmp_path / "disk"
    root.mkdir()
    (root / "file").write_text("old")
    careless = played(modules, root, *NEW, RENAMED)
    assert left(careless, tmp_path / "a") == {"file": "old"}
    found = {left(careless, tmp_path / "b", random.Random(n)).get("file") for n in range(40)}
    assert {"old", "", "whole"} <= found, "an empty file under the new name is what may be left"
    sync = ("fsync(3<`FOLDER/new`>) = 0", RENAMED, "fsync(4<`FOLDER`>) = 0")
    careful = played(modules, root, *NEW, *sync)
    assert left(careful, tmp_path / "c") == {"file": "whole"}
    nearly = played(modules, root, *NEW, *sync[:2])
    found = {left(nearly, tmp_path / "d", random.Random(n)).get("file") for n in range(40)}
    assert found == {"old", "whole"}
