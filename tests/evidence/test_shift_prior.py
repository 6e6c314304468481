from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from halfseen.evidence.prior import (
    ESTIMATORS,
    black_box,
    expectation_maximisation,
    mixture_distance,
    regularised_black_box,
)

MEANS = np.array([[1.5, 0.0, 0.0], [0.0, 1.5, 0.0], [0.0, 0.0, 1.5]])


def three_gaussians(
    rows: int, prior: list[float], rng: np.random.Generator, distance: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Draw labels from `prior`; return exact posteriors under equal priors, and the labels."""
    y = rng.choice(3, size=rows, p=prior)
    x = rng.normal(distance * MEANS[y])
    likelihood = np.exp(-0.5 * np.square(x[:, None] - distance * MEANS).sum(axis=2))
    return likelihood / likelihood.sum(axis=1, keepdims=True), y


@pytest.mark.parametrize("name", ESTIMATORS)
def test_three_classes_are_found_from_exact_posteriors(name: str) -> None:
    rng = np.random.default_rng(0)
    source, y = three_gaussians(6000, [1 / 3] * 3, rng)
    target, y_target = three_gaussians(6000, [0.7, 0.25, 0.05], rng)
    found = ESTIMATORS[name](source, y, target)
    np.testing.assert_allclose(found, np.bincount(y_target) / len(y_target), atol=0.03)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_overconfident_biased_model_is_seen_through(name: str) -> None:
    rng = np.random.default_rng(1)
    source, y = three_gaussians(6000, [0.5, 0.3, 0.2], rng)
    target, y_target = three_gaussians(6000, [0.2, 0.2, 0.6], rng)

    def distorted(p: np.ndarray) -> np.ndarray:
        p = p**3 * [1.0, 2.0, 0.5]
        return p / p.sum(axis=1, keepdims=True)

    found = ESTIMATORS[name](distorted(source), y, distorted(target))
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


@pytest.mark.parametrize("distance", [1.0, 0.1])
def test_the_regularised_form_minimises_its_objective(distance: float) -> None:
    rng = np.random.default_rng(4)
    source, y = three_gaussians(300, [1 / 3] * 3, rng, distance)
    target, _ = three_gaussians(300, [0.6, 0.2, 0.2], rng, distance)
    joint = source.T @ np.eye(3)[y] / len(y)
    gap = target.mean(axis=0) - joint.sum(axis=1)
    bound = np.log(2 * 3 / 0.05) / len(y)
    strength = 0.01 * 3 * (2 * bound / 3 + np.sqrt(2 * bound))

    def objective(theta: np.ndarray) -> float:
        return np.linalg.norm(joint @ theta - gap) + strength * np.linalg.norm(theta)

    best = min(
        (minimize(objective, start, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-14})
         for start in (np.zeros(3), np.linalg.solve(joint, gap), 0.1 * rng.normal(size=3))),
        key=lambda result: result.fun,
    )  # fmt: skip
    expected = np.maximum((1 + best.x) * np.bincount(y) / len(y), 0)
    found = regularised_black_box(source, y, target)
    np.testing.assert_allclose(found, expected / expected.sum(), atol=1e-4)


def test_the_regularised_form_stays_near_no_shift_where_the_model_sees_nothing() -> None:
    rng = np.random.default_rng(5)
    truth = np.full(3, 1 / 3)
    shrunk = raw = 0.0
    for _ in range(20):
        source, y = three_gaussians(200, [1 / 3] * 3, rng, 0.05)
        target, _ = three_gaussians(200, [1 / 3] * 3, rng, 0.05)
        shrunk += np.abs(regularised_black_box(source, y, target) - truth).sum()
        raw += np.abs(black_box(source, y, target) - truth).sum()
    assert shrunk < 0.5 * raw


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
