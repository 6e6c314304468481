"""Which inputs are observed on the target (x1) and which are never measured there (x2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from halfseen.errors import InputError

if TYPE_CHECKING:
    import torch

Array = TypeVar("Array", "torch.Tensor", npt.NDArray[np.float32])
View = Literal["full", "zero", "ignore"]
"""What a model without imputation is shown: (x1, x2), (x1, 0) or x1 alone."""


@dataclass(frozen=True)
class Blocks:
    """The split of every input row into an observed block x1 and a missing block x2.

    Build one with :meth:`columns` (tables), :meth:`rows` or :meth:`pixels` (images); the
    constructor takes positions that are already resolved.

    Examples
    --------
    >>> blocks = Blocks.columns(["age", "chol", "thal"], missing=["thal"])
    >>> x = np.array([[63.0, 233.0, 6.0]])
    >>> observed, missing = blocks.split(x)
    >>> observed.tolist(), missing.tolist()
    ([[63.0, 233.0]], [[6.0]])
    >>> Blocks.rows((1, 32, 32), fraction=0.5, side="bottom").missing[:3]
    (16, 17, 18)
    """

    shape: tuple[int, ...]
    """Of one input: ``(features,)`` or ``(channels, height, width)``."""
    missing: tuple[int, ...]
    """Columns of a table, rows of an image or its pixels; empty only where a benchmark shows a
    model the complete target."""
    names: tuple[str, ...] | None = None
    """Of the columns of a table, when it has them."""
    fill: float = 0.0
    """The value that stands where nothing was measured."""
    by_pixel: bool = False
    """Whether positions of an image count its pixels, row by row, and not its rows."""

    def __post_init__(self) -> None:
        if len(self.shape) not in (1, 3):
            raise InputError(
                f"An input row must be a vector or a (channels, height, width) image, "
                f"not of shape {self.shape}."
            )
        if self.by_pixel and self.is_table:
            raise InputError("A table has columns and no pixels that could be missing.")
        unit = "column" if self.is_table else f"image {self._unit}"
        outside = [p for p in self.missing if not 0 <= p < self.length]
        if outside:
            raise InputError(
                f"The missing block names {unit} {outside[0]}, but there are {self.length}."
            )
        if len(self.missing) >= self.length:
            raise InputError(
                f"Every {unit} is in the missing block (n_features={self.length}): the target "
                "has nothing left to predict from."
            )
        object.__setattr__(self, "missing", tuple(sorted(set(self.missing))))

    @classmethod
    def columns(
        cls,
        columns: int | Sequence[str],
        missing: Sequence[str] | Sequence[int] | npt.NDArray[np.bool_],
        *,
        fill: float = 0.0,
    ) -> Blocks:
        """Split a table's columns; `missing` holds names, indices or a boolean mask."""
        names = None if isinstance(columns, int) else tuple(columns)
        width = columns if isinstance(columns, int) else len(columns)
        return cls((width,), _positions(missing, width, names), names, fill)

    @classmethod
    def rows(
        cls,
        shape: tuple[int, int, int],
        *,
        fraction: float = 0.5,
        side: Literal["top", "bottom"] = "bottom",
        fill: float = 0.0,
    ) -> Blocks:
        """Split an image: the given fraction of its rows, at one side, is missing."""
        if not 0.0 < fraction < 1.0:
            raise InputError(
                f"fraction={fraction} must lie strictly between 0 and 1: "
                "part of the image is missing, and part of it is seen."
            )
        if side not in ("top", "bottom"):
            raise InputError(f"side={side!r} is unknown; choose 'top' or 'bottom'.")
        height = shape[1]
        count = min(max(round(height * fraction), 1), height - 1)
        first = 0 if side == "top" else height - count
        return cls(tuple(shape), tuple(range(first, first + count)), None, fill)

    @classmethod
    def pixels(
        cls, shape: tuple[int, int, int], missing: npt.NDArray[np.bool_], *, fill: float = 0.0
    ) -> Blocks:
        """Split an image by a mask of (height, width) that is true where pixels are missing."""
        mask = np.asarray(missing, dtype=bool)
        if mask.shape != tuple(shape[1:]):
            raise InputError(
                f"The mask of the missing pixels has shape {mask.shape}, and the images "
                f"{tuple(shape[1:])}."
            )
        whole: npt.NDArray[np.bool_] = np.array([row.all() for row in mask])
        if np.array_equal(mask, np.broadcast_to(whole[:, None], mask.shape)):
            return cls(tuple(shape), tuple(np.flatnonzero(whole).tolist()), None, fill)
        return cls(tuple(shape), tuple(np.flatnonzero(mask).tolist()), None, fill, by_pixel=True)

    @property
    def is_table(self) -> bool:
        """Whether a row is a vector of columns (otherwise it is an image)."""
        return len(self.shape) == 1

    @property
    def length(self) -> int:
        """How many columns, image rows or pixels the two blocks share out."""
        if self.by_pixel:
            return self.shape[1] * self.shape[2]
        return self.shape[0] if self.is_table else self.shape[1]

    @cached_property
    def observed(self) -> tuple[int, ...]:
        hidden = set(self.missing)
        return tuple(p for p in range(self.length) if p not in hidden)

    @property
    def missing_shape(self) -> tuple[int, ...]:
        """Shape of one x2, as :meth:`split` returns it."""
        return (len(self.missing),) if self.is_table else self.shape

    def rows_of(self, block: Literal["observed", "missing"]) -> tuple[int, int] | None:
        """Return the first image row with anything of a block and the last plus one, if any."""
        positions = self.observed if block == "observed" else self.missing
        if self.is_table or not positions:
            return None
        width = self.shape[2] if self.by_pixel else 1
        return positions[0] // width, positions[-1] // width + 1

    @property
    def mask(self) -> npt.NDArray[np.bool_]:
        """An image's (height, width), true where pixels are missing."""
        mask = np.zeros(self.shape[1:], dtype=bool)
        mask[self._index(self.missing)] = True
        return mask

    def names_of(self, positions: Sequence[int]) -> list[str]:
        """Readable names of some positions, for messages and reports."""
        return [self.names[p] if self.names else f"{self._unit} {p}" for p in positions]

    def split(self, x: Array) -> tuple[Array, Array]:
        """Return (x1, x2): the columns of each block, or for images two full canvases.

        An image keeps its size, with the other block's pixels at the fill value, because a
        convolutional encoder needs the whole canvas.
        """
        return self.part(x, "observed"), self.part(x, "missing")

    def part(self, x: Array, block: Literal["observed", "missing"]) -> Array:
        """Return one of the two that :meth:`split` returns."""
        own, other = self.observed, self.missing
        own, other = (other, own) if block == "missing" else (own, other)
        return x[..., _slice_if_contiguous(own)] if self.is_table else self._filled(x, other)

    def hide(self, x: Array) -> Array:
        """Return `x` with its missing block at the fill value: what the target looks like."""
        return self._filled(x, self.missing)

    def view(self, x: Array, view: View) -> Array:
        """Return what a model without imputation is shown of `x`."""
        if view == "ignore":
            return self.part(x, "observed")
        return x if view == "full" else self.hide(x)

    def view_shape(self, view: View) -> tuple[int, ...]:
        is_narrow = view == "ignore" and self.is_table
        return (len(self.observed),) if is_narrow else self.shape

    def flat(self, x: Array, block: Literal["observed", "missing"]) -> Array:
        """Return one block's own values as a matrix, for models that take plain columns."""
        positions = list(self.observed if block == "observed" else self.missing)
        if self.is_table:
            return x[:, positions]
        chosen: Any = x[self._index(positions)]
        flat: Array = chosen.reshape(chosen.shape[0], -1)
        return flat

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Blocks:
        names = None if data["names"] is None else tuple(data["names"])
        by_pixel = bool(data.get("by_pixel", False))
        return cls(
            tuple(data["shape"]), tuple(data["missing"]), names, float(data["fill"]), by_pixel
        )

    @property
    def _unit(self) -> str:
        return "column" if self.is_table else "pixel" if self.by_pixel else "row"

    def _index(self, positions: Sequence[int]) -> Any:
        """Return what selects some positions on the last axes of inputs."""
        if self.by_pixel:
            places = np.unravel_index(np.asarray(positions, dtype=np.int64), self.shape[1:])
            return (..., *places)
        index = _slice_if_contiguous(positions)
        return (..., index) if self.is_table else (..., index, slice(None))

    def _filled(self, x: Array, positions: Sequence[int]) -> Array:
        filled = x.copy() if isinstance(x, np.ndarray) else x.clone()
        filled[self._index(positions)] = self.fill
        return filled


