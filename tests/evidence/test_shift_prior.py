from __future__ import annotations

import numpy as np
import pytest

from halfseen.evidence.prior import (
    black_box,
    expectation_maximisation,
    maximum_likelihood,
    mixture_distance,
)

ESTIMATORS = (black_box, maximum_likelihood)

MEANS = np.array([[1.5, 0.0, 0.0], [0.0, 1.5, 0.0], [0.0, 0.0, 1.5]])


def three_gaussians(
    rows: int, prior: list[float], rng: np.random.Generator, distance: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Draw labels from `prior`; return exact posteriors under equal priors, and the labels."""
    y = rng.choice(3, size=rows, p=prior)
    x = rng.normal(distance * MEANS[y])
    likelihood = np.exp(-0.5 * np.square(x[:, None] - distance * MEANS).sum(axis=2))
    return likelihood / likelihood.sum(axis=1, keepdims=True), y


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_three_classes_are_found_from_exact_posteriors(estimator) -> None:
    rng = np.random.default_rng(0)
    source, y = three_gaussians(6000, [1 / 3] * 3, rng)
    target, y_target = three_gaussians(6000, [0.7, 0.25, 0.05], rng)
    found = estimator(source, y, target)
    np.testing.assert_allclose(found, np.bincount(y_target) / len(y_target), atol=0.03)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_an_overconfident_biased_model_is_seen_through(estimator) -> None:
    rng = np.random.default_rng(1)
    source, y = three_gaussians(6000, [0.5, 0.3, 0.2], rng)
    target, y_target = three_gaussians(6000, [0.2, 0.2, 0.6], rng)

    def distorted(p: np.ndarray) -> np.ndarray:
        p = p**3 * [1.0, 2.0, 0.5]
        return p / p.sum(axis=1, keepdims=True)

    found = estimator(distorted(source), y, distorted(target))
    np.testing.assert_allclose(found, np.bincount(y_target) / len(y_target), atol=0.05)


def test_the_accelerated_steps_end_where_plain_ones_do() -> None:
    rng = np.random.default_rng(2)
    for prior in ([0.6, 0.3, 0.1], [0.98, 0.01, 0.01], [1.0, 0.0, 0.0]):
        target, _ = three_gaussians(300, prior, rng)
        plain = source_prior = np.array([0.5, 0.3, 0.2])
        for _ in range(5000):
            joint = target * plain / source_prior
            plain = (joint / joint.sum(axis=1, keepdims=True)).mean(axis=0)
        np.testing.assert_allclose(expectation_maximisation(target, source_prior), plain, atol=2e-4)


def test_black_box_estimation_solves_its_linear_system() -> None:
    rng = np.random.default_rng(3)
    source, y = three_gaussians(500, [0.5, 0.3, 0.2], rng)
    target, _ = three_gaussians(500, [0.3, 0.3, 0.4], rng)
    frequency = np.bincount(y) / len(y)
    joint = np.stack([(source * (y == j)[:, None]).mean(axis=0) for j in range(3)], axis=1)
    weight = black_box(source, y, target) / frequency
    np.testing.assert_allclose(joint @ weight, target.mean(axis=0), atol=1e-12)


def test_mixture_distance_is_zero_for_the_mixture_and_grows_with_the_gap() -> None:
    rng = np.random.default_rng(6)
    source, y = three_gaussians(4000, [1 / 3] * 3, rng)
    target, _ = three_gaussians(4000, [0.6, 0.2, 0.2], rng)
    right = mixture_distance(source, y, target, np.array([0.6, 0.2, 0.2]))
    near = mixture_distance(source, y, target, np.array([0.5, 0.25, 0.25]))
    far = mixture_distance(source, y, target, np.array([0.1, 0.1, 0.8]))
    assert right < 0.06 < near < far


def test_mixture_distance_takes_equal_scores_as_one_step() -> None:
    source, y = np.array([[0.5, 0.5], [0.5, 0.5]]), np.array([0, 1])
    assert mixture_distance(source, y, source[:1], np.array([0.9, 0.1])) == 0.0
