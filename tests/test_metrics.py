"""Each formula beside scikit-learn's."""

import numpy as np
import pytest
from sklearn import metrics as oracle

from halfseen.metrics import accuracy, auc, balanced_accuracy, metrics_of, row_losses

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
