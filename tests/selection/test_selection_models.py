from __future__ import annotations

import numpy as np
import pytest

import tiny
from halfseen import HalfSeenClassifier
from halfseen.selection import make_scorer
from table_models import LEARNS_FAST

QUICK = LEARNS_FAST | {"training.warmup_epochs": 2, "training.joint_epochs": 2}


def learner(*, options=(), **settings) -> HalfSeenClassifier:
    """Return an estimator that learns something within a few epochs."""
    return tiny.classifier(options=QUICK | dict(options), **settings)


def domains(rows: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    source = random.normal(size=(rows, 4))
    target = random.normal(size=(rows, 4)) + 0.3
    target[:, 3] = np.nan
    return source, np.where(source[:, 0] + source[:, 3] > 0, "yes", "no"), target


def test_a_model_that_learned_scores_better_than_one_that_did_not():
    X, y, target = domains()
    models = {
        "idle": learner(
            model="Adaptation-IgnoreComponent", options={"training.learning_rate": 1e-9}
        ),
        "imputing": learner(options={"training.joint_epochs": 8}),
    }
    for model in models.values():
        model.fit(X[:120], y[:120], X_target=target)
    for score in ("dev", "importance_weighted", "source_loss", "mutual_information"):
        scorer = make_scorer(score, X_target=target)
        values = {name: scorer(model, X[120:], y[120:]) for name, model in models.items()}
        assert values["imputing"] > values["idle"], score


def test_members_are_scored_by_the_answer_that_they_give_together():
    X, y, target = domains()
    model = learner(members=["networks", "regression"]).fit(X[:120], y[:120], X_target=target)
    found = -make_scorer("source_loss", X_target=target)(model, X[120:], y[120:])
    given = model.predict_proba(X[120:])[np.arange(80), (y[120:] == "yes").astype(int)]
    assert found == pytest.approx(-np.log(given).mean(), rel=1e-6)
