"""Soft labels of the complete source: out of fold, with the control beside them."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from halfseen import HalfSeenClassifier
from halfseen.blocks import Blocks
from halfseen.distillation import (
    is_student,
    soft_labels_of,
    soft_labels_of_few,
    student_job,
    taught,
    what_was_taught,
)
from halfseen.errors import InputError, OptionError
from halfseen.fitting import prepared_rows
from halfseen.members import (
    BoostedTreesLearner,
    ForestLearner,
    RegressionLearner,
    Sample,
    TrainingJob,
)
from halfseen.targets import ClassTarget, RegressionTarget

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


def few(given, labelled=60):
    """Return the task of the first rows, and the others with the labels that nobody knows."""
    source = given.source
    rows = np.arange(len(source))
    others = source[rows[labelled:]]
    known = TrainingJob(BLOCKS, given.target_type, source[rows[:labelled]], given.target, 0)
    return known, others.inputs, others.labels


def cost(soft, labels):
    return -np.log(soft[np.arange(len(labels)), labels]).mean()


def test_teachers_of_few_labels_know_complete_rows_and_are_believed():
    known, unlabelled, labels = few(task(noise=0.1))
    found = soft_labels_of_few(known, unlabelled)
    assert cost(found.beyond, labels) < cost(found.beyond_control, labels) - 0.2
    assert found.lead > 2.0
    assert found.believed > 0.9


def test_teachers_that_have_no_lead_are_believed_less():
    known, unlabelled, labels = few(task(noise=0.1))
    swapped = np.random.default_rng(2).permutation(len(known.source) + len(unlabelled))
    x2 = np.concatenate([known.source.inputs, unlabelled])[swapped, 1]  # tells nothing of its row
    known.source.inputs[:, 1], unlabelled[:, 1] = x2[:60], x2[60:]
    found = soft_labels_of_few(known, unlabelled)
    assert found.lead < 1.0
    assert found.believed < 0.9
    assert cost(found.beyond, labels) < cost(found.beyond_control, labels) + 0.1


def test_two_rows_of_a_class_are_enough():
    given = task(noise=0.1)
    order = np.argsort(given.source.labels, kind="stable")
    many, some = order[given.source.labels[order] == 0], order[given.source.labels[order] == 1]
    rows = np.concatenate([many[:40], some[:2], many[40:], some[2:]])
    known, unlabelled, labels = few(
        TrainingJob(BLOCKS, ClassTarget.of(2), given.source[rows], given.target, 0), 42
    )
    found = soft_labels_of_few(known, unlabelled)
    assert np.isfinite(found.beyond).all()
    assert found.beyond[labels == 1, 1].mean() > found.beyond[labels == 0, 1].mean()


def test_where_every_row_has_a_label_students_are_all_of_the_answer():
    (found,) = soft_labels_of([task(noise=0.3)])
    assert found.believed == 1.0


@pytest.mark.parametrize("teacher", [GaussianNB(), Ridge()])
def test_teachers_of_scikit_learn_join(teacher):
    given = task(noise=0.1)
    if isinstance(teacher, Ridge):
        amounts = Sample(given.source.inputs, given.source.inputs[:, 1].astype(np.float64))
        given = TrainingJob(BLOCKS, RegressionTarget(), amounts, given.target, 0)
    known, unlabelled, labels = few(given)
    without, beside = (soft_labels_of_few(known, unlabelled, teachers=t) for t in ([], [teacher]))
    if isinstance(teacher, Ridge):
        assert np.square(beside.beyond[:, 0] - labels).mean() < 0.05
    assert not np.array_equal(without.beyond, beside.beyond)
    assert beside.lead > 2.0


def test_a_teacher_without_probabilities_is_refused():
    known, unlabelled, _ = few(task(noise=0.1))
    with pytest.raises(OptionError, match="LinearSVC has no predict_proba"):
        soft_labels_of_few(known, unlabelled, teachers=[LinearSVC()])


def test_students_learn_from_all_rows_and_their_weights():
    known, unlabelled, _ = few(task(noise=0.1))
    weighed = Sample(known.source.inputs, known.source.labels, np.full(60, 3.0))
    found = soft_labels_of_few(known, unlabelled)
    known = TrainingJob(BLOCKS, known.target_type, weighed, known.target, 0)
    student = student_job(known, unlabelled, found.complete, found.beyond).source
    assert len(student) == 600
    assert np.array_equal(student.labels[60:], found.beyond)
    assert (student.weights == 3.0).all()


def test_one_row_of_a_class_is_refused():
    known, unlabelled, _ = few(task(noise=0.1))
    known.source.labels[:] = 0
    known.source.labels[0] = 1
    with pytest.raises(InputError, match="a single labelled row"):
        soft_labels_of_few(known, unlabelled)


def test_without_a_missing_block_teachers_are_those_on_x1():
    known, unlabelled, _ = few(task(noise=0.1))
    whole = TrainingJob(Blocks((2,), ()), known.target_type, known.source, known.target, 0)
    found = soft_labels_of_few(whole, unlabelled)
    assert found.lead == 0.0
    assert np.array_equal(found.beyond, found.beyond_control)
