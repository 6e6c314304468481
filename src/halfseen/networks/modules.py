"""The paper's g1, g2, r and f as one module, and the same as they predict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor, nn

from halfseen.arrays import Floats, Matrix
from halfseen.blocks import Blocks, View
from halfseen.errors import OptionError
from halfseen.networks.encoders import (
    ConvEncoder,
    EncoderFactory,
    VectorEncoder,
    initialize,
    latent_size_of,
    make_encoder,
    mlp,
    of_both,
)
from halfseen.networks.variants import NetworkVariant
from halfseen.options import Options

CONTRAST = 0.1
"""Spread below which a difference within an image is taken for noise; pixels lie in [-1, 1]."""
_BatchNorm = nn.BatchNorm1d | nn.BatchNorm2d
_CHUNK = 1024
"""Rows that are asked about at a time: they stay in cache."""
_BATCH = 128
"""Rows per batch where batch-norm statistics are estimated."""


@dataclass(frozen=True)
class Latents:
    """What one pair of batches looks like in the latent space (section 3).

    A model without imputation has only the two observed fields, which then hold the latent of
    whatever it is shown.
    """

    observed_source: Tensor
    """z_S1 = g1(x_S1)"""
    observed_target: Tensor
    """z_T1 = g1(x_T1)"""
    missing_source: Tensor | None = None
    """z_S2 = g2(x_S2)"""
    imputed_source: Tensor | None = None
    """ẑ_S2 = r(z_S1)"""
    imputed_target: Tensor | None = None
    """ẑ_T2 = r(z_T1)"""

    @property
    def source(self) -> Tensor:
        """ẑ_S = (z_S1, ẑ_S2)."""
        return _pair(self.observed_source, self.imputed_source)

    @property
    def target(self) -> Tensor:
        """ẑ_T = (z_T1, ẑ_T2)."""
        return _pair(self.observed_target, self.imputed_target)

    @property
    def complete_source(self) -> Tensor:
        """z_S = (z_S1, z_S2)."""
        return _pair(self.observed_source, self.missing_source)


def _pair(observed: Tensor, other: Tensor | None) -> Tensor:
    return observed if other is None else torch.cat([observed, other], dim=-1)


class Networks(nn.Module):
    """Encoders, generator and classifier of one of the seven models: g1, f, and g2 and r.

    A model without imputation has the first two alone. With `standardize` each image is brought
    to mean 0 and spread 1 of the pixels that the target has.
    """

    def __init__(
        self,
        blocks: Blocks,
        method: NetworkVariant,
        encoder: nn.Module,
        classifier: nn.Module,
        missing_encoder: nn.Module | None = None,
        generator: nn.Module | None = None,
        *,
        standardize: bool = False,
    ) -> None:
        super().__init__()
        self.blocks, self.method, self.standardize = blocks, method, standardize
        self.encoder = encoder
        self.missing_encoder = missing_encoder
        self.generator = generator
        self.classifier = classifier
        self.missing_size = 0
        if missing_encoder is not None:
            self.missing_size = latent_size_of(missing_encoder, blocks.missing_shape)
        observed_shape = blocks.view_shape(method.source_view)
        self.latent_size = latent_size_of(encoder, observed_shape) + self.missing_size

    def latents(self, source: Tensor, target: Tensor, *, detach_generator_input: bool) -> Latents:
        """Encode a source batch (x_S1, x_S2) and a target batch x_T1."""
        source, target = self._evened(source), self._evened(target)
        views = self.method.source_view, self.method.target_view
        source_view = self.blocks.view(source, views[0])
        target_view = self.blocks.view(target, views[1])
        # Where the source shows more than the target, the encoder must expect it in both.
        shown = self._shown(views[0]) if views[0] == views[1] else None
        if type(self.encoder) is ConvEncoder:
            observed_source = self.encoder(source_view, shown)
            observed_target = self.encoder(target_view, shown)
        else:
            observed_source, observed_target = of_both(self.encoder, source_view, target_view)
        if not self.method.imputes:
            return Latents(observed_source, observed_target)
        known = observed_source.detach() if detach_generator_input else observed_source
        assert self.generator is not None
        imputed = of_both(self.generator, known, observed_target)
        return Latents(observed_source, observed_target, self._encode_missing(source), *imputed)

    def source_latent(self, source: Tensor) -> Tensor:
        """Encode source rows alone: z_S = (g1(x_S1), g2(x_S2)), or g of the model's view."""
        source = self._evened(source)
        observed = self._encode_observed(source, self.method.source_view)
        return _pair(observed, self._encode_missing(source) if self.method.imputes else None)

    def target_latent(self, target: Tensor) -> Tensor:
        """Encode target rows for prediction: ẑ_T = (g1(x_T1), r(g1(x_T1)))."""
        observed = self._encode_observed(self._evened(target), self.method.target_view)
        return _pair(observed, None if self.generator is None else self.generator(observed))

    def forward(self, target: Tensor) -> Tensor:
        """Return the logits f(ẑ_T) of target rows."""
        logits: Tensor = self.classifier(self.target_latent(target))
        return logits

    def complete_logits(self, rows: Tensor) -> Tensor:
        """Return the logits f(z_1, z_2) of rows whose missing block is there."""
        logits: Tensor = self.classifier(self.source_latent(rows))
        return logits

    def _evened(self, images: Tensor) -> Tensor:
        """Return images of one brightness and contrast, both blocks by what x1 has of them."""
        if not self.standardize:
            return images
        complete = self.method.needs_complete_target
        measured = images.flatten(1) if complete else self.blocks.flat(images, "observed")
        variance, mean = torch.var_mean(measured, dim=1, correction=0)
        scale = (variance + CONTRAST**2).rsqrt()
        return (images - mean.view(-1, 1, 1, 1)) * scale.view(-1, 1, 1, 1)

    def _encode_observed(self, rows: Tensor, view: View) -> Tensor:
        return _encode(self.encoder, self.blocks.view(rows, view), self._shown(view))

    def _encode_missing(self, source: Tensor) -> Tensor:
        assert self.missing_encoder is not None
        missing = self.blocks.part(source, "missing")
        return _encode(self.missing_encoder, missing, self.blocks.rows_of("missing"))

    def _shown(self, view: View) -> tuple[int, int] | None:
        """First row and last plus one in which images can differ in a view; None is all."""
        return None if view == "full" else self.blocks.rows_of("observed")

    @torch.no_grad()
    def estimate_statistics(self, batches: Iterable[Tensor]) -> None:
        """Replace running batch-norm statistics by those of the given target batches.

        Training normalises target rows with target statistics, while the running average mixes
        both domains; prediction on the target wants the former. Uses no label.
        """
        used = [m for m in (self.encoder, self.classifier, self.generator) if m is not None]
        layers = [m for module in used for m in module.modules() if isinstance(m, _BatchNorm)]
        if not layers:
            return
        training, momenta = self.training, [layer.momentum for layer in layers]
        self.eval()
        try:
            for layer in layers:
                layer.reset_running_stats()
                layer.momentum = None  # a plain average over all batches
                layer.train()
            for batch in batches:
                if len(batch) > 1:  # one row has no spread to learn from
                    self(batch)
        finally:
            for layer, momentum in zip(layers, momenta, strict=True):
                layer.momentum = momentum
            self.train(training)


