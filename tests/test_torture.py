"""A few cases of every class of `make torture`, so that the suite itself stays whole."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture(scope="module")
def torture():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return importlib.import_module("torture")
    finally:
        sys.path.remove(str(BENCHMARKS))


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked")
def test_every_class_survives_a_few_cases(torture, tmp_path):
    found = torture.torture(seed=1, seconds=320, failures=tmp_path / "failures", most=4)
    assert len(found) == 16
    assert {name: t.first_failure for name, t in found.items() if t.failed} == {}
    assert {tally.cases for tally in found.values()} == {4}
    assert "| all | 64 | 64 | 0 |" in torture.table_of(found)


def test_a_failure_is_counted_and_its_input_kept(torture, tmp_path):
    class Broken:
        input = b""

    kit = Broken()

    def case(draw):
        kit.input = b"hostile"
        raise TypeError("a mistake")

    tally = torture.run_class(kit, "broken", case, 7, 60, 2, tmp_path / "failures")
    assert (tally.cases, tally.failed) == (2, 2)
    assert "TypeError('a mistake')" in tally.first_failure
    assert (tmp_path / "failures" / "7 broken 1").read_bytes() == b"hostile"
