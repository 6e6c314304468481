"""How columns of benchmark tables are scaled, by what the source's labels say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from small_pair import small_pair

from halfseen_bench.data import Labelled
from halfseen_bench.scaling import standardized

SCALES = np.r_[10.0, np.ones(39)]


def learned(telling: int, *, columns: int = 40, flags: int = 0) -> np.ndarray:
    """Return the standard deviation that the columns of the source end with."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, columns)) * SCALES[:columns]
    labels = (rows[:, telling] > 0).astype(np.int64)
    inputs = np.c_[rows, rng.integers(0, 2, size=(300, flags))].astype(np.float32)
    source = Labelled(inputs, labels)
    pair = replace(
        small_pair(),
        source_train=source,
        source_test=source,
        target_train=inputs,
        target_test=inputs,
        complete_target=None,
    )
    return standardized(pair).source_train.inputs.std(0)


def test_one_scale_where_deviations_tell_what_matters():
    common = np.sqrt(np.mean(SCALES**2))
    assert np.allclose(learned(0), SCALES / common, rtol=0.15)


def test_a_scale_for_each_column_where_a_narrow_one_matters_or_few_are_there():
    for deviation in (learned(7), learned(0, columns=12)):
        assert np.allclose(deviation, 1.0, rtol=1e-4)


def test_flags_keep_their_own_scale():
    deviation = learned(0, flags=3)
    assert np.allclose(deviation[40:], 1.0, rtol=1e-4)
    assert deviation[1] < 0.8
