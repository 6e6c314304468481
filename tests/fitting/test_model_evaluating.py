"""How good a model is on labelled rows, and whether that was expected."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from halfseen.errors import InputError
from halfseen.model.evaluation import evaluation
from halfseen.targets import ClassTarget

PRIOR = {"class_prior": [0.5, 0.5]}
TWO = ClassTarget.of(2)


def made_up(rows: int, *, honest: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities, and labels that were drawn by them, or by their opposite."""
    random = np.random.default_rng(0)
    second = random.beta(1.5, 1.5, rows)
    y = (random.random(rows) < (second if honest else 1 - second)).astype(int)
    return np.stack([1 - second, second], axis=1), y


def test_metrics_are_those_of_scikit_learn_with_the_truth_inside():
    probability, y = made_up(400)
    found = evaluation(probability, y, PRIOR, TWO)
    measured = found["metrics"]
    assert measured["cross_entropy"]["value"] == pytest.approx(log_loss(y, probability))
    assert measured["auc"]["value"] == pytest.approx(roc_auc_score(y, probability[:, 1]))
    exact = probability.max(1).mean()  # labels were drawn by these probabilities
    low, high = measured["accuracy"]["interval"]
    assert low < exact < high
    assert 0.05 < high - low < 0.12
    assert measured["calibration_error"]["value"] < 0.12
    low, high = measured["calibration_error"]["interval"]
    assert low < high < 0.2
    assert found["observed"] == pytest.approx([1 - y.mean(), y.mean()])
    assert found["baseline"]["cross_entropy"] == pytest.approx(np.log(2))


@pytest.mark.parametrize(("honest", "says"), [(True, "Better than"), (False, "Worse than")])
def test_a_verdict_beside_the_simplest_prediction(honest, says):
    found = evaluation(*made_up(400, honest=honest), PRIOR, TWO)
    assert found["verdicts"][0].startswith(f"{says} the source's class shares")


def test_few_rows_that_are_half_right_tell_nothing():
    probability = np.tile([[0.6, 0.4], [0.4, 0.6]], (8, 1))
    found = evaluation(probability, np.repeat([0, 1], 8), PRIOR, TWO)
    assert found["verdicts"][0].startswith("Cannot be told from the source's class shares")


def test_what_was_expected_at_fit_is_compared():
    probability, y = made_up(400)
    loss = round(log_loss(y, probability), 4)
    held_out = {"accuracy": 0.97, "auc": None, "cross_entropy": loss}
    metrics = {"held_out_source": {"without_missing_block": held_out}}
    found = evaluation(probability, y, PRIOR | metrics, TWO)
    assert not found["metrics"]["accuracy"]["as_expected"]
    assert found["metrics"]["cross_entropy"]["as_expected"]
    assert "expected" not in found["metrics"]["auc"]
    assert found["verdicts"][1].startswith("Other than the fit let expect: accuracy 0.970 at fit")


def test_one_class_has_no_auc_and_few_rows_are_refused():
    found = evaluation(np.full((20, 2), 0.5), np.zeros(20, dtype=int), PRIOR, TWO)
    assert found["metrics"]["auc"] == {"value": None, "interval": None}
    with pytest.raises(InputError, match="There are 9 labelled rows; at least 10 are needed"):
        evaluation(np.full((9, 2), 0.5), np.zeros(9, dtype=int), PRIOR, TWO)


def test_labelled_target_rows_of_the_fit_are_the_better_expectation():
    probability, y = made_up(400)
    measured = {name: {"value": 0.5} for name in ("accuracy", "auc", "cross_entropy")}
    metrics = {"target_labels": {"measured": {"metrics": measured}}}
    found = evaluation(probability, y, PRIOR | metrics, TWO)["metrics"]
    assert [found[name]["expected"] for name in measured] == [0.5, 0.5, 0.5]


def test_simple_predictions_stand_beside_the_model():
    probability, y = made_up(400)
    sure = np.eye(2)[y] * 0.98 + 0.01
    found = evaluation(probability, y, PRIOR, TWO, others={"an oracle": sure})
    own = found["others"]["these rows' own class shares"]
    assert own["cross_entropy"] <= found["baseline"]["cross_entropy"]
    assert found["others"]["an oracle"]["accuracy"] == 1.0
    assert any(verdict.startswith("Worse than an oracle: ") for verdict in found["verdicts"])
