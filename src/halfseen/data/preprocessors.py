"""The two ways in: a table by its schema, images by their blocks. Both give prepared rows."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, cast, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import ValidationError

from halfseen.arrays import Matrix
from halfseen.blocks import Blocks
from halfseen.data.column_spec import Missing
from halfseen.data.frames import Images, named_like, read_frame
from halfseen.data.gap_filling import MOST_INPUTS, GapFilling, fill_gaps
from halfseen.data.preprocessing import ReadRows, inputs_of, read_rows
from halfseen.data.schema import TableSchema
from halfseen.data.values import composed_name
from halfseen.errors import InputError, capitalized, first_fault
from halfseen.targets import ClassTarget, Scalar, TargetType, class_name

SIDES = ("top", "bottom", "left", "right")
Scale = Literal["bytes", "unit", "own"]
"""What pixels are: bytes, brought to [-1, 1]; numbers in [-1, 1]; or on a scale of the user's."""
ROUNDING = 1e-6
LARGEST = 1_000_000
"""Inputs of a row at most, in a description that is read: more would exhaust memory."""


@dataclass(frozen=True)
class TablePreprocessor:
    """Tables, prepared by a schema."""

    kind: ClassVar[str] = "table"
    schema: TableSchema
    gaps: GapFilling | None = field(default=None, compare=False)
    """What fills gaps of the rows that a model is asked about; medians without it."""

    @property
    def blocks(self) -> Blocks:
        return self.schema.blocks

    @property
    def classes(self) -> tuple[Scalar, ...]:
        return self.schema.classes

    @property
    def target_type(self) -> TargetType:
        return self.schema.target_type

    def read(
        self, X: Any, *, complete: bool = False, where: str = "X", first_row: int | None = None
    ) -> ReadRows:
        """Return some rows as the schema reads them, without the missing block or `complete`."""
        table, row = self.table(X, where)
        start = row if first_row is None else first_row
        return read_rows(self.schema, table, complete=complete, where=where, first_row=start)

    def prepare(self, X: Any, **how: Any) -> Matrix:
        """Return the inputs of some rows; `how` as for :meth:`read`."""
        return self.inputs(self.read(X, **how))

    def inputs(self, read: ReadRows) -> Matrix:
        """Return the inputs of rows that were read, their gaps filled."""
        inputs = inputs_of(self.schema, read)
        return inputs if self.gaps is None else fill_gaps(self.gaps, self.schema, read, inputs)

    def with_gap_filling(self, source: Matrix, target: Matrix) -> TablePreprocessor:
        """Return the same with what rows of both domains say of gaps, where they are not wide."""
        observed = list(self.blocks.observed)
        if len(observed) > MOST_INPUTS:
            return self
        gaps = GapFilling.fitted(source[:, observed], target[:, observed])
        return replace(self, gaps=gaps)

    def table(self, X: Any, where: str) -> tuple[Any, int]:
        """Return rows as an Arrow table, and the number of the first."""
        if isinstance(X, pa.RecordBatch | pa.Table):
            names = [composed_name(name) for name in X.schema.names]
            return X if names == X.schema.names else X.rename_columns(names), 0
        rows = read_frame(X, where)
        if isinstance(rows, Images):
            raise InputError(f"{where} holds images, and the model was fitted on a table.")
        schema, observed = self.schema, {*self.schema.cells()}
        rows = named_like(rows, schema.order, [n for n in schema.order if n in observed])
        return rows.table, rows.first_row

    def warn_about_names(self, X: Any, model: str, *, named: bool, stacklevel: int) -> None:
        """Warn where rows have names and those of fitting had none, or the other way round."""
        rows = read_frame(X, "X")
        if isinstance(rows, Images):
            return
        sentence = None
        extra = [name for name in rows.names if name not in self.schema.order]
        if named and rows.positional:
            sentence = (
                f"X does not have valid feature names, but {model} was fitted with feature names"
            )
        elif not named and not rows.positional:
            sentence = f"X has feature names, but {model} was fitted without feature names"
        elif named and extra:
            sentence = f"Columns {extra} were not seen in fit; ignored."
        if sentence is not None:
            warnings.warn(sentence, stacklevel=stacklevel + 1)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "schema": self.schema.model_dump(mode="json")}


@dataclass(frozen=True)
class ImagePreprocessor:
    """Images: nothing to prepare but the block that is hidden.

    `hidden` is what is hidden of pictures in files, before they are resized: the blocks without
    the cells that resizing mixes with it, or the same.
    """

    kind: ClassVar[str] = "image"
    blocks: Blocks
    classes: tuple[Scalar, ...]
    scale: Scale = "own"
    hidden: Blocks | None = None

    @property
    def target_type(self) -> TargetType:
        return ClassTarget(self.classes)

    def prepare(
        self, X: Any, *, complete: bool = False, where: str = "X", first_row: int | None = None
    ) -> Matrix:
        """Return images in single precision, the missing block hidden unless `complete`."""
        images = read_frame(X, where)
        if not isinstance(images, Images):
            raise InputError(f"{where} holds a table, and the model was fitted on images.")
        return prepare_images(images, self.blocks, complete=complete, scale=self.scale)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "blocks": self.blocks.to_dict(),
            "classes": list(self.classes),
            "scale": self.scale,
            "hidden": None if self.hidden is None else self.hidden.to_dict(),
        }


Preprocessor = TablePreprocessor | ImagePreprocessor


