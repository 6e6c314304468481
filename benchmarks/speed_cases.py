"""The cases of `speed.py`: the same work done plainly and by the library, ready to be timed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import straightforward as plain
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import interpolate

from halfseen import Blocks, preset
from halfseen.networks.loop import Adam, Phase, Trainer
from halfseen.networks.modules import Predictor
from halfseen.networks.objective import build_objective
from halfseen.networks.terms import Batch
from halfseen.networks.train import LabelledRows, ResidentBatches
from halfseen.networks.variants import variant_named
from halfseen.options import Options, make_options

STRENGTH = 0.5
RATE = 1e-4
IMPUTING, DANN = "Adaptation-Imputation", "Adaptation-IgnoreComponent"


@dataclass(frozen=True)
class Case:
    """Two ways to do the same work; each call handles `rows` rows of the source."""

    rows: int
    plainly: Callable[[], Any]
    ours: Callable[[], Any]


@dataclass(frozen=True)
class Domains:
    """Labelled source rows and unlabelled target rows."""

    source: Tensor
    labels: Tensor
    target: Tensor
    blocks: Blocks
    classes: int


def digits(channels: int, rows: int = 4000) -> Domains:
    """scikit-learn's digits at 32x32, repeated, the lower half missing on the target."""
    images, labels = load_digits(return_X_y=True)
    small = torch.from_numpy(images).float().view(-1, 1, 8, 8) / 8.0 - 1.0
    large = interpolate(small, (32, 32), mode="bilinear").repeat(1, channels, 1, 1)
    noise = torch.Generator().manual_seed(0)
    chosen = torch.randint(len(large), (2 * rows,), generator=noise)
    source, target = large[chosen].chunk(2)
    blocks = Blocks.rows((channels, 32, 32))
    return Domains(
        source, torch.from_numpy(labels)[chosen[:rows]].long(), blocks.hide(target), blocks, 10
    )


def ads(rows: int = 100_000, classes: int = 2) -> Domains:
    """Logarithms of counts in 13 columns, six of them missing on the target."""
    random = np.random.default_rng(0)
    counts = np.floor(random.gamma(1.0, 2.0, size=(2 * rows, 13)))
    source, target = torch.from_numpy(counts).float().chunk(2)
    labels = torch.from_numpy(random.integers(classes, size=rows))
    blocks = Blocks.columns(13, range(7, 13))
    return Domains(source, labels, target, blocks, classes)


def our_options(kind: str, divergence: str, batch_size: int, **settings: Any) -> Options:
    options = preset("reference", inputs=kind, divergence=divergence)
    return make_options({"training.batch_size": batch_size, **settings}, options)


class OurSteps:
    """The library's training loop, a few steps at a time."""

    def __init__(self, domains: Domains, method: str, options: Options) -> None:
        self.batch_size = int(options.training.batch_size)
        self.objective = build_objective(
            domains.blocks, variant_named(method), domains.classes, options
        ).train()
        self.batches = ResidentBatches(
            LabelledRows(domains.source, domains.labels),
            domains.target,
            balanced=options.training.balanced,
        )
        self.phase = Phase("joint", 1, self.batch_size, RATE)
        self.optimizer = Adam.of(self.objective, self.phase)
        self.trainer = Trainer(self.objective, self.batches, seed=0)
        self.trainer._device = next(self.objective.parameters()).device  # as `train` sets it
        self.stream = self._stream()

    def _stream(self) -> Iterator[Batch]:
        epoch = 0
        while True:
            yield from self.batches.epoch(self.batch_size, epoch)
            epoch += 1

    def run(self, steps: int) -> None:
        """Take some steps."""
        for batch in islice(self.stream, steps):
            self.trainer._step(self.phase, 0, batch, STRENGTH, self.optimizer)


