"""When columns are mapped: readings that changed, and not rows that are others."""

import numpy as np
import pytest

from halfseen.fitting.drift import find_drift
from halfseen.members.aligned import Continuous


def rows_of(seed: int, rows: int = 400):
    return np.random.default_rng(seed).normal(size=(rows, 6)).astype(np.float32)


def measured(columns: int) -> Continuous:
    return Continuous(
        np.arange(columns), np.zeros(columns), np.ones(columns), np.zeros(columns, dtype=bool)
    )


def found(source, target, columns=6):
    return find_drift(measured(columns), source, target, range(6))


def test_rows_of_the_same_kind_have_not_drifted():
    assert found(rows_of(0), rows_of(1)) is None


@pytest.mark.parametrize(
    "change",
    [lambda x: x + 5, lambda x: 8 * x, lambda x: np.hstack([x[:, :4] * 12 + 3, x[:, 4:]])],
)
def test_most_readings_moved_are_a_drift_of_instruments(change):
    drift = found(rows_of(0), change(rows_of(1)))
    assert drift.distance.outside > 0.9
    assert drift.of_instruments


def test_one_column_that_moved_means_other_rows():
    target = rows_of(1)
    target[:, 0] += 20
    drift = found(rows_of(0), target)
    assert drift.distance.outside > 0.9
    assert not drift.of_instruments


def test_rows_that_are_high_in_all_columns_are_other_rows():
    """Columns that vary together in the source have moved together."""
    random = np.random.default_rng(0)
    common = random.normal(size=(1200, 1))
    rows = (common + 0.4 * random.normal(size=(1200, 6))).astype(np.float32)
    drift = found(rows[common[:, 0] < 0.5], rows[common[:, 0] > 1.2])
    assert not drift.of_instruments


def test_few_measured_columns_are_no_instruments():
    drift = found(rows_of(0), rows_of(1) + 8, columns=2)
    assert drift.distance.outside > 0.9
    assert not drift.of_instruments


def test_without_measured_columns_nothing_is_said():
    assert found(rows_of(0), rows_of(1) + 8, columns=0) is None


def test_integers_that_another_instrument_reads_higher_are_mapped_and_constants_do_not_count():
    random = np.random.default_rng(0)
    source, target = random.integers(0, 17, (2, 400, 6)).astype(np.float32)
    source[:, 4:], target[:, 4:] = 0.0, 0.0  # three inputs of four at least must be measured
    source[:, 3] = source[:, 3] > 8
    target[:, 3] = target[:, 3] > 8
    drift = found(source, np.hstack([2 * target[:, :3] + 30, target[:, 3:]]))
    assert drift.columns.positions.tolist() == [0, 1, 2]
    assert drift.of_instruments


def test_one_column_cut_in_two_means_other_rows():
    """The others bend with it, so that straight lines do not explain how they moved."""
    random = np.random.default_rng(0)
    size = random.normal(size=1200)
    bent = [size, size**2, np.exp(size), np.exp(-size), np.maximum(size, 0), size**3]
    rows = np.column_stack(bent) + 0.2 * random.normal(size=(1200, 6))
    rows = ((rows - rows.mean(axis=0)) / rows.std(axis=0)).astype(np.float32)
    drift = found(rows[rows[:, 0] < 0.3], rows[rows[:, 0] >= 0.3])
    assert drift.distance.outside > 0.3
    assert not drift.of_instruments
