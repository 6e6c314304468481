"""The discriminant that learns from the model's own answer about drifted rows."""

import numpy as np
import pytest
from scipy.special import log_softmax
from scipy.stats import multivariate_normal

from halfseen.blocks import Blocks
from halfseen.fitting.drift import LEAST, SHRINKAGE, discriminant, self_trained
from halfseen.members.aligned import ColumnMap, Continuous

CENTRES = np.array([[-3.0, 0.0, 0.0], [3.0, 0.0, 1.0], [0.0, 4.0, -1.0]])


def clusters(rows: int, seed: int = 0):
    random = np.random.default_rng(seed)
    labels = random.integers(0, 3, rows)
    inputs = CENTRES[labels] + random.normal(size=(rows, 3))
    return np.hstack([inputs, random.normal(size=(rows, 1))]).astype(np.float32), labels


def answer_of(labels, rate: float, seed: int = 1):
    """Answers that are right at some rate, and sure of themselves."""
    random = np.random.default_rng(seed)
    said = np.where(random.random(len(labels)) < rate, labels, random.integers(0, 3, len(labels)))
    return log_softmax(3.0 * np.eye(3)[said], axis=1)


@pytest.fixture
def maps():
    rows, _ = clusters(300)
    columns = Continuous(np.arange(3), np.zeros(3), np.ones(3), np.zeros(3, dtype=bool))
    own = ColumnMap.standard(columns, rows, logarithm=True)
    return own, own


def test_the_discriminant_is_bayes_rule_of_normal_classes():
    random = np.random.default_rng(0)
    points, shares = random.normal(size=(200, 2)), random.dirichlet(np.ones(3), 200)
    slopes, bias = discriminant(points, shares)
    counts = shares.sum(0)
    means = [np.average(points, axis=0, weights=share) for share in shares.T]
    within = sum(
        (share[:, None] * (points - mean)).T @ (points - mean)
        for share, mean in zip(shares.T, means, strict=True)
    ) / len(points)
    within = (1 - SHRINKAGE) * within + SHRINKAGE * np.diag(np.diag(within))
    within += LEAST * np.eye(2)
    joint = np.stack(
        [
            multivariate_normal(m, within).logpdf(points) + np.log(c)
            for m, c in zip(means, counts, strict=True)
        ],
        axis=1,
    )
    found = log_softmax(points @ slopes.T + bias, axis=1)
    np.testing.assert_allclose(found, log_softmax(joint, axis=1), atol=1e-8)


def test_clusters_of_the_target_correct_the_answer_that_taught(maps):
    rows, labels = clusters(300)
    answer = answer_of(labels, 0.7)
    member = self_trained(answer, rows, *maps, Blocks((4,), ()))
    assert member is not None
    found = member.raw_prediction(rows).argmax(1)
    assert (answer.argmax(1) == labels).mean() < 0.85
    assert (found == labels).mean() > 0.95


def test_an_unsure_answer_teaches_nothing(maps):
    rows, labels = clusters(300)
    assert (
        self_trained(
            log_softmax(0.2 * answer_of(labels, 0.7), axis=1), rows, *maps, Blocks((4,), ())
        )
        is None
    )


def test_few_rows_teach_nothing(maps):
    rows, labels = clusters(12)
    assert self_trained(answer_of(labels, 1.0), rows, *maps, Blocks((4,), ())) is None


def test_inputs_of_the_missing_block_stay_out(maps):
    rows, labels = clusters(300)
    blocks = Blocks((5,), (4,))
    wider = np.hstack([rows, np.full((300, 1), 7.0, dtype=np.float32)])
    member = self_trained(answer_of(labels, 0.9), wider, *maps, blocks)
    other = wider.copy()
    other[:, 3:] = -7.0
    np.testing.assert_array_equal(member.raw_prediction(wider), member.raw_prediction(other))