class PlainSteps:
    """The straightforward loop, a few steps at a time."""

    def __init__(
        self,
        domains: Domains,
        model: nn.Module,
        losses: Callable[..., Tensor],
        options: Options,
    ) -> None:
        self.model, self.losses, self.options = model.train(), losses, options
        self.optimizers = plain.make_optimizers(model, RATE, options.training.betas)
        size = int(options.training.batch_size)
        self.source = plain.source_loader(
            domains.source, domains.labels, size, balanced=options.training.balanced
        )
        self.target = plain.target_loader(domains.target, size)
        self.stream = self._stream()

    def _stream(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        while True:
            yield from plain.pairs(self.source, self.target)

    def run(self, steps: int) -> None:
        """Take some steps."""
        weight = self.options.objective.reconstruction_weight
        for x_source, y, x_target in islice(self.stream, steps):
            loss = self.losses(self.model, x_source, y, x_target, STRENGTH, weight)
            plain.descend(self.optimizers, loss)


def training(
    domains: Domains,
    model: nn.Module,
    losses: Callable[..., Tensor],
    options: Options,
    *,
    method: str = IMPUTING,
    steps: int = 1,
) -> Case:
    by_hand = PlainSteps(domains, model, losses, options)
    ours = OurSteps(domains, method, options)
    return Case(
        steps * int(options.training.batch_size),
        lambda: by_hand.run(steps),
        lambda: ours.run(steps),
    )


def prediction(domains: Domains, model: nn.Module, options: Options, rows: int) -> Case:
    objective = build_objective(
        domains.blocks, variant_named(IMPUTING), domains.classes, options
    ).eval()
    inputs = domains.target[:rows]
    predictor, array = Predictor(objective.networks, options), inputs.numpy()
    return Case(
        len(inputs),
        lambda: plain.predict(model, inputs),
        lambda: predictor.raw_prediction(array),
    )


def data_path(domains: Domains, options: Options, steps: int) -> Case:
    """Batches alone: what reaches the networks, without them."""
    size = int(options.training.batch_size)
    source = plain.source_loader(
        domains.source, domains.labels, size, balanced=options.training.balanced
    )
    target = plain.target_loader(domains.target, size)
    batches = ResidentBatches(
        LabelledRows(domains.source, domains.labels),
        domains.target,
        balanced=options.training.balanced,
    )

    def consume(stream: Iterator[Any]) -> None:
        for _ in islice(stream, steps):
            pass

    return Case(
        steps * size,
        lambda: consume(plain.pairs(source, target)),
        lambda: consume(batches.epoch(size, 0)),
    )


def digits_adversarial(channels: int = 1) -> Case:
    options = our_options("image", "adversarial", 128)
    model = plain.DigitNetworks(channels)
    return training(digits(channels), model, plain.adversarial_losses, options)


def digits_transport(channels: int = 1, *, two_passes: bool = True) -> Case:
    def losses(*given: Any) -> Tensor:
        return plain.transport_losses(*given, two_passes=two_passes)

    options = our_options("image", "transport", 500)
    model = plain.DigitNetworks(channels)
    return training(digits(channels), model, losses, options)


def digits_dann(channels: int = 1) -> Case:
    options = our_options("image", "adversarial", 128)
    model = plain.DigitNetworks(channels, imputes=False)
    return training(digits(channels), model, plain.dann_losses, options, method=DANN)


def ads_adversarial() -> Case:
    options = our_options("table", "adversarial", 500)
    return training(ads(), plain.AdsNetworks(), plain.adversarial_losses, options, steps=40)


def digits_prediction(channels: int = 1) -> Case:
    options = our_options("image", "adversarial", 128)
    return prediction(digits(channels), plain.DigitNetworks(channels), options, 2000)


def ads_prediction() -> Case:
    options = our_options("table", "adversarial", 500)
    return prediction(ads(), plain.AdsNetworks(), options, 100_000)


CASES: dict[str, Callable[[], Case]] = {
    "digits, adversarial imputation": digits_adversarial,
    "digits in three channels, adversarial imputation": lambda: digits_adversarial(3),
    "digits, transport imputation": digits_transport,
    "digits, transport imputation, plain in one pass": lambda: digits_transport(two_passes=False),
    "digits, DANN": digits_dann,
    "ads, adversarial imputation": ads_adversarial,
    "digits, prediction": digits_prediction,
    "digits in three channels, prediction": lambda: digits_prediction(3),
    "ads, prediction": ads_prediction,
    "digits, data path alone": lambda: data_path(
        digits(1), our_options("image", "adversarial", 128), 30
    ),
    "ads, data path alone": lambda: data_path(ads(), our_options("table", "adversarial", 500), 150),
}
