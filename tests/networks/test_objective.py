"""Each loss against a direct transcription in NumPy, and the gradients it sends where."""

import numpy as np
import pytest
import torch

from halfseen import Blocks, preset
from halfseen.networks.divergences import transport_cost
from halfseen.networks.objective import build_objective
from halfseen.networks.terms import Batch
from halfseen.networks.terms.paper import (
    reconstruction_loss,
    refinement_losses,
)
from halfseen.networks.variants import VARIANTS, variant_named
from halfseen.options import make_options
from tiny import NETWORKS

BLOCKS = Blocks.columns(5, [3, 4])
SMALL = NETWORKS | {
    "objective.reconstruction_weight": 0.7,
    "objective.adaptation_weight": 0.3,
}


def objective_for(name="Adaptation-Imputation", **settings):
    torch.manual_seed(0)
    options = make_options({**SMALL, **settings}, preset("paper", inputs="table"))
    return build_objective(BLOCKS, variant_named(name), 3, options).double()


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(1)
    source = torch.randn(6, 5, generator=generator, dtype=torch.float64)
    target = torch.randn(6, 5, generator=generator, dtype=torch.float64)
    return Batch(source, torch.tensor([0, 1, 2, 0, 1, 2]), target)


def as_numpy(tensor):
    return tensor.detach().numpy()


def softmax_cross_entropy(logits, labels):
    shifted = logits - logits.max(1, keepdims=True)
    log_probability = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    return -log_probability[np.arange(len(labels)), labels].mean()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_joint_losses_are_the_papers_equations(batch):
    source, labels, target, _ = batch
    objective = objective_for()
    networks = objective.networks
    losses = objective("joint", batch, strength=0.5)
    z_s1 = networks.encoder(source[:, :3])
    z_s2 = networks.missing_encoder(source[:, 3:])
    z_t1 = networks.encoder(target[:, :3])
    hat_s2, hat_t2 = networks.generator(z_s1), networks.generator(z_t1)
    hat_s, hat_t = torch.cat([z_s1, hat_s2], 1), torch.cat([z_t1, hat_t2], 1)
    d1_s = sigmoid(as_numpy(objective.terms["adaptation"].divergence.critic(hat_s)))
    d1_t = sigmoid(as_numpy(objective.terms["adaptation"].divergence.critic(hat_t)))
    d2_hat = sigmoid(as_numpy(objective.terms["imputation"].divergence.critic(hat_s2)))
    d2_true = sigmoid(as_numpy(objective.terms["imputation"].divergence.critic(z_s2)))
    logits = as_numpy(networks.classifier(hat_s))
    expected = {
        "adaptation": -(np.log(d1_s).mean() + np.log(1 - d1_t).mean()),
        "imputation": -(np.log(d2_hat).mean() + np.log(1 - d2_true).mean()),
        "reconstruction": ((as_numpy(z_s2) - as_numpy(hat_s2)) ** 2).sum(1).mean(),
        "classification": softmax_cross_entropy(logits, labels.numpy()),
    }
    assert {name: loss.item() for name, loss in losses.items()} == pytest.approx(expected)
    total = objective.total("joint", losses).item()
    weights = {"adaptation": 0.3, "imputation": 1, "reconstruction": 0.7, "classification": 1}
    assert total == pytest.approx(sum(weights[name] * value for name, value in expected.items()))


def test_transport_losses_are_the_appendix(batch):
    source, _, target, _ = batch
    objective = objective_for(**{"objective.divergence": "transport"})
    losses = objective("joint", batch, strength=1.0)
    latents = objective.networks.latents(source, target, detach_generator_input=False)
    expected = transport_cost(latents.source, latents.target)
    assert losses["adaptation"].item() == pytest.approx(expected.item())
    expected = transport_cost(latents.imputed_source, latents.missing_source)
    assert losses["imputation"].item() == pytest.approx(expected.item())


