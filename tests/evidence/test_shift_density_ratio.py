from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from halfseen.errors import InputError
from halfseen.evidence import clip_weights, effective_sample_size, fit_density_ratio
from halfseen.evidence.density_ratio import odds_to_ratio


def test_the_ratio_of_two_gaussians_is_found_when_the_domains_differ_in_size() -> None:
    rng = np.random.default_rng(0)
    # Different means and spreads: the log-ratio is quadratic in each input.
    source = rng.normal(0.0, 1.0, (6000, 2))
    target = rng.normal([0.5, 0.0], [1.0, 0.7], (3000, 2))
    grid = rng.normal(0.0, 0.7, (300, 2))
    exact = np.exp(
        0.5 * grid[:, 0] - 0.125 - np.log(0.7) - grid[:, 1] ** 2 / (2 * 0.49) + grid[:, 1] ** 2 / 2
    )
    estimated = fit_density_ratio(source, target).weights(grid, clip=False)
    assert np.median(np.abs(estimated / exact - 1)) < 0.06
    assert np.corrcoef(np.log(estimated), np.log(exact))[0, 1] > 0.98


def test_weights_average_to_one_on_fresh_source_rows() -> None:
    rng = np.random.default_rng(1)
    ratio = fit_density_ratio(rng.normal(size=(3000, 3)), rng.normal(0.3, 1, (1000, 3)))
    assert ratio.weights(rng.normal(size=(5000, 3))).mean() == pytest.approx(1.0, abs=0.05)


def test_equal_domains_give_weights_near_one() -> None:
    rng = np.random.default_rng(2)
    ratio = fit_density_ratio(rng.normal(size=(1500, 20)), rng.normal(size=(1500, 20)))
    assert effective_sample_size(ratio.weights(rng.normal(size=(1000, 20)))) > 950


def test_a_classifier_of_ones_own_is_copied_not_fitted() -> None:
    rng = np.random.default_rng(3)
    mine = LogisticRegression()
    ratio = fit_density_ratio(rng.normal(size=(50, 1)), rng.normal(size=(50, 1)), classifier=mine)
    assert not hasattr(mine, "coef_")
    assert isinstance(ratio.classifier, LogisticRegression)


def test_effective_sample_size_of_a_gaussian_shift_is_its_closed_form() -> None:
    # E[w]^2 / E[w^2] = exp(-m^2) for N(0, 1) against N(m, 1).
    x = np.random.default_rng(4).normal(size=200_000)
    weight = np.exp(0.7 * x - 0.245)
    assert effective_sample_size(weight) / len(x) == pytest.approx(np.exp(-0.49), rel=0.03)


def test_effective_sample_size_does_not_depend_on_scale() -> None:
    weight = np.array([1.0, 2.0, 3.0])
    assert effective_sample_size(weight * 1e-200) == pytest.approx(36 / 14)


def test_clipping_bounds_the_largest_weight_and_leaves_the_others() -> None:
    weight = np.array([0.5] * 99 + [1000.0])
    clipped = clip_weights(weight)
    assert clipped.max() == pytest.approx(10 * weight.mean())
    assert (clipped[:-1] == 0.5).all()


def test_a_certain_classifier_gives_no_more_weight_than_its_rows_allow() -> None:
    np.testing.assert_allclose(odds_to_ratio([0.0, 1.0], 10, 10), [0.0, 19.0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: clip_weights([1.0, -1.0]), "Row 1 of weight holds -1"),
        (lambda: effective_sample_size([0.0, 0.0]), "Every weight is zero"),
        (lambda: effective_sample_size(np.ones((3, 1))), "flatten it first"),
        (lambda: fit_density_ratio(np.ones((9, 2)), np.ones((9, 3))), "2 columns and the target 3"),
        (lambda: fit_density_ratio(np.ones((9, 2)), np.ones((2, 2))), "The target has 2 rows"),
    ],
)
def test_what_cannot_be_weighted_is_refused(call, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
