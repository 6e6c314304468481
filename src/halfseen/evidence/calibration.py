"""Probabilities that mean what they say: temperature and bias, fitted on held-out source rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax, softmax

from halfseen.arrays import Floats, Integers, probabilities
from halfseen.errors import InputError
from halfseen.metrics import predictions

__all__ = [
    "Calibration",
    "fit_bias_corrected_temperature",
    "fit_temperature",
]

_SMALLEST = 1e-12
"""Probabilities below this are taken as this, so that their logarithm exists."""
_PENALTY = 1e-3
"""Ridge on (1/T - 1, b), in rows: keeps both finite where the classes separate perfectly."""


@dataclass(frozen=True, eq=False)
class Calibration:
    r"""The map :math:`p \mapsto \mathrm{softmax}(\log p / T + b)`.

    On probabilities it does what temperature and bias do on logits, because a softmax forgets
    what is added to a whole row.

    Examples
    --------
    >>> Calibration(temperature=2.0, bias=np.zeros(2))([[0.8, 0.2]]).round(4)
    array([[0.6667, 0.3333]])
    """

    temperature: float
    bias: Floats

    def __call__(self, uncalibrated: npt.ArrayLike) -> Floats:
        """Return calibrated probabilities."""
        array = probabilities("uncalibrated", uncalibrated)
        if array.shape[1] != len(self.bias):
            raise InputError(
                f"This calibration was fitted on {len(self.bias)} classes and cannot be applied "
                f"to {array.shape[1]}."
            )
        calibrated: Floats = softmax(_logarithm(array) / self.temperature + self.bias, axis=1)
        return calibrated


def fit_temperature(source_probabilities: npt.ArrayLike, y_source: npt.ArrayLike) -> Calibration:
    """Fit one temperature T by maximum likelihood, with no bias.

    Parameters
    ----------
    source_probabilities, y_source
        Predictions for source rows that the model was *not* trained on, and their labels.

    References
    ----------
    C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger, "On calibration of modern neural networks",
    ICML 2017.

    Examples
    --------
    Of rows called 0.9, three quarters are right: log 9 / T must be log 3.

    >>> fitted = fit_temperature([[0.9, 0.1]] * 400, [0] * 300 + [1] * 100)
    >>> round(fitted.temperature, 2)
    2.0
    """
    return _fit(*predictions(source_probabilities, y_source), with_bias=False)


def fit_bias_corrected_temperature(
    source_probabilities: npt.ArrayLike, y_source: npt.ArrayLike
) -> Calibration:
    r"""Fit a temperature T and a bias b per class by maximum likelihood.

    The bias makes the mean of the calibrated probabilities equal the class frequencies, which
    the estimate of a target prior relies on. Both are found by Newton's method on the convex
    negative log-likelihood in (1/T, b); b has mean zero.

    Parameters
    ----------
    source_probabilities, y_source
        Predictions for source rows that the model was *not* trained on, and their labels.

    References
    ----------
    A. Alexandari, A. Kundaje, A. Shrikumar, "Maximum likelihood with bias-corrected calibration
    is hard-to-beat at label shift adaptation", ICML 2020.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 500)
    >>> biased = np.stack([np.full(500, 0.7) - 0.4 * y, np.full(500, 0.3) + 0.4 * y], axis=1)
    >>> y[:100] = 0
    >>> fitted = fit_bias_corrected_temperature(biased, y)
    >>> bool(np.allclose(fitted(biased).mean(axis=0), np.bincount(y) / 500, atol=1e-3))
    True
    """
    return _fit(*predictions(source_probabilities, y_source), with_bias=True)


def _fit(array: Floats, y: Integers, *, with_bias: bool) -> Calibration:
    """Minimise the mean negative log-likelihood over (1/T, b) by damped Newton steps."""
    rows, classes = array.shape
    scores = _logarithm(array)
    frequency = np.bincount(y, minlength=classes) / rows
    mean_score = scores[np.arange(rows), y].mean()
    start = np.concatenate([[1.0], np.zeros(classes if with_bias else 0)])
    penalty = _PENALTY / rows

    def evaluate(parameter: Floats) -> tuple[float, Floats]:
        """Return the objective, and the fitted probabilities."""
        logits = parameter[0] * scores
        if with_bias:
            logits += parameter[1:]
        log_fitted = log_softmax(logits, axis=1)
        ridge = penalty / 2 * np.square(parameter - start).sum()
        return float(ridge - log_fitted[np.arange(rows), y].mean()), np.exp(log_fitted)

    def newton_step(parameter: Floats, fitted: Floats) -> Floats:
        expected = (fitted * scores).sum(axis=1, keepdims=True)
        centred = fitted * (scores - expected)
        gradient = penalty * (parameter - start)
        hessian = penalty * np.eye(len(start))
        gradient[0] += expected.mean() - mean_score
        hessian[0, 0] += (centred * scores).sum() / rows
        if with_bias:
            gradient[1:] += fitted.mean(axis=0) - frequency
            hessian[0, 1:] = hessian[1:, 0] = centred.mean(axis=0)
            hessian[1:, 1:] += np.diag(fitted.mean(axis=0)) - fitted.T @ fitted / rows
        step: Floats = np.linalg.solve(hessian, gradient)
        return step

    parameter = start
    value, fitted = evaluate(parameter)
    gain = np.inf
    while gain > 1e-10:
        step = newton_step(parameter, fitted)
        trial, trial_fitted = evaluate(parameter - step)
        while trial > value and np.abs(step).max() > 1e-9:
            step = step / 2
            trial, trial_fitted = evaluate(parameter - step)
        gain = value - trial
        if gain > 0:
            parameter, value, fitted = parameter - step, trial, trial_fitted
    if parameter[0] <= 1e-6:
        raise InputError(
            "The held-out source rows are predicted no better than at random, or the wrong way "
            "round (the fitted 1/temperature is not positive): check that the labels count the "
            "same classes as the columns of the probabilities."
        )
    bias = parameter[1:] - parameter[1:].mean() if with_bias else np.zeros(classes)
    return Calibration(1.0 / float(parameter[0]), bias)


def _logarithm(array: Floats) -> Floats:
    logarithm: Floats = np.log(np.maximum(array, _SMALLEST))
    return logarithm
