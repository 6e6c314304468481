"""The blend of networks and logistic regression: never worse than the better of the two."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression

from halfseen.errors import OptionError
from halfseen.members.linear import fit_regression
from halfseen.metrics import row_losses
from halfseen.model.measuring import HeldOut
from halfseen.networks import nets
from halfseen.options import preset
from halfseen.weights.blending import Blend, fit_blend, fit_scale, install
from table_models import table_model


def problem(rows: int, classes: int = 3, seed: int = 0):
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, 4))
    logits = x @ random.normal(size=(4, classes))
    y = np.array([random.choice(classes, p=p) for p in softmax(logits, axis=1)])
    return x, logits, y


@pytest.mark.parametrize("classes", [2, 3])
def test_regression_is_scikit_learns(classes):
    x, _, y = problem(400, classes)
    ours = softmax(fit_regression(x, y, classes).logits(x), axis=1)
    candidates = [LogisticRegression(C=c).fit(x, y).predict_proba(x) for c in (0.1, 1.0, 10.0)]
    assert min(np.abs(ours - theirs).max() for theirs in candidates) < 1e-6


def test_a_class_without_rows_is_unlikely_and_one_class_alone_is_sure():
    x, _, y = problem(60, 2)
    three = softmax(fit_regression(x, y, 3).logits(x), axis=1)
    assert 0 < three[:, 2].max() < 0.05
    alone = softmax(fit_regression(x, np.ones(60, dtype=int), 2).logits(x), axis=1)
    assert alone[:, 1].min() > 0.98


def test_an_overconfident_network_is_cooled_and_a_blind_regression_ignored():
    _, logits, y = problem(3000)
    noise = np.random.default_rng(1).normal(size=logits.shape)
    blend = fit_blend(5 * logits, noise, y)
    assert blend.network == pytest.approx(0.2, abs=0.02)
    assert blend.regression < 0.1
    assert fit_scale(5 * logits, y) == pytest.approx(0.2, abs=0.02)


def test_weights_are_never_negative():
    _, logits, y = problem(500)
    assert fit_blend(-logits, logits, y).network == 0.0
    assert fit_scale(-logits, y) == 0.0


def test_the_blend_is_at_least_as_likely_as_either_on_fresh_rows():
    _, logits, y = problem(4000)
    random = np.random.default_rng(2)
    network = 3 * (logits + random.normal(0, 1.5, logits.shape))
    regression = 0.5 * (logits + random.normal(0, 1.5, logits.shape))
    blend = fit_blend(network[:2000], regression[:2000], y[:2000])
    fresh = slice(2000, None)
    loss = row_losses(np.exp(blend.logits(network[fresh], regression[fresh])), y[fresh]).mean()
    for alone in (network, regression):
        assert loss < row_losses(softmax(alone[fresh], axis=1), y[fresh]).mean()


def test_measuring_fits_the_blend_on_other_rows_than_it_measures():
    # Pure noise: a blend fitted on the rows it is measured on would look better than chance.
    random = np.random.default_rng(0)
    y = random.integers(0, 2, 40)
    noise, other = random.normal(size=(2, 40, 2))
    held_out = HeldOut(y, log_softmax(noise, axis=1), None, other)
    own = held_out.blend().logits(held_out.hidden, other)
    assert row_losses(held_out.blended(), y).mean() > row_losses(np.exp(own), y).mean()


def test_what_is_installed_is_what_the_networks_answer():
    model = table_model(shortcut=True, standardize=False)
    networks, blocks = model.networks, model.blocks
    rows = torch.randn(50, blocks.length)
    observed = rows[:, list(blocks.observed)].double().numpy()
    networks.shortcut.weight.zero_(), networks.shortcut.bias.zero_()
    networks.shortcut.scale.fill_(1.0), networks.shortcut.complete_scale.fill_(1.0)
    plain = np.log(nets.probabilities(networks, rows).double().numpy())
    complete = np.log(nets.complete_probabilities(networks, rows).double().numpy())
    regression = fit_regression(observed, (observed[:, 0] > 0).astype(int), 2)
    install(networks, regression, Blend(0.4, 0.7), 0.5)
    expected = 0.4 * plain + 0.7 * regression.logits(observed)
    got = nets.probabilities(networks, rows).numpy()
    np.testing.assert_allclose(got, softmax(expected, axis=1), atol=1e-5)
    got = nets.complete_probabilities(networks, rows).numpy()
    np.testing.assert_allclose(got, softmax(0.5 * complete, axis=1), atol=1e-5)


def test_images_have_no_shortcut():
    from halfseen.blocks import Blocks
    from halfseen.networks.methods import method_named

    options = preset("default").model_copy(update={"shortcut": True})
    with pytest.raises(OptionError, match="for tables"):
        nets.build_networks(
            Blocks((1, 32, 32), tuple(range(16, 32))),
            method_named("Adaptation-Imputation"),
            10,
            options,
        )
