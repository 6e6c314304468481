"""What docs/simulator.md states is what the code gives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from halfseen_bench.data.simulator import Scenario, yardsticks

TEXT = (Path(__file__).parents[2] / "docs" / "simulator.md").read_text(encoding="utf-8")


def test_the_printed_table_is_the_one_that_is_computed() -> None:
    for line in yardsticks():
        expected, estimate, error = re.search(
            rf"^{line.predictor} +(\S+) +(\S+) +(\S+)$", TEXT, re.MULTILINE
        ).groups()
        assert float(expected) == pytest.approx(line.expected, abs=2e-4)
        assert float(estimate) == pytest.approx(line.monte_carlo, abs=2e-4)
        assert float(error) == pytest.approx(line.standard_error, abs=2e-4)


def test_the_table_of_dials_is_the_one_that_is_computed() -> None:
    rows = re.findall(r"^\| (?:defaults|`(\w+)=(\S+)`) \| (0\..*) \|$", TEXT, re.MULTILINE)
    assert len(rows) == 8
    for dial, value, numbers in rows:
        scenario = Scenario(**({dial: float(value)} if dial else {}))
        lines = yardsticks(scenario, check_rows=40_000)
        stated = [float(number) for number in numbers.split(" | ")]
        assert stated == pytest.approx([line.expected for line in lines], abs=4e-3)
