"""Several seeds as one model: averaged, saved, exported, and told."""

import numpy as np
import pytest

import halfseen
from halfseen import AdaptationImputationClassifier, HalfSeenClassifier, HalfSeenRegressor
from halfseen.errors import OptionError
from halfseen.export.onnx import check_parity, onnx_model
from halfseen.model.summaries import told
from tiny import TINY


def domains(rows=80):
    random = np.random.default_rng(0)
    source, target = random.normal(size=(rows, 3)), random.normal(size=(rows, 3)) + 0.3
    return source, target[:, :2]


def test_each_member_but_regression_has_every_seed(tmp_path):
    source, target = domains()
    settings = {"members": ["networks", "forest", "regression"], "options": TINY}
    model = HalfSeenClassifier(**settings, missing=[2], seeds=2, random_state=5)
    model = model.fit(source, source.sum(1) > 0, X_target=target).model_
    kinds = [member.kind for member in model.members]
    assert (kinds.count("forest"), kinds.count("regression")) == (2, 1)
    assert kinds.count("networks") == 10  # of five folds
    for kind in ("networks", "forest"):
        own = [w for w, k in zip(model.weights.members, kinds, strict=True) if k == kind]
        assert sum(own) == pytest.approx(model.metrics["weights"][kind])
        assert np.ptp(own) == pytest.approx(0)
    assert "trained with 2, which answer together" in " ".join(told(model.metrics))
    model.save(tmp_path / "model")
    shown = model.predict_proba(target)
    np.testing.assert_allclose(halfseen.load(tmp_path / "model").predict_proba(target), shown)
    assert check_parity(model, onnx_model(model)) < 1e-5


IMAGES = np.random.default_rng(0).normal(size=(40, 1, 8, 8)).astype(np.float32)


def of_images(**settings):
    options = {
        **{"images.channels": (4,), "images.pools": 1, "images.padding": "same"},
        **{"training.joint_epochs": 1, "training.warmup_epochs": 0},
    }
    model = AdaptationImputationClassifier(missing="bottom", options=options, **settings)
    return model.fit(IMAGES, np.arange(40) % 2, X_target=IMAGES[:20]).model_


def test_the_first_seed_is_the_model_without_others():
    def members(seeds, first):
        return of_images(random_state=first, seeds=seeds)

    two, alone = members(2, 0), [members(1, seed) for seed in (0, 1)]
    rows = two.prepare(IMAGES)
    mean = np.mean([model.score(rows) for model in alone], axis=0)
    np.testing.assert_allclose(two.score(rows), mean, rtol=1e-5)
    assert not np.allclose(alone[0].score(rows), alone[1].score(rows))


def test_models_of_images_answer_together(tmp_path):
    names = ["Adaptation-IgnoreComponent", "Source-IgnoreComponent", "Adaptation-Imputation"]
    alone = [of_images(random_state=0, model=name) for name in names]
    model = of_images(random_state=0, model=names)
    rows = model.prepare(IMAGES)
    answers = [one.score(rows) for one in alone]
    np.testing.assert_allclose(model.score(rows), np.mean(answers, axis=0), rtol=1e-5)
    assert not np.allclose(answers[0], answers[2])
    assert model.title == " and ".join(names)
    assert model.imputes
    assert check_parity(model, onnx_model(model)) < 1e-5
    model.save(tmp_path / "model")
    shown = halfseen.load(tmp_path / "model").predict_proba(IMAGES)
    np.testing.assert_allclose(shown, model.score(rows))
    doubled = of_images(random_state=0, model=names[:2], seeds=2)
    assert [member.method.name for member in doubled.members] == [
        n for n in names[:2] for _ in "12"
    ]


def test_amounts_have_seeds_too_and_no_seed_is_refused():
    source, target = domains()
    model = HalfSeenRegressor(members=["forest"], missing=[2], seeds=2, effort="quick")
    assert len(model.fit(source, source.sum(1), X_target=target).model_.members) == 2
    with pytest.raises(OptionError, match="seeds=0 must be at least 1"):
        model.set_params(seeds=0).fit(source, source.sum(1), X_target=target)
