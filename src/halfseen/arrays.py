"""Plain arrays, checked: what comes back has the shape that its name promises.

A silently broadcast shape is worse than an error: an (n, 1) column times an (n,) vector is an
(n, n) outer product whose mean looks like a number. Every formula on arrays begins here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from halfseen.errors import InputError

Matrix = npt.NDArray[np.float32]
"""Prepared rows: inputs in single precision."""
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Tensor = npt.NDArray[Any]
"""What a member learned, as a model folder keeps it: of any shape and type."""

_ROW_SUM_TOLERANCE = 1e-3
"""Probabilities often come in single precision; what is further off is not a probability."""


def vector(name: str, values: npt.ArrayLike) -> Floats:
    """Return `values` as a vector of finite numbers, or say why it is none."""
    array = _numbers(name, values)
    if array.ndim != 1:
        hint = (
            "; flatten it first: a column times a vector would be an outer product"
            if array.ndim == 2 and 1 in array.shape
            else ""
        )
        raise InputError(
            f"{name} must be a vector with one number per row, but its shape is "
            f"{array.shape}{hint}."
        )
    return _finite(name, array)


def matrix(name: str, values: npt.ArrayLike, *, allow_nan: bool = False) -> Floats:
    """Return `values` as a matrix with one row per example; images are flattened."""
    array = _numbers(name, values)
    if array.ndim < 2:
        raise InputError(
            f"{name} must be a matrix with one row per example, but its shape is {array.shape}; "
            "reshape a single column with values.reshape(-1, 1)."
        )
    flat = array.reshape(len(array), -1) if array.size else array
    return _finite(name, flat, allow_nan=allow_nan)


def probabilities(name: str, values: npt.ArrayLike) -> Floats:
    """Return `values` as class probabilities: rows in [0, 1] that sum to one."""
    array = _numbers(name, values)
    if array.ndim != 2 or array.shape[1] < 2:
        raise InputError(
            f"{name} must have one row per example and one column per class (at least two), "
            f"but its shape is {array.shape}."
        )
    least, total = _finite(name, array).min(axis=1), array.sum(axis=1)
    outside = least < -_ROW_SUM_TOLERANCE
    wrong = outside if outside.any() else np.abs(total - 1.0) > _ROW_SUM_TOLERANCE
    if wrong.any():
        row = int(wrong.argmax())
        raise InputError(
            f"Row {row} of {name} "
            + (
                f"holds {least[row]:.4g}, which is no probability; "
                if outside.any()
                else f"sums to {total[row]:.4g} where probabilities sum to 1; "
            )
            + "pass the output of predict_proba or of a softmax, not logits."
        )
    return normalized(np.maximum(array, 0.0))


def normalized(shares: npt.ArrayLike) -> Floats:
    """Return rows divided by their sums, in double precision: probabilities that sum to one."""
    array = np.asarray(shares, dtype=np.float64)
    divided: Floats = array / array.sum(axis=-1, keepdims=True)
    return divided


def labels(name: str, values: npt.ArrayLike, classes: int) -> Integers:
    """Return `values` as class positions 0 to `classes` - 1."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(f"{name} must be a vector of labels, but its shape is {array.shape}.")
    numbers = vector(name, array)
    outside = np.flatnonzero((numbers < 0) | (numbers >= classes) | (numbers != np.rint(numbers)))
    if outside.size:
        row = int(outside[0])
        raise InputError(
            f"Row {row} of {name} holds {array[row]}, but with {classes} classes a label is a "
            f"position from 0 to {classes - 1}."
        )
    return numbers.astype(np.int64)


def same_length(**named: Sequence[object] | npt.NDArray[np.generic]) -> None:
    """Refuse arrays whose numbers of rows differ."""
    (first, *_), *others = named.items()
    for name, values in others:
        if len(values) != len(named[first]):
            raise InputError(
                f"{first} has {len(named[first])} rows and {name} has {len(values)}: "
                "each row needs both."
            )


def _numbers(name: str, values: npt.ArrayLike) -> Floats:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:  # the last: a tensor with gradient
        raise InputError(f"{name} does not hold numbers: {error}.") from error


def _finite(name: str, array: Floats, *, allow_nan: bool = False) -> Floats:
    if array.size == 0:
        raise InputError(f"{name} is empty: its shape is {array.shape}.")
    wrong = np.argwhere(~np.isfinite(array))
    if wrong.size and not allow_nan:
        where = ", ".join(str(int(position)) for position in wrong[0])
        raise InputError(
            f"{name} holds {array[tuple(wrong[0])]} at position ({where}), where a finite number "
            "is needed; drop or fill such rows first."
        )
    return array
