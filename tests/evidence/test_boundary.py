"""Whether two domains are halves of one population."""

import numpy as np
import pytest

from halfseen.evidence.features import best_threshold, is_cut


def population(rows=1200, columns=5, seed=0):
    random = np.random.default_rng(seed)
    return random.normal(size=(rows, 1)) + 0.6 * random.normal(size=(rows, columns))


@pytest.mark.parametrize("share", [0.5, 0.67])
@pytest.mark.parametrize("skewed", [False, True])
def test_one_column_cut_in_two(share, skewed):
    rows = np.exp(population()) if skewed else population()
    is_source = rows[:, 2] < np.quantile(rows[:, 2], share)
    assert is_cut(rows[is_source], rows[~is_source])
    assert is_cut(rows[~is_source], rows[is_source])


def test_a_sum_of_columns_cut_in_two():
    rows = population()
    is_source = rows.sum(axis=1) < 0
    assert is_cut(rows[is_source], rows[~is_source])


def test_integers_cut_in_two():
    years = np.random.default_rng(0).integers(18, 90, size=(900, 1)).astype(float)
    rows = np.hstack([years, population(900)])
    assert is_cut(rows[years[:, 0] <= 50], rows[years[:, 0] > 50])


@pytest.mark.parametrize("change", [lambda x: x + 3, lambda x: 3 * x + 6, lambda x: -x - 8])
def test_columns_read_otherwise_leave_a_gap(change):
    rows = population()
    moved = rows[600:] + np.array([3, -3, 3, -3, 3])
    assert not is_cut(rows[:600], change(moved))


def test_domains_that_overlap_are_no_halves():
    rows = population()
    assert not is_cut(rows[:600], rows[600:] + 0.5)
    assert not is_cut(rows[:600, :1], rows[600:, :1])


def test_no_threshold_lies_between_equal_values():
    assert best_threshold(np.zeros(50), np.zeros(50))[0] == pytest.approx(1.0)
    assert best_threshold(np.zeros(50), np.repeat([0.0, 1.0], 25))[0] == pytest.approx(0.5)


def test_the_least_error_is_that_of_all_thresholds():
    random = np.random.default_rng(3)
    source, target = random.normal(size=60).round(1), random.normal(1.0, size=40).round(1)
    errors = [(source > t).mean() + (target <= t).mean() for t in np.union1d(source, target)]
    assert best_threshold(source, target)[0] == pytest.approx(min(errors))
    assert best_threshold(-source, -target)[0] == pytest.approx(min(errors))
