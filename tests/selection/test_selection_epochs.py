from __future__ import annotations

import numpy as np
import pytest
import torch

import tiny
from halfseen import AdaptationImputationClassifier, Blocks, InputError, preset
from halfseen.labels import Classes
from halfseen.members import NetworksLearner, Sample, Task
from halfseen.networks.methods import method_named
from halfseen.networks.training import LabelledRows, Rows
from halfseen.options import make_options
from halfseen.selection import choose_epochs_by, make_scorer
from halfseen.selection.epochs import split_held_out
from table_models import LEARNS_FAST

QUICK = LEARNS_FAST | {"training.warmup_epochs": 2, "training.joint_epochs": 2}


def learner(*, options=(), **settings) -> AdaptationImputationClassifier:
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


def test_every_class_keeps_a_row_to_train_on():
    labels = np.array([0] * 50 + [1] * 10 + [2])
    train, held = split_held_out(labels, 0.3, seed=1)
    assert np.array_equal(np.sort(np.concatenate([train, held])), np.arange(61))
    assert np.bincount(labels[held], minlength=3).tolist() == [15, 3, 0]
    assert not np.array_equal(held, split_held_out(labels, 0.3, seed=2)[1])
    with pytest.raises(InputError, match="leaves 1 to measure on"):
        split_held_out(np.array([0, 0, 0, 1]), 0.3)


def test_soft_labels_are_scored_on_the_way_by_their_likeliest_class():
    random = np.random.default_rng(0)
    inputs = random.normal(size=(60, 4)).astype(np.float32)
    hard = (inputs[:, 0] > 0).astype(int)
    learner = NetworksLearner(
        method_named("Adaptation-Imputation"),
        make_options(tiny.TINY | {"training.balanced": False}, preset("default", inputs="table")),
        epoch_choice="source_loss",
    )
    soft = Sample(inputs, 0.8 * np.eye(2)[hard] + 0.1)
    blocks = Blocks.columns(4, [3])
    member = learner.fit(Task(blocks, Classes.of(2), soft, blocks.hide(inputs + 0.3), 0))
    scored = [record["score"] for record in member.history if record["phase"] == "joint"]
    assert len(scored) == 2
    assert np.isfinite(scored).all()


def test_only_scores_that_need_source_rows_hold_any_out():
    rows = LabelledRows(torch.randn(50, 4), torch.arange(50) % 2)
    target = Rows(torch.randn(30, 4))
    for score, left in (("dev", 40), ("source_loss", 40), ("mutual_information", 50), ("last", 50)):
        assert len(choose_epochs_by(score, rows, target)[0]) == left
