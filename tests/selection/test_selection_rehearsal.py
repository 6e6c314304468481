"""The slice is shifted from the rest as the target is from the source."""

import numpy as np
import pytest

from halfseen.errors import InputError, OptionError
from halfseen.evidence.features import carve_pseudo_target
from halfseen_bench.data.simulator import draw
from halfseen_bench.data.simulator_world import Dials, World


def simulated(shift, rows=1200):
    worlds = (World(d, Dials(activity_shift=shift)) for d in ("retargeting", "prospecting"))
    return tuple(draw(world, 0, rows) for world in worlds)


@pytest.mark.parametrize("shift", [0.7, 1.5])
def test_the_slice_is_as_far_from_the_rest_as_the_target_from_the_source(shift):
    source, target = simulated(shift)
    found = carve_pseudo_target(source.observed, target.observed)
    assert found.obtained.auc == pytest.approx(found.wanted.auc, abs=0.06)
    assert found.chosen.mean() == pytest.approx(1 / 3, abs=0.04)
    active = source.observed[:, -1]
    assert active[found.chosen].mean() < active[~found.chosen].mean()  # in the same direction


def test_the_density_ratio_of_slice_to_rest_is_that_of_target_to_source():
    rng = np.random.default_rng(0)
    source, target = rng.normal(size=(3000, 1)), rng.normal(0.8, 1.0, (3000, 1))
    found = carve_pseudo_target(source, target)
    log_odds = np.log(found.probability / (1 - found.probability))
    slope = np.polyfit(source[:, 0], log_odds, 1)[0]
    assert slope == pytest.approx(0.8, abs=0.1)  # log w(x) = 0.8 x - 0.32


def test_disjoint_domains_and_odd_shares_still_give_a_slice_of_that_share():
    rng = np.random.default_rng(0)
    source, target = rng.normal(size=(400, 2)), rng.normal(size=(400, 2)) + 30
    found = carve_pseudo_target(source, target, share=0.2)
    assert found.probability.mean() == pytest.approx(0.2)
    with pytest.raises(OptionError, match="share=0"):
        carve_pseudo_target(source, target, share=0.0)
    with pytest.raises(InputError, match="too few to rehearse"):
        carve_pseudo_target(source[:50], target)
