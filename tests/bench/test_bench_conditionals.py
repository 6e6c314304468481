"""Assumptions 3 and 4, and a case of each verdict, on the simulator where the truth is a dial."""

import numpy as np
import pytest

from halfseen.errors import InputError
from halfseen_bench.conditionals import conditional_change, posterior_change
from halfseen_bench.data.simulator import draw
from halfseen_bench.data.simulator_world import Dials, World
from halfseen_bench.imputability import imputation_verdict


def simulated(rows=1000, seed=0, **dials):
    worlds = (World(domain, Dials(**dials)) for domain in ("retargeting", "prospecting"))
    return tuple(draw(world, 0, rows, seed=seed) for world in worlds)


@pytest.mark.parametrize(
    ("dials", "verdict"),
    [
        ({}, "imputation can help here"),
        (
            {"predictability": 0.0},
            "the missing block is unrelated to what you observe: ignore it",
        ),
        ({"activity_shift": 6.0}, "the domains barely overlap"),
    ],
)
def test_each_verdict_is_recognised_on_the_simulator(dials, verdict):
    source, target = simulated(**dials)
    found = imputation_verdict(source.observed, source.missing, target.observed)
    assert found.verdict == verdict


def test_a_moved_conditional_is_seen_and_a_moved_marginal_is_not():
    same, moved = simulated(), simulated(conditional_shift=1.5)
    for (source, target), changed in ((same, False), (moved, True)):
        found = conditional_change(source.observed, source.missing, target.observed, target.missing)
        assert found.changed is changed
    assert found.p_value < 1e-4


def test_a_moved_posterior_is_seen_and_a_moved_marginal_is_not():
    same, moved = simulated(), simulated(click_rate_shift=-1.5)
    for (source, target), changed in ((same, False), (moved, True)):
        found = posterior_change(source.inputs, source.labels, target.inputs, target.labels)
        assert found.changed is changed
    assert 0.05 < found.largest < 0.2  # clicks fall from 23 % to about 8 %


def test_under_no_change_p_values_are_not_small_too_often():
    rng = np.random.default_rng(0)
    p_values = []
    for _ in range(10):
        given, other = rng.normal(size=(150, 1)), rng.normal(size=(150, 1)) + 0.7
        value, other_value = (np.sin(2 * g) + rng.normal(size=g.shape) for g in (given, other))
        p_values.append(conditional_change(given, value, other, other_value).p_value)
    assert np.mean(np.array(p_values) < 0.1) <= 0.3
    assert min(p_values) > 0.005


def test_rows_that_do_not_pair_are_refused():
    rows, values = np.zeros((20, 2)), np.arange(20.0)[:, None]
    with pytest.raises(InputError, match="each row needs both"):
        conditional_change(rows, values, rows, values[:15])
    with pytest.raises(InputError, match="each row needs both"):
        conditional_change(rows, values[:15], rows[:15], values)
    with pytest.raises(InputError, match="constant"):
        conditional_change(rows, rows, rows, rows)
    with pytest.raises(InputError, match="one class alone"):
        posterior_change(rows, [1] * 20, rows, [1] * 20)