def preprocessor_from_dict(data: Mapping[str, Any]) -> Preprocessor:
    """Rebuild a preprocessor from plain data that somebody else may have written."""
    try:
        if data["kind"] == TablePreprocessor.kind:
            preprocessor: Preprocessor = TablePreprocessor(
                TableSchema.model_validate(data["schema"])
            )
        elif data["kind"] == ImagePreprocessor.kind:
            if np.prod(data["blocks"]["shape"], dtype=float) > LARGEST:
                raise InputError(f"images of shape {data['blocks']['shape']} are too large.")
            blocks, classes = Blocks.from_dict(data["blocks"]), tuple(data["classes"])
            names = [class_name(value) for value in classes]
            if len(names) < 2 or len(set(names)) < len(names):
                raise InputError(f"the classes {names} are not two or more different ones.")
            hidden = data.get("hidden")
            scale = data.get("scale", "bytes" if data.get("of_files") else "own")
            if scale not in get_args(Scale):
                raise InputError(f"its scale {scale!r} is none of {', '.join(get_args(Scale))}.")
            if hidden is not None and (hidden := Blocks.from_dict(hidden)).shape != blocks.shape:
                raise InputError(f"what it hides is of shape {hidden.shape}, not {blocks.shape}.")
            preprocessor = ImagePreprocessor(blocks, classes, scale, hidden)
        else:
            raise InputError(f"there is no preprocessor of kind {data['kind']!r}.")
    except ValidationError as error:
        raise InputError(f"schema.{first_fault(error)}.") from None
    except (KeyError, TypeError) as error:
        raise InputError(f"its preprocessor lacks or misstates {error}.") from None
    return preprocessor


# --- images ---------------------------------------------------------------------------------------


def image_blocks(source: Images, target: Images | None, missing: Missing) -> Blocks:
    """Return which pixels the target lacks: as named, or those that are NaN in all its images.

    `missing` is a side as in ``"left:0.25"``, a mask of pixels, or rows.
    """
    shape = cast(tuple[int, int, int], source.array.shape[1:])
    if isinstance(missing, Blocks):
        if missing.shape != shape:
            raise InputError(f"The blocks are for rows of shape {missing.shape}, not {shape}.")
        return missing
    if isinstance(missing, str):
        return side_blocks(shape, missing)
    if isinstance(missing, np.ndarray) and missing.ndim == 2:
        return Blocks.pixels(shape, missing)
    if missing is not None:
        return Blocks(shape, tuple(int(row) for row in cast(Sequence[int], missing)))
    found = np.zeros(shape[1:], dtype=bool)
    if target is not None:
        _check_shape(target, shape)
        found = np.isnan(target.array).all(axis=(0, 1))
    if not found.any():
        raise InputError(
            "No missing block found: the target's images are complete. Name the part that it "
            "lacks, as in missing='bottom'."
        )
    return Blocks.pixels(shape, found)


def side_blocks(shape: tuple[int, int, int], side: str) -> Blocks:
    """Return the blocks of images that lack one side: ``"bottom"``, half of them, or a fraction.

    A row or column that is missing in part is missing.
    """
    name, _, share = side.partition(":")
    try:
        fraction = Fraction(share or "0.5")
    except (ValueError, ZeroDivisionError):
        fraction = Fraction(0)
    if name not in SIDES or not 0 < fraction < 1:
        raise InputError(
            f"missing={side!r} is not understood: name a side ({', '.join(SIDES)}), and the "
            "fraction of the image between 0 and 1 that is missing there, as in 'bottom:0.5'."
        )
    mask = np.zeros(shape[1:], dtype=bool)
    lines = mask if name in ("top", "bottom") else mask.T
    count = math.ceil(fraction * len(lines))
    lines[slice(count) if name in ("top", "left") else slice(len(lines) - count, None)] = True
    return Blocks.pixels(shape, mask)


def prepare_images(
    images: Images, blocks: Blocks, *, complete: bool, scale: Scale = "own"
) -> Matrix:
    """Return images in single precision, checked, with the missing block hidden unless complete."""
    _check_shape(images, blocks.shape)
    if images.is_bytes and scale != "bytes":
        raise InputError(
            f"{capitalized(images.where)} holds bytes, and the model was fitted on numbers: give "
            "numbers on their scale."
        )
    pixels = images.array.astype(np.float32)
    shown = pixels if complete or not blocks.missing else blocks.hide(pixels)
    bad = ~np.isfinite(shown)
    if bad.any():
        raise InputError(
            f"{_place(images, bad)} holds NaN or an infinite value{_pixel(bad)}; replace it, or "
            "name it in missing=... if it was never measured."
        )
    beyond = np.abs(shown) > 1.0 + ROUNDING
    if scale != "own" and beyond.any():
        raise InputError(
            f"{_place(images, beyond)} holds {shown[beyond][0]:g}{_pixel(beyond)}, and the model "
            "was fitted on numbers from -1 to 1: give those, or bytes from 0 to 255 with "
            "X.astype('uint8') where it was fitted on bytes or files."
        )
    return shown


def _place(images: Images, where: npt.NDArray[np.bool_]) -> str:
    return f"Image {np.argwhere(where)[0][0]} of {images.where}"


def _pixel(where: npt.NDArray[np.bool_]) -> str:
    _, _, row, column = np.argwhere(where)[0]
    return f" in pixel row {row}, column {column}"


def _check_shape(images: Images, shape: tuple[int, ...]) -> None:
    if images.array.shape[1:] != shape:
        raise InputError(
            f"Rows of {images.where} have shape {images.array.shape[1:]}, but {shape} is expected."
        )