@pytest.mark.parametrize("adaptation", ["adversarial", "transport"])
@pytest.mark.parametrize("imputation", ["adversarial", "transport"])
def test_any_combination_of_divergences(adaptation, imputation, batch):
    objective = objective_for(
        **{"objective.divergence": adaptation, "objective.imputation_divergence": imputation}
    )
    losses = objective("joint", batch, strength=1.0)
    objective.total("joint", losses).backward()
    assert objective.networks.encoder.layers[0].weight.grad.abs().sum() > 0
    critics = {"adaptation": adaptation, "imputation": imputation}
    for part, kind in critics.items():
        parameters = list(objective.terms[part].divergence.parameters())
        assert bool(parameters) is (kind == "adversarial")


@pytest.mark.parametrize("method", VARIANTS, ids=lambda method: method.name)
@pytest.mark.parametrize("divergence", ["adversarial", "transport"])
def test_seven_models_have_the_losses_they_should(method, divergence, batch):
    objective = objective_for(method.name, **{"objective.divergence": divergence})
    losses = objective("joint", batch, strength=1.0)
    expected = {"classification"}
    if method.adapts:
        expected |= {"adaptation"}
    if method.imputes:
        expected |= {"imputation", "reconstruction"}
    assert set(losses) == expected
    assert set(objective("warm-up", batch)) == {"classification"}


def test_classifier_latent_chooses_what_the_classifier_is_trained_on(batch):
    values = {
        shown: objective_for(**{"objective.classifier_latent": shown})("joint", batch)
        for shown in ("imputed", "true", "both")
    }
    imputed, true, both = (values[s]["classification"].item() for s in ("imputed", "true", "both"))
    assert both == pytest.approx((imputed + true) / 2)
    objective = objective_for(**{"objective.classifier_latent": "true"})
    objective("joint", batch)["classification"].backward()
    gradients = [p.grad for p in objective.networks.generator.parameters()]
    assert all(g is None for g in gradients), "r gets no gradient from classification"


@pytest.mark.parametrize(("compared", "width"), [("both", 2), ("observed", 1)])
def test_adaptation_latent_chooses_what_the_domains_are_compared_in(compared, width, batch):
    objective = objective_for(**{"objective.adaptation_latent": compared})
    networks, divergence = objective.networks, objective.terms["adaptation"].divergence
    assert divergence.critic[0].in_features * 2 == width * networks.latent_size
    seen = []
    divergence.register_forward_hook(lambda _, latents, __: seen.extend(latents))
    objective("joint", batch)["adaptation"].backward()
    latents = networks.latents(batch.source, batch.target, detach_generator_input=False)
    expected = {
        "both": (latents.source, latents.target),
        "observed": (latents.observed_source, latents.observed_target),
    }
    for found, wanted in zip(seen, expected[compared], strict=True):
        assert torch.equal(found, wanted)
    reached = any(p.grad is not None for p in networks.generator.parameters())
    assert reached is (compared == "both"), "L1 on z1 alone leaves r to L2 and L3"


def test_reconstruction_forms():
    random = np.random.default_rng(0)
    true, imputed = random.normal(size=(4, 3)), random.normal(size=(4, 3))
    squared = reconstruction_loss(torch.tensor(true), torch.tensor(imputed))
    norm = reconstruction_loss(torch.tensor(true), torch.tensor(imputed), "norm")
    assert squared.item() == pytest.approx((np.linalg.norm(true - imputed, axis=1) ** 2).mean())
    assert norm.item() == pytest.approx(np.linalg.norm(true - imputed))
    same = torch.zeros(2, 2, requires_grad=True)
    reconstruction_loss(same, torch.zeros(2, 2), "norm").backward()
    assert torch.isfinite(same.grad).all(), "a perfect reconstruction must not give NaN"


