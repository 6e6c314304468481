from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from halfseen.errors import InputError, OptionError
from halfseen.evidence import effective_sample_size, fit_density_ratio
from halfseen.evidence.risk import deep_embedded_validation, importance_weighted_validation

DRAWS, ROWS = 200, 1000


def gaussian_draws(distance: float, loss: str) -> tuple[float, list[tuple[np.ndarray, np.ndarray]]]:
    """Source N(0, 1), target N(distance, 1): the exact target risk, and (loss, weight) draws."""
    rng = np.random.default_rng([int(10 * distance), len(loss)])
    inputs = rng.normal(size=(DRAWS, ROWS))
    weight = np.exp(distance * inputs - distance**2 / 2)
    if loss == "zero-one":  # wrong beyond 0.3
        return float(stats.norm.sf(0.3 - distance)), list(
            zip((inputs > 0.3).astype(float), weight, strict=True)
        )
    return 1 + (distance - 0.3) ** 2, list(zip((inputs - 0.3) ** 2, weight, strict=True))


@pytest.mark.parametrize(
    ("distance", "loss"),
    [(0.5, "zero-one"), (1.0, "zero-one"), (1.5, "zero-one"), (0.5, "squared")],
)
def test_the_known_target_risk_is_found_and_covered(distance: float, loss: str) -> None:
    risk, draws = gaussian_draws(distance, loss)
    dev = [deep_embedded_validation(*draw) for draw in draws]
    plain = [importance_weighted_validation(*draw) for draw in draws]
    error = np.array([estimate.risk - risk for estimate in dev])
    # Unbiased: the mean error of 200 draws is within three of its standard errors.
    assert abs(error.mean()) < 3 * error.std() / np.sqrt(DRAWS)
    covered = np.mean([low <= risk <= high for low, high in (e.interval for e in dev)])
    assert 0.90 <= covered <= 0.995  # 95 % stated; 0.90 is three standard errors below
    assert error.var() < np.var([estimate.risk for estimate in plain])


def test_plain_weighting_is_unbiased_and_covered_too() -> None:
    risk, draws = gaussian_draws(0.5, "zero-one")
    plain = [importance_weighted_validation(*draw) for draw in draws]
    error = np.array([estimate.risk - risk for estimate in plain])
    assert abs(error.mean()) < 3 * error.std() / np.sqrt(DRAWS)
    covered = np.mean([low <= risk <= high for low, high in (e.interval for e in plain)])
    assert 0.90 <= covered <= 0.995


def test_risk_is_found_with_estimated_weights() -> None:
    rng = np.random.default_rng(0)
    ratio = fit_density_ratio(rng.normal(size=(4000, 1)), rng.normal(1, 1, (4000, 1)))
    x = rng.normal(size=(4000, 1))
    estimate = deep_embedded_validation((x[:, 0] > 0.3).astype(float), ratio.weights(x))
    exact = stats.norm.sf(0.3 - 1.0)
    unweighted = stats.norm.sf(0.3)
    assert abs(estimate.risk - exact) < 0.02 < 0.3 < abs(unweighted - exact)


def test_dev_is_its_definition() -> None:
    rng = np.random.default_rng(1)
    loss, weight = rng.random(50), rng.exponential(size=50)
    product = loss * weight
    eta = -np.cov(product, weight)[0, 1] / np.var(weight, ddof=1)
    expected = product.mean() + eta * (weight.mean() - 1)
    assert deep_embedded_validation(loss, weight).risk == pytest.approx(expected)


def test_the_standard_error_is_hc3_of_the_intercept() -> None:
    rng = np.random.default_rng(2)
    loss, weight = rng.random(40), rng.exponential(size=40)
    design = np.stack([np.ones(40), weight - 1], axis=1)
    inverse = np.linalg.inv(design.T @ design)
    residual = loss * weight - design @ (inverse @ design.T @ (loss * weight))
    leverage = np.einsum("ni,ij,nj->n", design, inverse, design)
    meat = design.T @ (design * np.square(residual / (1 - leverage))[:, None])
    error = np.sqrt((inverse @ meat @ inverse)[0, 0])
    low, high = deep_embedded_validation(loss, weight, level=0.9).interval
    assert (high - low) / 2 == pytest.approx(stats.t.ppf(0.95, 38) * error)


def test_equal_weights_give_the_plain_mean() -> None:
    loss = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    dev = deep_embedded_validation(loss, np.ones(5))
    assert dev == importance_weighted_validation(loss, np.ones(5))
    assert dev.risk == pytest.approx(0.6)
    assert dev.effective_sample_size == pytest.approx(5.0)


def test_the_effective_sample_size_is_that_of_the_weights() -> None:
    weight = np.array([0.2, 1.0, 3.0])
    estimate = deep_embedded_validation([1.0, 0.0, 1.0], weight)
    assert estimate.effective_sample_size == effective_sample_size(weight)


@pytest.mark.parametrize("score", [deep_embedded_validation, importance_weighted_validation])
def test_a_column_is_refused_instead_of_averaged_as_an_outer_product(score) -> None:
    vector, column = np.array([0.0, 1.0, 0.5]), np.array([[0.5], [2.0], [0.5]])
    assert (column * vector).shape == (3, 3)  # what would be averaged
    for loss, weight in ((vector, column), (column, vector), (column, column)):
        with pytest.raises(InputError, match="must be a vector"):
            score(loss, weight)


@pytest.mark.parametrize("score", [deep_embedded_validation, importance_weighted_validation])
@pytest.mark.parametrize(
    ("loss", "weight", "message"),
    [
        ([1.0, 2.0, 3.0], [1.0, 1.0], "loss has 3 rows and weight has 2"),
        ([1.0, np.nan, 3.0], [1.0, 1.0, 1.0], "loss holds nan"),
        ([1.0, 2.0, 3.0], [1.0, -1.0, 1.0], "Row 1 of weight holds -1"),
        ([1.0, 2.0, 3.0], [0.0, 0.0, 0.0], "Every weight is zero"),
        ([1.0], [1.0], "needs at least"),
    ],
)
def test_wrong_losses_and_weights_are_refused(score, loss, weight, message: str) -> None:
    with pytest.raises(InputError, match=message):
        score(loss, weight)


def test_a_level_that_is_no_probability_is_refused() -> None:
    with pytest.raises(OptionError, match="level=95"):
        deep_embedded_validation([1.0, 2.0, 3.0], [1.0, 1.0, 1.0], level=95)
