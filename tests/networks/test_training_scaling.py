"""How the networks' inputs are scaled, by what the source's labels say."""

from __future__ import annotations

import numpy as np
import torch

from halfseen.networks.nets import Standardize
from halfseen.networks.training import LabelledRows
from halfseen.networks.training.scaling import learn_scales

SPREADS = np.r_[10.0, np.ones(39)]


def learned(telling: int, *, columns: int = 40, soft: bool = False) -> np.ndarray:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, columns)) * SPREADS[:columns]
    labels = torch.from_numpy((rows[:, telling] > 0).astype(np.int64))
    if soft:
        labels = torch.nn.functional.one_hot(labels).float()
    standardize = Standardize((columns,))
    learn_scales(standardize, LabelledRows(torch.from_numpy(rows).float(), labels))
    return standardize.scale.numpy()


def test_one_scale_where_the_spreads_tell_what_matters():
    for soft in (False, True):
        scale = learned(0, soft=soft)
        assert np.allclose(scale, np.sqrt(np.mean(SPREADS**2)), rtol=0.1)


def test_a_scale_for_each_column_where_a_narrow_one_matters_or_few_are_there():
    for scale in (learned(7), learned(0, columns=12)):
        assert np.allclose(scale, SPREADS[: len(scale)], rtol=0.15)


def test_flags_keep_their_own_scale():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 40)) * SPREADS
    flags = rng.integers(0, 2, size=(300, 3))
    inputs = torch.from_numpy(np.c_[rows, flags]).float()
    standardize = Standardize((43,))
    learn_scales(standardize, LabelledRows(inputs, torch.from_numpy(rows[:, 0] > 0).long()))
    assert standardize.scale[:40].std() == 0
    assert torch.allclose(standardize.scale[40:], inputs[:, 40:].std(0, correction=0))