@pytest.mark.parametrize("ramped", [True, False])
def test_the_ramp_scales_what_reaches_the_networks(ramped, batch):
    """At strength 0 the divergences reach no network; the reconstruction only if not ramped."""
    objective = objective_for(**{"objective.ramp_reconstruction": ramped})
    losses = objective("joint", batch, strength=0.0)
    (losses["adaptation"] + losses["imputation"]).backward(retain_graph=True)
    for part in ("encoder", "missing_encoder", "generator"):
        for parameter in getattr(objective.networks, part).parameters():
            assert parameter.grad is None or not parameter.grad.any()
    assert objective.terms["adaptation"].divergence.critic[0].weight.grad.abs().sum() > 0
    objective.zero_grad()
    losses["reconstruction"].backward()
    reached = objective.networks.generator[0].weight.grad.abs().sum() > 0
    assert bool(reached) is not ramped


@pytest.mark.parametrize(("fades", "share"), [(True, 0.25), (False, 1.0)])
def test_a_fading_adaptation_lets_go_of_the_networks_and_not_of_its_critic(fades, share, batch):
    def gradients(progress):
        objective = objective_for(**{"objective.fading_adaptation": fades})
        objective("joint", batch, progress=progress)["adaptation"].backward()
        critic = objective.terms["adaptation"].divergence.critic
        return [next(m.parameters()).grad for m in (objective.networks.encoder, critic)]

    (encoder, critic), (later, its_critic) = gradients(0.0), gradients(0.75)
    assert torch.allclose(later, share * encoder, rtol=1e-4)
    assert encoder.any()
    assert torch.equal(critic, its_critic)


def test_detached_true_latent_leaves_g2_to_the_labels(batch):
    objective = objective_for(**{"objective.detach_true_latent": True})
    losses = objective("joint", batch, strength=1.0)
    (losses["imputation"] + losses["reconstruction"]).backward()
    assert all(p.grad is None for p in objective.networks.missing_encoder.parameters())
    assert objective.networks.generator[0].weight.grad.abs().sum() > 0


def fixed_losses(logits):
    return refinement_losses(logits, threshold=0.95)


def test_refinement_is_the_corrected_equation():
    logits = np.array([[6.0, 0.0, 0.0], [1.0, 0.5, 0.0], [0.0, 0.0, 9.0], [0.2, 0.1, 0.0]])
    probability = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    entropy = -(probability * np.log(probability)).sum(1)
    losses = fixed_losses(torch.tensor(logits))
    confident = probability.max(1) >= 0.95
    assert confident.tolist() == [True, False, True, False]
    assert losses["pseudo_label"].item() == pytest.approx(
        -np.log(probability.max(1)[confident]).mean()
    )
    assert losses["entropy"].item() == pytest.approx(entropy[~confident].mean())


def test_refinement_lowers_entropy():
    logits = torch.tensor([[1.0, 0.5, 0.0], [0.3, 0.2, 0.0]], requires_grad=True)

    def entropy(values):
        p = values.softmax(1)
        return -(p * p.log()).sum(1).mean().item()

    fixed_losses(logits)["entropy"].backward()
    stepped = logits.detach() - 0.1 * logits.grad
    assert entropy(stepped) < entropy(logits.detach())


@pytest.mark.parametrize("value", [20.0, 0.0])
def test_refinement_with_all_or_no_confident_rows_is_finite(value):
    logits = torch.tensor([[value, 0.0], [0.0, value]], requires_grad=True)
    losses = fixed_losses(logits)
    sum(losses.values()).backward()
    assert torch.isfinite(logits.grad).all()


def test_refinement_keeps_the_source_term(batch):
    objective = objective_for(
        **{"refinement.source_weight": 0.25, "refinement.entropy_weight": 0.5}
    )
    losses = objective("refine", batch)
    assert set(losses) == {"classification", "pseudo_label", "entropy"}
    expected = 0.25 * losses["classification"] + losses["pseudo_label"] + 0.5 * losses["entropy"]
    assert objective.total("refine", losses).item() == pytest.approx(expected.item())
