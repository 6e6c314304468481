"""Shares of the members: against a direct maximisation, and where one member runs away."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax

from halfseen.targets import ClassTarget, classification
from halfseen.weights import Weights, across_halves

TWO, THREE = ClassTarget.of(2), ClassTarget.of(3)


@pytest.fixture
def answers():
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, 400)
    logits = [random.normal(size=(400, 3)) for _ in range(3)]
    for strength, given in zip((0.0, 1.0, 2.0), logits, strict=True):
        given[np.arange(400), labels] += strength
    return [log_softmax(given, axis=1) for given in logits], labels


def test_shares_have_the_highest_penalised_likelihood(answers):
    given, labels = answers
    likelihood = np.exp(np.stack([a[np.arange(len(labels)), labels] for a in given]))

    def loss(free):
        shares = np.exp(log_softmax(np.append(free, 0.0)))
        prior = classification.PRIOR_ROWS / 3 * np.log(shares).sum()
        return -np.log(shares @ likelihood).sum() - prior

    free = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-6}).x
    expected = np.exp(log_softmax(np.append(free, 0.0)))
    np.testing.assert_allclose(THREE.fit_shares(given, labels), expected, atol=1e-3)


def test_few_rows_leave_shares_nearly_equal(answers):
    given, labels = answers
    few = THREE.fit_shares([a[:3] for a in given], labels[:3])
    assert max(few) - min(few) < 0.1
    many = THREE.fit_shares(given, labels)
    assert many[2] > 0.6 > 0.2 > many[0]


def test_a_member_that_runs_away_does_not_outvote_the_others():
    calm = np.log([[0.8, 0.2], [0.3, 0.7]])
    wild = log_softmax(np.array([[-500.0, 500.0], [500.0, -500.0]]), axis=1)
    found = np.exp(Weights((0.4, 0.4, 0.2)).combined([calm, calm, wild], TWO))
    assert found.argmax(1).tolist() == [0, 1]
    np.testing.assert_allclose(found.sum(1), 1.0)


def test_each_half_is_weighed_by_the_other(answers):
    given, labels = answers
    once = across_halves(given, labels, THREE)
    changed = labels.copy()
    first_half = np.random.default_rng(0).permutation(len(labels))[::2]
    changed[first_half] = (labels[first_half] + 1) % 3
    again = across_halves(given, changed, THREE)
    np.testing.assert_array_equal(once[first_half], again[first_half])
    assert not np.allclose(np.delete(once, first_half, 0), np.delete(again, first_half, 0))


def test_one_member_is_left_as_it_is(answers):
    (first, *_), labels = answers
    np.testing.assert_array_equal(across_halves([first], labels, THREE), first)
