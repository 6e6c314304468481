from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from halfseen.errors import InputError, OptionError
from halfseen.evidence import (
    Calibration,
    expected_calibration_error,
    fit_bias_corrected_temperature,
)


def drawn(rows: int, classes: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Overconfident, biased predictions: the truth is softmax(logits / 1.7 + bias)."""
    rng = np.random.default_rng(seed)
    logits, bias = 2 * rng.normal(size=(rows, classes)), np.linspace(-1, 1, classes)
    truth = softmax(logits / 1.7 + bias, axis=1)
    y = (rng.random((rows, 1)) > truth.cumsum(axis=1)).sum(axis=1)
    return softmax(logits, axis=1), y, bias


@pytest.mark.parametrize("classes", [2, 5])
def test_temperature_and_bias_that_made_the_labels_are_recovered(classes: int) -> None:
    predicted, y, bias = drawn(20_000, classes, 0)
    fitted = fit_bias_corrected_temperature(predicted, y)
    assert fitted.temperature == pytest.approx(1.7, rel=0.05)
    np.testing.assert_allclose(fitted.bias, bias - bias.mean(), atol=0.1)


def test_newton_finds_what_a_general_optimiser_finds() -> None:
    predicted, y, _ = drawn(500, 3, 1)

    def loss(parameter: np.ndarray) -> float:
        logits = parameter[0] * np.log(predicted) + np.append(0.0, parameter[1:])
        return -log_softmax(logits, axis=1)[np.arange(len(y)), y].mean()

    oracle = minimize(loss, [1.0, 0.0, 0.0], tol=1e-10).x
    fitted = fit_bias_corrected_temperature(predicted, y)
    assert 1 / fitted.temperature == pytest.approx(oracle[0], abs=1e-4)
    np.testing.assert_allclose(fitted.bias[1:] - fitted.bias[0], oracle[1:], atol=1e-4)


def test_bias_makes_the_mean_prediction_the_class_frequency() -> None:
    predicted, y, _ = drawn(2000, 4, 2)
    calibrated = fit_bias_corrected_temperature(predicted, y)(predicted)
    np.testing.assert_allclose(calibrated.mean(axis=0), np.bincount(y) / len(y), atol=1e-5)


def test_calibration_lowers_the_calibration_error_of_fresh_rows() -> None:
    predicted, y, _ = drawn(5000, 3, 3)
    fresh, y_fresh, _ = drawn(5000, 3, 4)
    before = expected_calibration_error(fresh, y_fresh)
    after = expected_calibration_error(fit_bias_corrected_temperature(predicted, y)(fresh), y_fresh)
    assert after < 0.03 < 0.1 < before


def test_perfectly_separated_classes_stay_finite() -> None:
    y = np.arange(200) % 2
    for confidence in (0.99, 1.0):
        sure = np.where(y[:, None] == [0, 1], confidence, 1 - confidence)
        fitted = fit_bias_corrected_temperature(sure, y)
        assert np.isfinite(fitted.temperature)
        assert np.isfinite(fitted(sure)).all()


def test_swapped_labels_are_noticed() -> None:
    y = np.arange(400) % 2
    wrong = np.where(y[:, None] == [0, 1], 0.2, 0.8)
    with pytest.raises(InputError, match="wrong way round"):
        fit_bias_corrected_temperature(wrong, np.where(np.arange(400) < 20, 1 - y, y))


def test_calibration_error_is_that_of_its_definition() -> None:
    predicted = np.array([[0.62, 0.38], [0.64, 0.36], [0.05, 0.95], [0.05, 0.95]])
    y = np.array([0, 1, 1, 1])
    expected = 0.5 * abs(0.5 - 0.63) + 0.5 * abs(1.0 - 0.95)
    assert expected_calibration_error(predicted, y, bins=10) == pytest.approx(expected)


def test_other_numbers_of_classes_and_bins_are_refused() -> None:
    with pytest.raises(InputError, match="fitted on 2 classes"):
        Calibration(1.0, np.zeros(2))([[0.2, 0.3, 0.5]])
    with pytest.raises(OptionError, match="bins=0"):
        expected_calibration_error([[0.5, 0.5]], [0], bins=0)
    with pytest.raises(InputError, match="probabilities has 1 rows and y has 2"):
        fit_bias_corrected_temperature([[0.5, 0.5]], [0, 1])
