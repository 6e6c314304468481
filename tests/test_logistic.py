"""Our logistic regression is scikit-learn's."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from halfseen.logistic import fit_logistic, likelihoods, logits


def some_rows(classes):
    random = np.random.default_rng(0)
    rows = random.normal(size=(150, 4))
    labels = (rows[:, :classes] + random.normal(size=(150, classes))).argmax(1)
    return rows, labels, random.uniform(0.2, 2.0, 150)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("penalty", [0.01, 1.0])
def test_weighted_rows_give_scikit_learns_optimum(classes, penalty):
    rows, labels, weights = some_rows(classes)
    shares = np.eye(classes)[labels] * weights[:, None]
    ours = fit_logistic(rows, shares, penalty, tolerance=1e-8)
    theirs = LogisticRegression(C=penalty, tol=1e-8).fit(rows, labels, sample_weight=weights)
    np.testing.assert_allclose(ours[:, :-1], theirs.coef_, atol=1e-5)
    probability = np.exp(logits(ours, rows))
    probability /= probability.sum(1, keepdims=True)
    np.testing.assert_allclose(probability, theirs.predict_proba(rows), atol=1e-5)


def test_a_soft_label_is_a_row_of_each_class():
    rows, labels, _ = some_rows(3)
    soft = 0.5 * np.eye(3)[labels] + 0.5 / 3
    repeated = [np.tile(rows, (3, 1)), np.repeat([0, 1, 2], 150)]
    theirs = LogisticRegression(tol=1e-8).fit(*repeated, sample_weight=soft.T.ravel())
    ours = fit_logistic(rows, soft, 1.0, tolerance=1e-8)
    np.testing.assert_allclose(ours[:, :-1], theirs.coef_, atol=1e-5)


def test_likelihoods_are_those_of_rows_held_out():
    rows, labels, _ = some_rows(3)
    found = likelihoods(rows, labels, [0.01, 1.0], folds=3)
    assert found.shape == (2, 3)
    known = LogisticRegression(C=1.0).fit(rows, labels)
    assert found[1].mean() < -log_loss(labels, known.predict_proba(rows))  # which saw them
    assert found[1].mean() > found[0].mean()