def _encode(encoder: nn.Module, x: Tensor, shown: tuple[int, int] | None) -> Tensor:
    """Encode inputs, telling our own image encoder which rows are not hidden."""
    latent: Tensor = encoder(x, shown) if type(encoder) is ConvEncoder else encoder(x)
    return latent


def build_networks(
    blocks: Blocks,
    method: NetworkVariant,
    n_classes: int,
    options: Options,
    encoder: nn.Module | EncoderFactory | None = None,
) -> Networks:
    """Return untrained networks; `encoder` is the user's own, in the place of the options'."""
    normalize, kind = options.networks.normalization, options.networks.initialization

    def default_encoder(shape: tuple[int, ...]) -> nn.Module:
        of_images = len(shape) == 3
        sizes = options.images if of_images else options.tables
        if sizes is None:
            inputs = "images" if of_images else "tables"
            raise OptionError(
                f"These options are for {options.inputs}s, and the inputs are {inputs}."
            )
        made = ConvEncoder if of_images else VectorEncoder
        return made(shape, **sizes.model_dump(exclude={"standardize"}), normalize=normalize)

    chosen = default_encoder if encoder is None else encoder

    def make(shape: tuple[int, ...], role: str) -> tuple[nn.Module, int]:
        module, size = make_encoder(chosen, shape, role=role)
        if encoder is None:
            initialize(module, kind)
        return module, size

    observed_encoder, latent_size = make(blocks.view_shape(method.source_view), "observed")
    missing_encoder = generator = None
    if method.imputes:
        missing_encoder, missing_size = make(blocks.missing_shape, "missing")
        generator = mlp(
            latent_size,
            options.generator.widths,
            missing_size,
            normalize=normalize,
            normalize_output=True,
            output_activation=nn.Sigmoid(),
        )
        initialize(generator, kind)
        latent_size += missing_size
    classifier = mlp(
        latent_size,
        options.networks.classifier_widths,
        n_classes,
        normalize=normalize,
        dropout=options.networks.classifier_dropout,
    )
    initialize(classifier, kind)
    own_light = options.images is not None and options.images.standardize is True
    return Networks(
        blocks,
        method,
        observed_encoder,
        classifier,
        missing_encoder,
        generator,
        standardize=own_light and encoder is None,
    )


