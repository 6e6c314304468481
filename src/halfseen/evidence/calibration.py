"""Probabilities that mean what they say: temperature and bias, fitted on held-out source rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax, softmax

from halfseen.arrays import Floats, probabilities
from halfseen.errors import InputError
from halfseen.metrics import predictions

__all__ = ["Calibration", "fit_bias_corrected_temperature"]

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


def fit_bias_corrected_temperature(
    source_probabilities: npt.ArrayLike, y_source: npt.ArrayLike
) -> Calibration:
    """Fit a temperature T and a bias b per class by maximum likelihood.

    The bias makes the mean of the calibrated probabilities equal the class frequencies, which
    the estimate of a target prior relies on. Both are found by damped Newton steps on the convex
    negative log-likelihood in (1/T, b); b has mean zero.

    Parameters
    ----------
    source_probabilities, y_source
        Predictions for source rows that the model was *not* trained on, and their labels.

    References
    ----------
    A. Alexandari, A. Kundaje, A. Shrikumar, "Maximum likelihood with bias-corrected calibration
    is hard-to-beat at label shift adaptation", ICML 2020.
    """
    array, y = predictions(source_probabilities, y_source)
    rows, classes = array.shape
    scores, truth = _logarithm(array), np.eye(classes)[y]
    start = np.concatenate([[1.0], np.zeros(classes)])
    penalty = _PENALTY / rows

    def evaluate(parameter: Floats) -> tuple[float, Floats]:
        """Return the objective, and the fitted probabilities."""
        log_fitted = log_softmax(parameter[0] * scores + parameter[1:], axis=1)
        ridge = penalty / 2 * np.square(parameter - start).sum()
        return float(ridge - log_fitted[np.arange(rows), y].mean()), np.exp(log_fitted)

    def newton_step(parameter: Floats, fitted: Floats) -> Floats:
        excess = fitted - truth
        centred = fitted * (scores - (fitted * scores).sum(axis=1, keepdims=True))
        gradient = penalty * (parameter - start)
        gradient += np.append((excess * scores).sum() / rows, excess.mean(axis=0))
        hessian = penalty * np.eye(1 + classes)
        hessian[0, 0] += (centred * scores).sum() / rows
        hessian[0, 1:] = hessian[1:, 0] = centred.mean(axis=0)
        hessian[1:, 1:] += np.diag(fitted.mean(axis=0)) - fitted.T @ fitted / rows
        step: Floats = np.linalg.solve(hessian, gradient)
        return step

    parameter, (value, fitted), gain = start, evaluate(start), np.inf
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
    return Calibration(1.0 / float(parameter[0]), parameter[1:] - parameter[1:].mean())


def _logarithm(array: Floats) -> Floats:
    logarithm: Floats = np.log(np.maximum(array, _SMALLEST))
    return logarithm
