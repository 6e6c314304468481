"""Probabilities under other class proportions."""

import numpy as np
import pytest

from halfseen.errors import InputError
from halfseen.evidence import correct_probabilities


def posterior(x):
    """p(y | x) for classes N(-1, 1) and N(1, 1), equally frequent."""
    return np.stack([1 / (1 + np.exp(2 * x)), 1 / (1 + np.exp(-2 * x))], axis=1)


def test_correction_is_bayes_rule_on_gaussians():
    x = np.linspace(-3, 3, 13)
    joint = np.stack([0.9 * np.exp(-((x + 1) ** 2) / 2), 0.1 * np.exp(-((x - 1) ** 2) / 2)], 1)
    np.testing.assert_allclose(
        correct_probabilities(posterior(x), [0.5, 0.5], [0.9, 0.1]),
        joint / joint.sum(axis=1, keepdims=True),
    )


def test_correction_to_the_same_prior_changes_nothing():
    p = posterior(np.array([-1.0, 0.3]))
    np.testing.assert_allclose(correct_probabilities(p, [0.3, 0.7], [0.3, 0.7]), p)


def test_a_certain_row_of_a_class_without_target_mass_stays_a_distribution():
    corrected = correct_probabilities([[0.0, 1.0]], [0.5, 0.5], [1.0, 0.0])
    np.testing.assert_allclose(corrected, [[1.0, 0.0]])


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ([1.0, 0.0], [0.5, 0.5], "class 1 no mass"),
        ([0.5, 0.5], [0.5, 0.6], "target_prior must"),
        ([1.0], [0.5, 0.5], "source_prior must hold"),
    ],
)
def test_what_is_no_prior_is_refused(source, target, message):
    with pytest.raises(InputError, match=message):
        correct_probabilities([[0.8, 0.2], [0.3, 0.7]], source, target)
