import numpy as np
import pytest
import torch
from torch import nn

from halfseen import Blocks, preset
from halfseen.networks.modules import build_networks
from halfseen.networks.variants import VARIANTS, variant_named
from halfseen.options import make_options
from tiny import NETWORKS

BLOCKS = Blocks.columns(5, [3, 4])
SMALL = make_options(NETWORKS, preset("paper", inputs="table"))


class Recorder(nn.Module):
    """Keeps what reaches it, and passes on a linear image of it."""

    def __init__(self, shape):
        super().__init__()
        self.linear = nn.Linear(shape[0], 3)
        self.seen = []

    def forward(self, x):
        self.seen.append(x.detach().clone())
        return self.linear(x)


@pytest.fixture
def domains():
    generator = torch.Generator().manual_seed(0)
    source = torch.randn(6, 5, generator=generator)
    target = torch.randn(6, 5, generator=generator)
    return source, target


@pytest.mark.parametrize("method", VARIANTS, ids=lambda method: method.name)
def test_each_model_feeds_what_its_name_says(method, domains):
    source, target = domains
    networks = build_networks(BLOCKS, method, 2, SMALL, Recorder)
    networks.encoder.seen.clear()
    networks.latents(source, target, detach_generator_input=False)
    shown_source, shown_target = networks.encoder.seen
    zeroed = target.clone()
    zeroed[:, 3:] = 0.0
    expected = {
        "Full": (source, target),
        "ZeroImputation": (source, zeroed),
        "IgnoreComponent": (source[:, :3], target[:, :3]),
        "Imputation": (source[:, :3], target[:, :3]),
    }[method.name.split("-")[1]]
    assert torch.equal(shown_source, expected[0])
    assert torch.equal(shown_target, expected[1])
    if method.imputes:
        networks.missing_encoder.seen.clear()
        networks.latents(source, target, detach_generator_input=False)
        assert len(networks.missing_encoder.seen) == 1, "g2 sees the source alone"
        assert torch.equal(networks.missing_encoder.seen[0], source[:, 3:])


def test_latents_follow_the_papers_definitions(domains):
    source, target = domains  # which pass together: equal but for rounding
    networks = build_networks(BLOCKS, variant_named("Adaptation-Imputation"), 2, SMALL)
    latents = networks.latents(source, target, detach_generator_input=False)
    observed = networks.encoder(source[:, :3])
    assert torch.allclose(latents.observed_source, observed)
    assert torch.allclose(latents.missing_source, networks.missing_encoder(source[:, 3:]))
    assert torch.allclose(latents.imputed_source, networks.generator(observed))
    assert torch.allclose(latents.target, networks.target_latent(target))
    assert torch.allclose(networks(target), networks.classifier(latents.target))
    assert latents.source.shape == latents.complete_source.shape == (6, networks.latent_size)


def test_prediction_never_looks_at_the_targets_missing_block(domains):
    _, target = domains
    changed = target.clone()
    changed[:, 3:] = 99.0
    for name in ("Adaptation-Imputation", "Adaptation-IgnoreComponent", "Source-ZeroImputation"):
        networks = build_networks(BLOCKS, variant_named(name), 2, SMALL).eval()
        assert torch.equal(networks(target), networks(changed))


def test_detached_generator_input_keeps_the_gradient_from_the_encoder(domains):
    source, target = domains
    networks = build_networks(BLOCKS, variant_named("Adaptation-Imputation"), 2, SMALL)
    for detach in (True, False):
        networks.zero_grad()
        latents = networks.latents(source, target, detach_generator_input=detach)
        latents.imputed_source.sum().backward()
        reached = any(
            parameter.grad is not None and parameter.grad.abs().sum() > 0
            for parameter in networks.encoder.parameters()
        )
        assert reached is not detach


def test_target_statistics_replace_the_running_ones():
    options = make_options({"networks.normalization": "batch"}, SMALL)
    networks = build_networks(BLOCKS, variant_named("Adaptation-Imputation"), 2, options)
    target = torch.randn(64, 5) * 3 + 2
    networks.train()
    networks.estimate_statistics([target])
    assert networks.training
    first = networks.encoder.layers[1]
    hidden = networks.encoder.layers[0](target[:, :3])
    assert torch.allclose(first.running_mean, hidden.mean(0), atol=1e-5)
    assert torch.allclose(first.running_var, hidden.var(0), rtol=1e-4)
    untouched = networks.missing_encoder.layers[1]
    assert torch.equal(untouched.running_mean, torch.zeros_like(untouched.running_mean))


def test_standardized_images_have_no_brightness_and_no_contrast():
    blocks = Blocks.pixels((2, 8, 8), np.arange(64).reshape(8, 8) % 3 == 0)
    small = {"images.channels": (4,), "images.kernel_size": 3, "images.pools": 1}
    options = make_options({**small, "images.standardize": True}, preset("paper"))
    images = torch.rand(6, 2, 8, 8) * 2 - 1
    other_light = 5 * images + 3
    for name in ("Adaptation-Imputation", "Adaptation-IgnoreComponent"):
        networks = build_networks(blocks, variant_named(name), 2, options).eval()
        evened = networks._evened(images)
        measured = blocks.flat(evened, "observed")
        assert torch.allclose(measured.mean(1), torch.zeros(6), atol=1e-5)
        assert torch.allclose(measured.std(1), torch.ones(6), atol=0.05)
        assert torch.allclose(networks(images), networks(other_light), atol=0.02)
        assert torch.allclose(networks(images), networks(blocks.hide(images)), atol=1e-6)
        usual = make_options({"images.standardize": False}, options)
        plain = build_networks(blocks, variant_named(name), 2, usual).eval()
        plain.load_state_dict(networks.state_dict())
        assert torch.equal(plain(evened), networks(images))
