"""Each formula beside scikit-learn's."""

import numpy as np
import pytest
from sklearn import metrics as oracle

from halfseen.metrics import (
    accuracy,
    auc,
    balanced_accuracy,
    expected_calibration_error,
    metrics_of,
    row_losses,
)
from halfseen.targets import RegressionTarget

RANDOM = np.random.default_rng(0)
PREDICTED = RANDOM.dirichlet([0.5, 0.5, 0.5], 300)
TRUTH = np.array([RANDOM.choice(3, p=row) for row in PREDICTED])


def test_formulas_agree_with_scikit_learn():
    chosen = PREDICTED.argmax(axis=1)
    assert accuracy(PREDICTED, TRUTH) == pytest.approx(oracle.accuracy_score(TRUTH, chosen))
    assert balanced_accuracy(PREDICTED, TRUTH) == pytest.approx(
        oracle.balanced_accuracy_score(TRUTH, chosen)
    )
    assert row_losses(PREDICTED, TRUTH).mean() == pytest.approx(oracle.log_loss(TRUTH, PREDICTED))


def test_the_auc_of_several_classes_is_the_mean_over_pairs():
    pairs = []
    for first in range(3):
        for second in set(range(3)) - {first}:
            rows = np.isin(TRUTH, (first, second))
            pairs.append(oracle.roc_auc_score(TRUTH[rows] == first, PREDICTED[rows, first]))
    assert auc(PREDICTED, TRUTH) == pytest.approx(np.mean(pairs))
    assert metrics_of(PREDICTED, np.minimum(TRUTH, 1))["auc"] is None, "a class is absent"


def test_an_impossible_class_costs_much_but_not_everything():
    (loss,) = row_losses(np.array([[1.0, 0.0]]), np.array([1]))
    assert loss == pytest.approx(oracle.log_loss([1], [[1.0, 0.0]], labels=[0, 1]))


def test_calibration_error_is_that_of_its_definition():
    predicted = np.array([[0.62, 0.38], [0.64, 0.36], [0.05, 0.95], [0.05, 0.95]])
    y = np.array([0, 1, 1, 1])
    expected = 0.5 * abs(0.5 - 0.63) + 0.5 * abs(1.0 - 0.95)
    assert expected_calibration_error(predicted, y) == pytest.approx(expected)


def test_what_is_shown_is_rounded():
    predicted, y = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]), np.array([0, 1, 1])
    assert metrics_of(predicted, y) == {
        "rows": 3, "accuracy": 0.6667, "balanced_accuracy": 0.75, "cross_entropy": 0.4149,
        "auc": 1.0,
    }  # fmt: skip
    amounts = np.array([[1.0, 0.0, 2.0], [3.0, 2.0, 3.5]])
    found = {"rows": 2, "rmse": 1.0, "mae": 1.0, "r2": 0.75, "coverage": 0.5}
    assert RegressionTarget().metrics_of(amounts, np.array([0.0, 4.0])) == found
