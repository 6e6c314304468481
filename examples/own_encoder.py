"""Digits with a convolutional encoder of one's own.

An encoder is any torch module that gives one flat latent per row. Hand over a function from an
input shape to a module: it is called for g1 (what both domains show) and for g2 (the rest).

    python examples/own_encoder.py
"""

import sys

import torch
from torch import nn

from halfseen import AdaptationImputationClassifier
from halfseen_bench.data.demo import demo_pair


class Residual(nn.Module):
    """x + f(x), which keeps the size."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.f = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return images of the same size."""
        return x + self.f(x)


def make_encoder(shape: tuple[int, ...]) -> nn.Module:
    """Build an encoder for images of one shape: (channels, height, width)."""
    return nn.Sequential(
        nn.Conv2d(shape[0], 16, 3, padding=1),
        Residual(16),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        Residual(32),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.LazyLinear(64),  # its input size is found when the first image passes
        nn.Sigmoid(),  # latents between 0 and 1, like the built-in encoder's
    )


def main(epochs: int = 20) -> None:
    pair = demo_pair(seed=0)  # digits on black; on photos, with the lower half hidden
    model = AdaptationImputationClassifier(
        encoder=make_encoder,
        missing=pair.blocks,
        options={"training.warmup_epochs": min(5, epochs), "training.joint_epochs": epochs},
        random_state=0,
        verbose=1,
    )
    source = pair.source_train
    model.fit(source.inputs, source.labels, X_target=pair.target_train)
    truth = pair.target_test_labels.open("to see how well it went")
    latents = model.transform(pair.target_test)
    print(f"{type(model.networks_.encoder).__name__}: latents of {latents.shape[1]} numbers")
    print(f"{(model.predict(pair.target_test) == truth).mean():.1%} of the target's digits right")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
