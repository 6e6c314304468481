"""A regression answers row by row."""

import numpy as np
import pytest

from halfseen.blocks import Blocks
from halfseen.members.linear import fit_regression
from halfseen.members.protocol import Sample
from halfseen.targets import ClassTarget, RegressionTarget
from halfseen.weights import Weights


@pytest.mark.parametrize("kind", [ClassTarget.of(2), ClassTarget.of(9), RegressionTarget()])
def test_a_row_has_its_own_answer_however_many_others_there_are(kind):
    random = np.random.default_rng(0)
    rows = random.normal(size=(300, 40)).astype(np.float32)
    labels = np.arange(300) % kind.outputs if kind.outputs > 1 else rows[:, 0].astype(np.float64)
    blocks = Blocks.columns([f"x{k}" for k in range(40)], [39])
    members = [fit_regression(Sample(rows, labels), blocks, kind, c) for c in (0.1, 1.0, 10.0)]

    def answer(rows):
        return Weights.equal(3).combined([m.raw_prediction(rows) for m in members], kind)

    whole = answer(rows)
    for count in (1, 2, 3, 7, 50, 299):
        some = random.permutation(300)[:count]
        assert (answer(rows[some]) == whole[some]).all(), count
