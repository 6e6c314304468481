"""Adaptation-Imputation as one writes it down first: what `speed.py` compares the library with.

Plain PyTorch, nothing clever and nothing silly: a Dataset with one row per item, DataLoader, every
image as a whole canvas with the hidden rows at zero, PyTorch's default memory layout, one Adam per
network, POT's exact solver. The step's mathematics is that of ``preset("reference")``;
`tests/test_benchmarks.py` checks that both give the same losses and gradients.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import ot
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler


class RowDataset(Dataset):
    """One row at a time, with its label where there is one."""

    def __init__(self, inputs: Tensor, labels: Tensor | None = None) -> None:
        self.inputs = inputs
        self.labels = labels

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> Tensor | tuple[Tensor, Tensor]:
        if self.labels is None:
            return self.inputs[index]
        return self.inputs[index], self.labels[index]


def source_loader(inputs: Tensor, labels: Tensor, batch_size: int, *, balanced: bool) -> DataLoader:
    """Shuffled labelled batches, classes drawn equally often when `balanced`."""
    dataset = RowDataset(inputs, labels)
    if not balanced:
        return DataLoader(dataset, batch_size, shuffle=True, drop_last=True)
    counts = torch.bincount(labels)
    sampler = WeightedRandomSampler(1.0 / counts[labels], int(counts.max()) * len(counts))
    return DataLoader(dataset, batch_size, sampler=sampler, drop_last=True)


def target_loader(inputs: Tensor, batch_size: int) -> DataLoader:
    return DataLoader(RowDataset(inputs), batch_size, shuffle=True, drop_last=True)


def pairs(source: DataLoader, target: DataLoader) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """One epoch of the source, beside target batches that start again when they run out."""
    stream = iter(target)
    for x_source, y in source:
        try:
            x_target = next(stream)
        except StopIteration:
            stream = iter(target)
            x_target = next(stream)
        yield x_source, y, x_target


class ScaleGradient(torch.autograd.Function):
    """The identity, with its gradient scaled on the way back; a negative scale reverses it."""

    @staticmethod
    def forward(context, x, scale):
        context.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(context, gradient):
        return context.scale * gradient, None


def image_encoder(channels: int) -> nn.Sequential:
    return nn.Sequential(
        *(nn.Conv2d(channels, 64, 5), nn.BatchNorm2d(64), nn.MaxPool2d(2), nn.ReLU()),
        *(nn.Conv2d(64, 64, 5), nn.BatchNorm2d(64), nn.MaxPool2d(2), nn.ReLU()),
        *(nn.Conv2d(64, 128, 5), nn.BatchNorm2d(128), nn.Sigmoid(), nn.Flatten()),
    )


def perceptron(widths: Sequence[int], *, norm: bool, dropout: float = 0.0) -> nn.Sequential:
    """Linear layers with ReLU between them, and dropout after the first."""
    layers: list[nn.Module] = []
    for index in range(len(widths) - 1):
        layers.append(nn.Linear(widths[index], widths[index + 1]))
        if index < len(widths) - 2:
            if norm:
                layers.append(nn.BatchNorm1d(widths[index + 1]))
            layers.append(nn.ReLU())
            if dropout and index == 0:
                layers.append(nn.Dropout(dropout))
    return nn.Sequential(*layers)


class DigitNetworks(nn.Module):
    """g1, g2, r, f, D1 and D2 for 32x32 digits, the lower half of which is missing."""

    def __init__(self, channels: int, classes: int = 10, *, imputes: bool = True) -> None:
        super().__init__()
        self.imputes = imputes
        self.g1 = image_encoder(channels)
        if imputes:
            self.g2 = image_encoder(channels)
            self.r = nn.Sequential(
                *perceptron([128, 512, 512, 128], norm=True), nn.BatchNorm1d(128), nn.Sigmoid()
            )
            self.d2 = perceptron([128, 500, 100, 1], norm=True)
        latent = 256 if imputes else 128
        self.f = perceptron([latent, 100, 100, classes], norm=True, dropout=0.5)
        self.d1 = perceptron([latent, 500, 100, 1], norm=True)

    def split(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return two canvases, each with the other block's rows at zero."""
        observed, missing = x.clone(), x.clone()
        observed[:, :, 16:] = 0.0
        missing[:, :, :16] = 0.0
        return observed, missing


