"""Tables that are hard on an ensemble: each ends in a model that answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import tiny
from halfseen import HalfSeenClassifier, InputError

RANDOM = np.random.default_rng(0)


def table(rows: int, columns: int, classes: int = 2, spread: float = 1.0) -> tuple:
    labels = np.arange(rows) % classes
    values = RANDOM.normal(size=(rows, columns)) + spread * labels[:, None] / classes
    names = [f"c{k}" for k in range(columns)]
    return pd.DataFrame(values, columns=names), labels


def plain(rows=120, columns=6, classes=2):
    source, labels = table(rows, columns, classes)
    target, _ = table(90, columns, classes)
    return source, labels, target.drop(columns=["c0"])


def unseen_categories():
    source, labels, target = plain()
    source["kind"] = RANDOM.choice(["a", "b"], len(source))
    target["kind"] = RANDOM.choice(["b", "c", "d"], len(target))
    return source, labels, target


def constant_columns():
    source, labels, target = plain()
    return source.assign(same=3.0), labels, target.assign(same=3.0)


def one_in_a_hundred():
    source, labels, target = plain(rows=600)
    labels = (np.arange(600) % 100 == 0).astype(int)
    return source, labels, target


def a_perfect_teacher():
    source, labels, target = plain()
    return source.assign(c0=labels.astype(float)), labels, target


CASES = {
    "unseen categories": unseen_categories,
    "constant columns": constant_columns,
    "30 rows": lambda: plain(rows=30),
    "400 columns": lambda: plain(rows=60, columns=400),
    "12 classes": lambda: plain(rows=240, classes=12),
    "one in a hundred": one_in_a_hundred,
    "a perfect teacher": a_perfect_teacher,
}


@pytest.mark.parametrize("case", CASES)
def test_a_hard_table_ends_in_a_model(case, small_budget):
    source, labels, target = CASES[case]()
    model = HalfSeenClassifier(random_state=0, options=tiny.TINY)
    found = model.fit(source, labels, X_target=target).predict_proba(target)
    assert found.shape == (len(target), len(np.unique(labels)))
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-6)
    assert (found > 0).all()


def test_what_a_perfect_teacher_knows_does_not_make_its_students_sure(small_budget):
    """x2 holds the label and x1 says nothing: the answer stays near the class shares."""
    random = np.random.default_rng(1)
    labels = random.integers(0, 2, 300)
    source = pd.DataFrame(random.normal(size=(300, 4)), columns=list("abcd")).assign(d=labels * 1.0)
    target = pd.DataFrame(random.normal(size=(200, 3)), columns=list("abc"))
    members = ["boosted_trees", "forest", "regression"]
    model = HalfSeenClassifier(random_state=0, members=members)
    found = model.fit(source, labels, X_target=target).predict_proba(target)
    assert np.abs(found[:, 1] - 0.5).mean() < 0.2


@pytest.mark.parametrize(("positives", "told"), [(0, "hold one class, 0"), (1, "has one row")])
def test_classes_too_rare_to_learn_end_in_a_sentence(positives, told):
    source, labels, target = plain()
    rare = (np.arange(len(labels)) < positives).astype(int)
    with pytest.raises(InputError, match=told):
        HalfSeenClassifier().fit(source, rare, X_target=target)
