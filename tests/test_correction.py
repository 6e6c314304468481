"""Class proportions on the target: corrected for on request, and never against the checks."""

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


def cross_entropy(probability, labels, classes):
    position = np.searchsorted(classes, labels)
    return -np.log(probability[np.arange(len(labels)), position]).mean()


@pytest.fixture(scope="module")
def balanced():
    return fitted(balanced=True)


def test_nothing_is_corrected_unless_asked_for(balanced):
    model, target = balanced
    np.testing.assert_array_equal(
        model.predict_proba(target), model.predict_proba(target, target_prior=None)
    )


def test_a_trusted_estimate_corrects_and_lowers_cross_entropy(balanced):
    model, target = balanced
    found = model.estimate_target_prior(*rows(1500, 0.4, 2), target)
    assert found.trustworthy
    assert found.prior[1] == pytest.approx(0.1, abs=0.03)
    inputs, labels = rows(3000, 0.1, 3)
    plain, corrected = (model.predict_proba(inputs, target_prior=p) for p in (None, found))
    loss = [cross_entropy(p, labels, model.classes_) for p in (plain, corrected)]
    assert loss[1] < loss[0] - 0.05
    assert corrected[:, 1].mean() == pytest.approx(0.1, abs=0.03)


def test_an_estimate_whose_check_fails_is_refused_with_its_sentence(balanced):
    model, _ = balanced
    moved = rows(1500, 0.1, 1, moved=-1.5)[0]
    found = model.estimate_target_prior(*rows(1500, 0.4, 2), moved)
    with pytest.raises(InputError, match="Do not use the estimated class proportions"):
        model.predict_proba(moved, target_prior=found)


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
        model.estimate_target_prior(inputs, ["perhaps", *labels[1:]], target)
    with pytest.raises(InputError, match="50 rows"):
        model.estimate_target_prior(inputs, labels[:-1], target)


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
