"""Known class proportions of the target: corrected for on request alone."""

import numpy as np
import pytest
from torch import nn

import halfseen
from halfseen.errors import InputError
from tiny import classifier

QUICK = {
    "training.warmup_epochs": 3,
    "training.joint_epochs": 10,
    "training.learning_rate": 1e-2,
}


def rows(count, rate, seed, moved=0.0):
    """Two Gaussian classes, of which `rate` are "yes"; the third column is missing later."""
    random = np.random.default_rng(seed)
    positive = random.random(count) < rate
    inputs = random.normal(size=(count, 3)) + 1.5 * positive[:, None] + moved
    return inputs, np.where(positive, "yes", "no")


def fitted(*, balanced):
    source, labels = rows(1500, 0.4, 0)
    target = rows(1500, 0.1, 1)[0]
    target[:, 2] = np.nan
    options = QUICK | {"training.balanced": balanced}
    model = classifier(model="Source-IgnoreComponent", options=options)
    return model.fit(source, labels, X_target=target), target


@pytest.fixture(scope="module")
def balanced():
    return fitted(balanced=True)


def test_nothing_is_corrected_unless_asked_for(balanced):
    model, target = balanced
    np.testing.assert_array_equal(
        model.predict_proba(target), model.predict_proba(target, target_prior=None)
    )


def assert_bayes_rule(model, target, prior):
    np.testing.assert_allclose(model.class_prior_, prior)
    weighted = model.predict_proba(target) * np.array([0.9, 0.1]) / prior
    expected = weighted / weighted.sum(axis=1, keepdims=True)
    found = model.predict_proba(target, target_prior=[0.9, 0.1])
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("balance", [True, False])
def test_known_proportions_are_bayes_rule_from_those_of_the_source(balance, request):
    model, target = request.getfixturevalue("balanced") if balance else fitted(balanced=False)
    labels = rows(1500, 0.4, 0)[1]
    assert_bayes_rule(model, target, np.array([(labels == "no").mean(), (labels == "yes").mean()]))


@pytest.mark.parametrize("balance", [True, False])
def test_balanced_images_speak_of_equal_proportions(balance):
    random = np.random.default_rng(0)
    labels = (np.arange(40) % 4 == 0).astype(int)
    images = random.normal(size=(40, 1, 8, 8)) + labels[:, None, None, None]
    model = classifier(
        image=True,
        missing="bottom",
        model="Source-IgnoreComponent",
        encoder=lambda shape: nn.Sequential(nn.Flatten(), nn.LazyLinear(4)),
        options={"training.balanced": balance},
    ).fit(images, labels, X_target=images[:30])
    assert_bayes_rule(model, images, np.array([0.5, 0.5] if balance else [0.75, 0.25]))


def test_proportions_and_labels_that_cannot_be_are_refused(balanced):
    model, target = balanced
    with pytest.raises(InputError, match="2 proportions"):
        model.predict_proba(target, target_prior=[0.5, 0.5, 0.1])
    inputs, labels = rows(50, 0.4, 2)
    with pytest.raises(InputError, match="'perhaps'"):
        model.model_.evaluate(inputs, ["perhaps", *labels[1:]])
    with pytest.raises(InputError, match="50 rows"):
        model.model_.evaluate(inputs, labels[:-1])


def test_a_saved_model_keeps_the_proportions_it_speaks_of(balanced, tmp_path):
    model, target = balanced
    model.save(tmp_path / "model")
    loaded = halfseen.load(tmp_path / "model")
    np.testing.assert_array_equal(
        loaded.predict_proba(target, target_prior=[0.9, 0.1]),
        model.predict_proba(target, target_prior=[0.9, 0.1]),
    )
    del loaded.metrics["class_prior"]  # as in a model that was put together by hand
    with pytest.raises(InputError, match="saved without the class proportions"):
        loaded.predict_proba(target, target_prior=[0.9, 0.1])
