"""Soft labels of the complete source: out of fold, with the control beside them."""

import numpy as np
import pytest

from halfseen import HalfSeenClassifier
from halfseen.blocks import Blocks
from halfseen.distillation import is_student, soft_labels_of, taught, what_was_taught
from halfseen.fitting import prepared_rows
from halfseen.members import (
    BoostedTreesLearner,
    ForestLearner,
    RegressionLearner,
    Sample,
    TrainingJob,
)
from halfseen.targets import ClassTarget

BLOCKS = Blocks((2,), (1,))


def task(noise, rows=600):
    """Return rows whose label is x2 with some noise, and x1 a hint of x2."""
    random = np.random.default_rng(0)
    x2 = random.normal(size=rows)
    x1 = x2 + random.normal(size=rows)
    labels = (x2 + noise * random.normal(size=rows) > 0).astype(np.int64)
    return TrainingJob(
        BLOCKS, ClassTarget.of(2), Sample(np.stack([x1, x2], 1).astype(np.float32), labels), x1, 0
    )


def test_teachers_of_the_complete_source_know_more_than_the_control():
    given = task(noise=0.3)
    (found,) = soft_labels_of([given])
    rows = np.arange(len(given.source))
    complete, control = (
        -np.log(soft[rows, given.source.labels]).mean() for soft in (found.complete, found.control)
    )
    assert complete < control - 0.1
    assert np.allclose(found.complete.sum(1), 1.0)


def test_soft_labels_are_out_of_fold():
    random = np.random.default_rng(1)
    inputs = random.normal(size=(300, 2)).astype(np.float32)
    labels = random.integers(0, 2, 300)  # nothing to learn: in-fold trees would know them
    given = TrainingJob(BLOCKS, ClassTarget.of(2), Sample(inputs, labels), inputs, 0)
    (found,) = soft_labels_of([given])
    assert abs((found.complete.argmax(1) == labels).mean() - 0.5) < 0.1


def test_a_class_too_rare_for_folds_and_soft_labels_teach_nothing():
    given = task(noise=0.3)
    labels = np.zeros(len(given.source), dtype=np.int64)
    labels[0] = 1
    rare = TrainingJob(
        BLOCKS, ClassTarget.of(2), Sample(given.source.inputs, labels), given.target, 0
    )
    assert soft_labels_of([rare]) == [None]
    soft = taught(given.source, np.full((len(labels), 2), 0.5), ClassTarget.of(2))
    again = TrainingJob(BLOCKS, ClassTarget.of(2), soft, given.target, 0)
    assert soft_labels_of([again]) == [None]


def test_students_are_trees():
    chosen = (BoostedTreesLearner(), ForestLearner(), RegressionLearner())
    assert [is_student(learner) for learner in chosen] == [True, True, False]


def test_what_was_taught_is_the_difference_of_log_likelihoods():
    given = task(noise=0.3)
    member = BoostedTreesLearner(rounds=20, rate=0.2).fit(given)
    none = what_was_taught(member, member, given.source, given)
    assert np.array_equal(none, np.zeros(len(given.source)))


@pytest.mark.parametrize("x2_is_the_label", [False, True])
def test_a_fit_says_what_the_extra_columns_brought(x2_is_the_label, monkeypatch):
    monkeypatch.setattr(prepared_rows, "SMALL", 0)  # one part held out instead of five folds
    source = task(noise=0.0).source
    inputs = source.inputs.copy()
    if x2_is_the_label:  # a perfect teacher
        inputs[:, 1] = source.labels
    model = HalfSeenClassifier(
        missing=[1], members=["boosted_trees", "regression"], random_state=0
    ).fit(inputs, source.labels, X_target=inputs + np.array([0.1, np.nan]))
    told = model.model_.metrics["teaching"]
    assert told["rows"] == 120
    assert abs(told["gain"]) < 0.2
    assert 0 < told["standard_error"] < 0.1