class AdsNetworks(nn.Module):
    """The same for rows of counts, the last columns of which are missing."""

    def __init__(
        self, observed: int = 7, missing: int = 6, classes: int = 2, latent: int = 128
    ) -> None:
        super().__init__()
        self.imputes = True
        self.observed = observed
        self.g1 = nn.Sequential(*perceptron([observed, 128, 128, latent], norm=False), nn.Sigmoid())
        self.g2 = nn.Sequential(*perceptron([missing, 128, 128, latent], norm=False), nn.Sigmoid())
        self.r = nn.Sequential(*perceptron([latent, 256, 256, latent], norm=False), nn.Sigmoid())
        self.f = perceptron([2 * latent, 128, classes], norm=False)
        self.d1 = perceptron([2 * latent, 128, 128, 1], norm=False)
        self.d2 = perceptron([latent, 128, 128, 1], norm=False)

    def split(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return observed and missing columns."""
        return x[:, : self.observed], x[:, self.observed :]


def make_optimizers(
    model: nn.Module, rate: float, betas: tuple[float, float] = (0.8, 0.999)
) -> list[torch.optim.Adam]:
    networks = [network for network in model.children() if any(True for _ in network.parameters())]
    return [torch.optim.Adam(network.parameters(), lr=rate, betas=betas) for network in networks]


def discriminator_loss(critic: nn.Module, first: Tensor, second: Tensor) -> Tensor:
    as_first, as_second = critic(first), critic(second)
    return functional.binary_cross_entropy_with_logits(
        as_first, torch.ones_like(as_first)
    ) + functional.binary_cross_entropy_with_logits(as_second, torch.zeros_like(as_second))


def adversarial_losses(
    model: nn.Module, x_source: Tensor, y: Tensor, x_target: Tensor, strength: float, weight: float
) -> Tensor:
    x1, x2 = model.split(x_source)
    z1, z2 = model.g1(x1), model.g2(x2)
    z1_target = model.g1(model.split(x_target)[0])
    imputed, imputed_target = model.r(z1), model.r(z1_target)
    source = ScaleGradient.apply(torch.cat([z1, imputed], 1), -strength)
    target = ScaleGradient.apply(torch.cat([z1_target, imputed_target], 1), -strength)
    adaptation = discriminator_loss(model.d1, source, target)
    imputation = discriminator_loss(
        model.d2, ScaleGradient.apply(imputed, -strength), ScaleGradient.apply(z2, -strength)
    )
    reconstruction = torch.norm(z2 - imputed)
    classification = functional.cross_entropy(model.f(torch.cat([z1, z2], 1)), y)
    return adaptation + imputation + weight * reconstruction + classification


def dann_losses(
    model: nn.Module, x_source: Tensor, y: Tensor, x_target: Tensor, strength: float, weight: float
) -> Tensor:
    z_source = model.g1(model.split(x_source)[0])
    z_target = model.g1(model.split(x_target)[0])
    adaptation = discriminator_loss(
        model.d1,
        ScaleGradient.apply(z_source, -strength),
        ScaleGradient.apply(z_target, -strength),
    )
    return adaptation + functional.cross_entropy(model.f(z_source), y)


def transport_latents(model: nn.Module, x_source: Tensor, x_target: Tensor) -> list[Tensor]:
    x1, x2 = model.split(x_source)
    z1, z2 = model.g1(x1), model.g2(x2)
    z1_target = model.g1(model.split(x_target)[0])
    return [z1, z2, z1_target, model.r(z1.detach()), model.r(z1_target)]


def transport_costs(
    z1: Tensor, z2: Tensor, z1_target: Tensor, imputed: Tensor, imputed_target: Tensor
) -> tuple[Tensor, Tensor]:
    source, target = torch.cat([z1, imputed], 1), torch.cat([z1_target, imputed_target], 1)
    return torch.cdist(source, target) ** 2, torch.cdist(imputed, z2) ** 2


def exact_plan(cost: Tensor) -> Tensor:
    rows, columns = cost.shape
    plan = ot.emd(ot.unif(rows), ot.unif(columns), cost.detach().double().numpy())
    return torch.from_numpy(plan).to(cost.dtype)


def transport_losses(
    model: nn.Module,
    x_source: Tensor,
    y: Tensor,
    x_target: Tensor,
    strength: float,
    weight: float,
    *,
    two_passes: bool = True,
) -> Tensor:
    """Follow the paper's two stages: plans with networks fixed, then networks with plans fixed.

    Each stage computes the latents, as appendix B is written; without `two_passes` the second
    stage uses those of the first.
    """
    if two_passes:
        with torch.no_grad():
            latents = transport_latents(model, x_source, x_target)
            plans = [exact_plan(cost) for cost in transport_costs(*latents)]
    z1, z2, z1_target, imputed, imputed_target = transport_latents(model, x_source, x_target)
    ramped = [
        ScaleGradient.apply(z, strength) for z in (z1, z2, z1_target, imputed, imputed_target)
    ]
    costs = transport_costs(*ramped)
    if not two_passes:
        plans = [exact_plan(cost) for cost in costs]
    adaptation, imputation = ((plan * cost).sum() for plan, cost in zip(plans, costs, strict=True))
    reconstruction = torch.norm(z2 - imputed)
    classification = functional.cross_entropy(model.f(torch.cat([z1, z2], 1)), y)
    return 0.1 * adaptation + 0.1 * imputation + weight * reconstruction + classification


def warm_up_losses(model: nn.Module, x_source: Tensor, y: Tensor) -> Tensor:
    x1, x2 = model.split(x_source)
    return functional.cross_entropy(model.f(torch.cat([model.g1(x1), model.g2(x2)], 1)), y)


def descend(optimizers: list[torch.optim.Adam], loss: Tensor) -> float:
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
    return loss.item()


def set_rates(optimizers: list[torch.optim.Adam], rate: float) -> None:
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = rate


@torch.no_grad()
def predict(model: nn.Module, inputs: Tensor, batch_size: int = 1000) -> Tensor:
    """Class probabilities f(g1(x1), r(g1(x1))) of target rows."""
    model.eval()
    answers = []
    for x in DataLoader(RowDataset(inputs), batch_size):
        z1 = model.g1(model.split(x)[0])
        z = torch.cat([z1, model.r(z1)], 1) if model.imputes else z1
        answers.append(functional.softmax(model.f(z), dim=1))
    model.train()
    return torch.cat(answers)
