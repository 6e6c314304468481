"""What every network here is made of, and the encoders g1 and g2: from a block to its latent."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from halfseen.errors import InputError, OptionError
from halfseen.networks.fast_convolution import channels_last, encode, is_fast
from halfseen.options import Initialization, Normalization

EncoderFactory = Callable[[tuple[int, ...]], nn.Module]
"""Builds an encoder for inputs of one shape; its output must be a (rows, latent) matrix."""


def normalization(kind: Normalization, features: int, *, image: bool = False) -> nn.Module:
    if kind == "batch":
        return nn.BatchNorm2d(features) if image else nn.BatchNorm1d(features)
    return nn.Identity()


class RowWise(nn.Sequential):
    """Layers in which rows do not meet."""

    is_row_wise = True


def mlp(
    inputs: int,
    widths: Sequence[int],
    outputs: int,
    *,
    normalize: Normalization = "none",
    normalize_output: bool = False,
    output_activation: nn.Module | None = None,
    dropout: float = 0.0,
) -> nn.Sequential:
    """Return a fully connected network: hidden ReLU layers of the given widths, then the output.

    Dropout follows the first hidden layer alone, as in the paper's classifier.
    """
    layers: list[nn.Module] = []
    for index, width in enumerate(widths):
        layers += [nn.Linear(inputs, width), normalization(normalize, width), nn.ReLU()]
        if dropout and index == 0:
            layers.append(nn.Dropout(dropout))
        inputs = width
    layers.append(nn.Linear(inputs, outputs))
    if normalize_output:
        layers.append(normalization(normalize, outputs))
    if output_activation is not None:
        layers.append(output_activation)
    kept = (layer for layer in layers if not isinstance(layer, nn.Identity))
    return nn.Sequential(*kept) if normalize == "batch" else RowWise(*kept)


def of_both(module: nn.Module, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Return what a network makes of two batches; in one pass where rows do not meet in it.

    Small networks take as long for two batches as for one. Batch normalisation must see each
    batch by itself, and a user's own module may do anything.

    Examples
    --------
    >>> [tuple(out.shape) for out in of_both(mlp(3, [], 2), torch.zeros(4, 3), torch.ones(4, 3))]
    [(4, 2), (4, 2)]
    """
    if first.shape == second.shape and getattr(module, "is_row_wise", False):
        halves: tuple[Tensor, Tensor] = module(torch.cat([first, second], dim=-2)).chunk(2, dim=-2)
        return halves
    return module(first), module(second)


def initialize(module: nn.Module, kind: Initialization) -> None:
    """Draw the initial weights anew, as the authors do (``reference``), or keep PyTorch's."""
    if kind == "torch":
        return
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.constant_(layer.bias, 0.01)
        elif isinstance(layer, nn.Conv2d):
            nn.init.normal_(layer.weight, 0.0, 0.02)
        elif isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
            nn.init.normal_(layer.weight, 1.0, 0.02)
            nn.init.zeros_(layer.bias)


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
            layers.append(nn.Conv2d(inputs, filters, kernel_size, padding=padding))
            layers.append(normalization(normalize, filters, image=True))
            if index < pools:
                layers.append(nn.MaxPool2d(2))
            layers.append(nn.Sigmoid() if index == len(channels) - 1 else nn.ReLU())
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
        normal = {"normalize": normalize, "normalize_output": True}
        self.layers = mlp(shape[0], widths, latent_size, dropout=dropout, **normal)  # type: ignore[arg-type]
        self.drop_inputs = nn.Dropout(dropout)
        self.linear = nn.Linear(shape[0], latent_size) if linear_path else None
        if linear_path:
            last = [layer for layer in self.layers if isinstance(layer, nn.Linear)][-1]
            nn.init.zeros_(last.weight)
        self.activation = nn.Sigmoid()
        self.is_row_wise = normalize != "batch"

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
    module = copy.deepcopy(encoder) if isinstance(encoder, nn.Module) else encoder(shape)
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
    remaining = min(shape[1:])
    for index in range(convolutions):
        remaining -= kernel_size - 1 if padding == "valid" else 0
        remaining = remaining // 2 if index < pools else remaining
        if remaining < 1:
            raise InputError(
                f"A {shape[1]}x{shape[2]} image is too small for {convolutions} "
                f"{kernel_size}x{kernel_size} convolutions with padding={padding!r} and {pools} "
                "poolings: resize the images to 32x32, set padding='same', or bring an encoder of "
                "your own."
            )