def _positions(
    missing: Sequence[str] | Sequence[int] | npt.NDArray[np.bool_],
    width: int,
    names: tuple[str, ...] | None,
) -> tuple[int, ...]:
    """Resolve names, indices or a mask to column positions."""
    if isinstance(missing, str):
        missing = [missing]
    entries: list[Any] = list(missing)
    if any(isinstance(e, str) for e in entries):
        if names is None:
            raise InputError(
                f"missing={entries!r} holds column names, but the inputs have none; "
                "give indices, or a data frame."
            )
        unknown = [e for e in entries if e not in names]
        if unknown:
            raise InputError(
                f"The missing block names column {unknown[0]!r}, which the source does not have."
            )
        return tuple(names.index(e) for e in entries)
    array = np.asarray(entries)
    if array.dtype == bool:
        if array.shape != (width,):
            raise InputError(
                f"The mask of the missing block has {array.size} entries for {width} columns."
            )
        return tuple(int(p) for p in np.flatnonzero(array))
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"missing={entries!r} must hold column names, indices or a mask.")
    outside = [int(p) for p in array if not -width <= p < width]
    if outside:
        raise InputError(f"The missing block names column {outside[0]}, but there are {width}.")
    return tuple(int(p) % width for p in array)


def _slice_if_contiguous(positions: Sequence[int]) -> slice | list[int]:
    """Return a slice where one will do: it copies without a gather."""
    if positions and positions[-1] - positions[0] + 1 == len(positions):
        return slice(positions[0], positions[-1] + 1)
    return list(positions)
