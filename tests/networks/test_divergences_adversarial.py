import copy

import numpy as np
import pytest
import torch
from torch import nn

from halfseen import OptionError
from halfseen.networks.divergences import (
    AdversarialDivergence,
    critic_loss,
    make_divergence,
    register,
    scale_gradient,
)
from halfseen.presets import preset


def test_critic_loss_is_the_direct_transcription():
    random = np.random.default_rng(0)
    first, second = random.normal(size=7), random.normal(size=5)
    probability = lambda logit: 1 / (1 + np.exp(-logit))  # noqa: E731
    expected = -np.log(probability(first)).mean() - np.log(1 - probability(second)).mean()
    actual = critic_loss(torch.tensor(first), torch.tensor(second))
    assert actual.item() == pytest.approx(expected, rel=1e-12)


def test_reversal_equals_two_explicit_optimisers():
    """One backward pass with reversal against a max step of D and a min step of g."""
    torch.manual_seed(0)
    encoder = nn.Linear(3, 4).double()
    divergence = AdversarialDivergence(4, widths=(5,), normalize="none").double()
    source, target = torch.randn(8, 3).double(), torch.randn(8, 3).double()
    strength, rate = 0.3, 0.1
    twin_encoder, twin_critic = copy.deepcopy(encoder), copy.deepcopy(divergence.critic)

    parameters = [*encoder.parameters(), *divergence.parameters()]
    together = torch.optim.SGD(parameters, lr=rate)
    for _ in range(3):
        loss = divergence(
            scale_gradient(encoder(source), strength), scale_gradient(encoder(target), strength)
        )
        together.zero_grad()
        loss.backward()
        together.step()

    for _ in range(3):
        value = critic_loss(twin_critic(twin_encoder(source)), twin_critic(twin_encoder(target)))
        of_critic = torch.autograd.grad(value, list(twin_critic.parameters()), retain_graph=True)
        of_encoder = torch.autograd.grad(value, list(twin_encoder.parameters()))
        with torch.no_grad():
            for parameter, gradient in zip(twin_critic.parameters(), of_critic, strict=True):
                parameter -= rate * gradient  # the critic lowers its loss
            for parameter, gradient in zip(twin_encoder.parameters(), of_encoder, strict=True):
                parameter += rate * strength * gradient  # the encoder raises it
    for mine, other in zip(encoder.parameters(), twin_encoder.parameters(), strict=True):
        assert torch.allclose(mine, other, atol=1e-14)
    for mine, other in zip(divergence.critic.parameters(), twin_critic.parameters(), strict=True):
        assert torch.allclose(mine, other, atol=1e-14)


def test_strength_leaves_the_critic_and_the_value_alone():
    torch.manual_seed(0)
    divergence = AdversarialDivergence(4, widths=(5,), normalize="none")
    latents = torch.randn(8, 4), torch.randn(8, 4)
    values, gradients = [], []
    for strength in (0.0, 1.0):
        divergence.zero_grad()
        value = divergence(*(scale_gradient(latent, strength) for latent in latents))
        value.backward()
        values.append(value.item())
        gradients.append([p.grad.clone() for p in divergence.parameters()])
    assert values[0] == values[1]
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


@pytest.mark.parametrize(("normalize", "sees"), [("none", True), ("batch", False)])
def test_what_a_critic_sees_of_a_shifted_mean(normalize, sees):
    """Batch statistics of each batch apart, as the authors coded it, blind a critic to means."""
    torch.manual_seed(0)
    divergence = AdversarialDivergence(2, widths=(16,), normalize=normalize)
    optimizer = torch.optim.Adam(divergence.parameters(), lr=0.01)
    losses = []
    for _ in range(200):
        loss = divergence(torch.randn(64, 2) + 3, torch.randn(64, 2) - 3)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    final = np.mean(losses[-20:])
    assert final < 0.2 if sees else final > 1.2  # 2 log 2 = 1.386 is no idea at all


def test_a_third_divergence_is_one_registration():
    class MeanDistance(nn.Module):
        def forward(self, first, second):
            return (first.mean(0) - second.mean(0)).square().sum()

    register("mean-distance", lambda latent_size, options: MeanDistance())
    module = make_divergence("mean-distance", 4, preset())
    assert module(torch.zeros(3, 4), torch.ones(5, 4)).item() == 4.0
    with pytest.raises(OptionError, match="divergence='cosine' is unknown"):
        make_divergence("cosine", 4, preset())