@dataclass(eq=False)
class Predictor:
    """Networks asked about rows in NumPy arrays; `options` are the settings of their training."""

    networks: Networks
    options: Options

    @property
    def method(self) -> NetworkVariant:
        return self.networks.method

    def raw_prediction(self, rows: Matrix) -> Floats:
        """Return log-probabilities of rows whose missing block is hidden."""
        return self._asked(rows, lambda chunk: self.networks(chunk).double().log_softmax(1))

    def raw_prediction_complete(self, rows: Matrix) -> Floats | None:
        """Return log-probabilities of rows with their missing block, by f(g1(x1), g2(x2))."""
        if not self.method.imputes:
            return None
        logits = self.networks.complete_logits
        return self._asked(rows, lambda chunk: logits(chunk).double().log_softmax(1))

    def latents(self, rows: Matrix) -> Matrix:
        """Return ẑ = (z1, ẑ2) of rows whose missing block is hidden."""
        return self._asked(rows, self.networks.target_latent)

    compared_in = latents

    def complete_latents(self, rows: Matrix) -> Matrix:
        """Return z = (z1, z2) of rows whose missing block is there."""
        return self._asked(rows, self.networks.source_latent)

    @contextmanager
    def source_statistics(self, rows: Matrix) -> Iterator[None]:
        """Let batch-norm layers that hold the target's statistics hold the source's for a while.

        Training normalises each domain by its own statistics. A source row under the target's is
        none that the classifier has ever seen, and its loss says nothing.
        """
        networks = self.networks
        if not (self.options.networks.prediction_statistics == "target" and self.method.adapts):
            yield
            return
        kept = {name: buffer.clone() for name, buffer in networks.named_buffers()}
        try:
            batches = torch.split(torch.from_numpy(rows), _BATCH)
            networks.estimate_statistics(batch.to(self._device) for batch in batches)
            yield
        finally:
            with torch.no_grad():
                for name, buffer in networks.named_buffers():
                    buffer.copy_(kept[name])

    @property
    def _device(self) -> torch.device:
        return next(self.networks.parameters()).device

    @torch.no_grad()
    def _asked(self, rows: Matrix, function: Callable[[Tensor], Tensor]) -> npt.NDArray[Any]:
        device, training = self._device, self.networks.training
        self.networks.eval()
        try:
            chunks = torch.split(torch.from_numpy(rows), _CHUNK)
            found = torch.cat([function(chunk.to(device)).cpu() for chunk in chunks])
        finally:
            self.networks.train(training)
        array: npt.NDArray[Any] = found.numpy()
        return array
