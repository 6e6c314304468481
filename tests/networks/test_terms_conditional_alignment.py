"""Conditional alignment against a transcription of its formulas in NumPy."""

import numpy as np
import pytest
import torch
from test_training_loop import OPTIONS, fit, problem, same, weights

from halfseen import OptionError
from halfseen.networks.objective import build_objective
from halfseen.networks.terms import Batch
from halfseen.networks.terms.conditional_alignment import entropy_weights, outer_product
from halfseen.networks.variants import VARIANTS, variant_named
from halfseen.options import make_options

QUIET = {"networks.classifier_dropout": 0.0, "tables.dropout": 0.0}


def objective_with(**settings):
    torch.manual_seed(0)
    options = make_options(
        {"objective.terms": {"conditional_alignment": settings}, **QUIET}, OPTIONS
    )
    method = variant_named("Adaptation-Imputation")
    return build_objective(problem().blocks, method, 2, options).double()


@pytest.fixture
def batch():
    small = problem(rows=6)
    return Batch(small.source.inputs.double(), small.source.labels, small.target.double())


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum(1, keepdims=True)


def test_outer_products_are_those_of_numpy():
    latent, probability = torch.randn(5, 4), torch.rand(5, 3)
    expected = [np.outer(p, z).ravel() for z, p in zip(latent, probability, strict=True)]
    np.testing.assert_allclose(outer_product(latent, probability), expected, rtol=1e-6)


def test_entropy_weights_are_their_formula_and_survive_certainty():
    probability = np.array([[0.7, 0.2, 0.1], [1 / 3] * 3, [1.0, 0.0, 0.0]])
    entropy = [-sum(p * np.log(p) for p in row if p > 0) for row in probability]
    expected = 1 + np.exp(-np.array(entropy))
    found = entropy_weights(torch.tensor(probability))
    np.testing.assert_allclose(found, expected / expected.sum())


@pytest.mark.parametrize("entropy", [True, False])
def test_the_loss_is_that_of_the_paper(batch, entropy):
    objective = objective_with(entropy=entropy)
    loss = objective("joint", batch)["conditional_alignment"].item()
    term, networks = objective.terms["conditional_alignment"], objective.networks
    latents = networks.latents(batch.source, batch.target, detach_generator_input=False)
    expected = 0.0
    for sign, latent in ((1, latents.source), (-1, latents.target)):
        p, z = softmax(networks.classifier(latent).detach().numpy()), latent.detach().numpy()
        seen = np.einsum("ik,id->ikd", p, z).reshape(len(z), -1)
        logit = sign * term.critic(torch.tensor(seen)).detach().numpy()[:, 0]
        weight = 1 + np.exp((p * np.log(p)).sum(1)) if entropy else np.ones(len(z))
        expected -= (weight * np.log(1 / (1 + np.exp(-logit)))).sum() / weight.sum()
    assert loss == pytest.approx(expected)


def test_the_critic_learns_and_the_networks_get_the_reverse_ramped(batch):
    def gradient(strength):
        objective = objective_with()
        objective("joint", batch, strength=strength)["conditional_alignment"].backward()
        critic = objective.terms["conditional_alignment"].critic
        assert all(p.grad is None for p in objective.networks.classifier.parameters())
        return critic[0].weight.grad, objective.networks.encoder.layers[0].weight.grad

    (critic, full), (same_critic, half) = gradient(1.0), gradient(0.5)
    assert torch.allclose(critic, same_critic)
    assert torch.allclose(half, 0.5 * full)
    assert full.abs().sum() > 0


@pytest.mark.parametrize("method", VARIANTS, ids=lambda method: method.name)
def test_every_model_that_adapts_takes_it(method):
    options = make_options({"objective.terms": {"conditional_alignment": {}}}, OPTIONS)
    if not method.adapts:
        with pytest.raises(OptionError, match="does not adapt"):
            fit(options, method.name, refine=False)
        return
    first, history = fit(options, method.name, refine=False)
    second, _ = fit(options, method.name, refine=False)
    plain, _ = fit(OPTIONS, method.name, refine=False)
    assert same(weights(first), weights(second))
    assert not torch.equal(first.networks.classifier[0].weight, plain.networks.classifier[0].weight)
    assert "conditional_alignment" in history[-1]
