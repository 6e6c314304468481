"""Encoders g1 and g2: from one block of the inputs to its latent."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from halfseen.errors import InputError, OptionError
from halfseen.networks.nets.fast_convolution import channels_last, encode, is_fast
from halfseen.networks.nets.layers import mlp, normalization
from halfseen.options import Normalization

EncoderFactory = Callable[[tuple[int, ...]], nn.Module]
"""Builds an encoder for inputs of one shape; its output must be a (rows, latent) matrix."""


class ConvEncoder(nn.Module):
    """Convolutions with max pooling after the first `pools`, and a final sigmoid (appendix E).

    With ``valid`` padding, as in the authors' code, an image of 32x32 ends at 1x1, a latent of
    128; ``same`` padding with three pools gives the paper's latent of 2048.

    Examples
    --------
    >>> ConvEncoder((3, 32, 32))(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 128])
    >>> ConvEncoder((1, 32, 32), padding="same", pools=3)(torch.zeros(2, 1, 32, 32)).shape
    torch.Size([2, 2048])
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        *,
        channels: Sequence[int] = (64, 64, 128),
        kernel_size: int = 5,
        padding: Literal["valid", "same"] = "valid",
        pools: int = 2,
        normalize: Normalization = "batch",
    ) -> None:
        super().__init__()
        _check_image_fits(shape, len(channels), kernel_size, padding, pools)
        inputs = shape[0]
        layers: list[nn.Module] = []
        for index, filters in enumerate(channels):
            last = index == len(channels) - 1
            layers += [
                nn.Conv2d(inputs, filters, kernel_size, padding=padding),
                normalization(normalize, filters, image=True),
            ]
            if index < pools:
                layers.append(nn.MaxPool2d(2))
            layers.append(nn.Sigmoid() if last else nn.ReLU())
            inputs = filters
        # Channels-last memory is what CPU convolutions and pooling are fastest with.
        self.layers = nn.Sequential(*layers)
        self.layers.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, x: Tensor, rows: tuple[int, int] | None = None) -> Tensor:
        """Return the flattened latent of a batch of images.

        `rows`, first and last plus one, promises that the images are the same in all others, as
        hidden rows are: these are then computed once instead of for each image.
        """
        x = channels_last(x)
        if is_fast(self.layers, x):
            return encode(self.layers, x, rows)
        latent: Tensor = self.layers(x)
        return latent.flatten(1)


class VectorEncoder(nn.Module):
    """A multi-layer perceptron for table columns, with a final sigmoid (appendix E).

    Dropout is that of the input and of the first hidden layer. With `linear_path` a linear map
    runs beside the hidden layers, which then start at zero: few rows are often best served by a
    model that is nearly linear.

    Examples
    --------
    >>> VectorEncoder((7,), latent_size=16)(torch.zeros(2, 7)).shape
    torch.Size([2, 16])
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        *,
        widths: Sequence[int] = (128, 128),
        latent_size: int = 128,
        normalize: Normalization = "none",
        dropout: float = 0.0,
        linear_path: bool = False,
    ) -> None:
        super().__init__()
        self.layers = mlp(
            shape[0],
            widths,
            latent_size,
            normalize=normalize,
            normalize_output=True,
            dropout=dropout,
        )
        self.drop_inputs = nn.Dropout(dropout)
        self.linear = nn.Linear(shape[0], latent_size) if linear_path else None
        if linear_path:
            last = [layer for layer in self.layers if isinstance(layer, nn.Linear)][-1]
            nn.init.zeros_(last.weight)
        self.activation = nn.Sigmoid()
        self.is_row_wise = normalize != "batch"
        """Whether what becomes of a row does not depend on others."""

    def forward(self, x: Tensor) -> Tensor:
        latent: Tensor = self.layers(self.drop_inputs(x))
        if self.linear is not None:
            latent = latent + self.linear(x)
        activated: Tensor = self.activation(latent)
        return activated


def make_encoder(
    encoder: nn.Module | EncoderFactory, shape: tuple[int, ...], *, role: str
) -> tuple[nn.Module, int]:
    """Return a fresh encoder for one block, by a factory or as a copy, and its latent size.

    A module that a user brings is copied, so that g1 and g2 never share weights by accident
    and fitting leaves the user's own object alone.
    """
    if isinstance(encoder, nn.Module):
        module = copy.deepcopy(encoder)
    else:
        module = encoder(shape)
        if not isinstance(module, nn.Module):
            raise OptionError(
                f"The encoder factory returned {type(module).__name__} for the {role} block; "
                "it must return a torch.nn.Module."
            )
    return module, latent_size_of(module, shape, role=role)


def latent_size_of(encoder: nn.Module, shape: tuple[int, ...], *, role: str = "observed") -> int:
    """Return how many values the encoder gives per row, by asking it once."""
    training = encoder.training
    encoder.eval()
    try:
        with torch.no_grad():
            latent = encoder(torch.zeros(2, *shape))
    except (RuntimeError, ValueError) as error:
        raise InputError(
            f"The encoder of the {role} block cannot take inputs of shape {tuple(shape)}: {error}"
        ) from error
    finally:
        encoder.train(training)
    if latent.ndim != 2 or latent.shape[0] != 2:
        raise InputError(
            f"The encoder of the {role} block gave shape {tuple(latent.shape)} for two rows; "
            "it must give one flat latent per row, (2, latent size)."
        )
    return int(latent.shape[1])


def _check_image_fits(
    shape: tuple[int, ...], convolutions: int, kernel_size: int, padding: str, pools: int
) -> None:
    if len(shape) != 3:
        raise InputError(
            f"A convolutional encoder takes (channels, height, width) images, not shape {shape}."
        )
    for side in shape[1:]:
        remaining = side
        for index in range(convolutions):
            if padding == "valid":
                remaining -= kernel_size - 1
            if index < pools:
                remaining //= 2
            if remaining < 1:
                raise InputError(
                    f"A {shape[1]}x{shape[2]} image is too small for {convolutions} "
                    f"{kernel_size}x{kernel_size} convolutions with padding={padding!r} and "
                    f"{pools} poolings: resize the images to 32x32, set padding='same', or "
                    "bring an encoder of your own."
                )
