"""Maps of continuous columns: from one domain's prepared values to the scale members learn on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from halfseen.arrays import Floats, Integers, Matrix, Tensor
from halfseen.errors import InputError

if TYPE_CHECKING:
    from halfseen.graph import GraphBuilder

__all__ = ["ColumnMap", "Continuous", "continuous_columns"]


LIMIT = 20.0
"""Mapped values are kept within minus and plus this many standard deviations."""
SMALLEST = 1e-12
FEWEST_VALUES, SHARE_OF_VALUES = 20, 0.05
"""Different values that a continuous column has at least, and their share of its rows."""
_NAMES = ("positions", "mean", "scale", "logarithm", "slope", "offset")


@dataclass(frozen=True, eq=False)
class Continuous:
    """Columns that measure: which inputs they are, and the raw values behind them.

    Parameters
    ----------
    positions
        Places among the inputs.
    mean, scale
        A prepared value x stands for ``scale * x + mean``.
    logged
        Whether that is a logarithm already.
    """

    positions: Integers
    mean: Floats
    scale: Floats
    logged: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, chosen: npt.NDArray[np.bool_]) -> Continuous:
        return Continuous(
            self.positions[chosen], self.mean[chosen], self.scale[chosen], self.logged[chosen]
        )


def continuous_columns(measured: Continuous, source: Matrix, target: Matrix) -> Continuous:
    """Return those columns that hold many different values in both domains.

    Flags, codes and tied integers are left out: moved by a fraction, each of their values would
    tell the domain.
    """

    def many(rows: Matrix, position: int) -> bool:
        values = len(np.unique(rows[:, position]))
        return values > max(FEWEST_VALUES, SHARE_OF_VALUES * len(rows))

    chosen = [all(many(rows, p) for rows in (source, target)) for p in measured.positions]
    return measured[np.array(chosen, dtype=bool)]


@dataclass(frozen=True, eq=False)
class ColumnMap:
    """``slope * g(scale * x + mean) + offset`` for some columns; the others stay as they are.

    g is the signed logarithm sign(v) log(1 + |v|) where `logarithm`, and else nothing.

    Examples
    --------
    >>> rows = np.array([[0.0, 5.0], [2.0, 5.0]], dtype=np.float32)
    >>> columns = Continuous(np.array([0]), np.zeros(1), np.ones(1), np.zeros(1, dtype=bool))
    >>> ColumnMap.standard(columns, rows, logarithm=False)(rows)
    array([[-1.,  5.],
           [ 1.,  5.]], dtype=float32)
    """

    positions: Integers
    mean: Floats
    scale: Floats
    logarithm: npt.NDArray[np.bool_]
    slope: Floats
    offset: Floats

    @classmethod
    def standard(cls, columns: Continuous, rows: Matrix, *, logarithm: bool) -> ColumnMap:
        """Return the map that gives some rows mean zero and standard deviation one."""
        ones, zeros = np.ones(len(columns)), np.zeros(len(columns))
        logs = ~columns.logged & logarithm
        raw = cls(columns.positions, columns.mean, columns.scale, logs, ones, zeros)
        values = raw.values(rows)
        return raw.moved_to(values, np.zeros(len(columns)), np.ones(len(columns)))

    def moved_to(self, values: Floats, mean: Floats, deviation: Floats) -> ColumnMap:
        """Return the map that gives some values of g a mean and a standard deviation."""
        spread = values.std(axis=0)
        slope = np.where(spread > SMALLEST, deviation / np.maximum(spread, SMALLEST), 1.0)
        return replace(self, slope=slope, offset=mean - slope * values.mean(axis=0))

    def values(self, rows: Matrix) -> Floats:
        """Return g of the raw values."""
        raw = self.scale * rows[:, self.positions].astype(np.float64) + self.mean
        found: Floats = np.where(self.logarithm, np.sign(raw) * np.log1p(np.abs(raw)), raw)
        return found

    def mapped(self, values: Floats) -> Floats:
        """Return where values of g end."""
        found: Floats = np.clip(self.slope * values + self.offset, -LIMIT, LIMIT)
        return found

    def __call__(self, rows: Matrix) -> Matrix:
        """Return rows with the columns mapped."""
        found = rows.copy()
        found[:, self.positions] = self.mapped(self.values(rows))
        return found

    # --- folders and graphs -----------------------------------------------------------------

    def tensors(self) -> dict[str, Tensor]:
        """Return copies of all arrays by name: maps share some, and files may not."""
        return {name: getattr(self, name).copy() for name in _NAMES}

    @classmethod
    def restored(cls, tensors: Mapping[str, Tensor], inputs: int) -> ColumnMap:
        """Rebuild a map from tensors that somebody else may have written."""
        if set(tensors) != set(_NAMES):
            raise InputError(f"a map of columns has the tensors {_NAMES}, not {sorted(tensors)}.")
        arrays = {name: tensors[name] for name in _NAMES}
        positions = arrays["positions"]
        kinds = [a.dtype for a in arrays.values()]
        wanted: Sequence[Any] = [np.int64, np.float64, np.float64, np.bool_, *[np.float64] * 2]
        if kinds != list(wanted) or any(a.shape != (len(positions),) for a in arrays.values()):
            raise InputError("the arrays of a map of columns do not fit together.")
        if ((positions < 0) | (positions >= inputs)).any() or len(set(positions)) < len(positions):
            raise InputError(f"a map of columns names inputs beyond the {inputs} there are.")
        return cls(**arrays)

    def add_to_graph(self, builder: GraphBuilder, rows: str, inputs: int) -> str:
        """Add the map to an ONNX graph; columns that it leaves alone pass by."""
        from onnx import TensorProto

        def full(values: Floats, other: float) -> str:
            array = np.full(inputs, other)
            array[self.positions] = values
            return builder.constant(array)

        raw = builder.node("Cast", rows, to=TensorProto.DOUBLE)
        raw = builder.node(
            "Add", builder.node("Mul", raw, full(self.scale, 1.0)), full(self.mean, 0.0)
        )
        if self.logarithm.any():
            size = builder.node("Add", builder.node("Abs", raw), builder.constant(np.ones(1)))
            logs = builder.node("Mul", builder.node("Sign", raw), builder.node("Log", size))
            chosen = np.zeros(inputs, dtype=bool)
            chosen[self.positions] = self.logarithm
            raw = builder.node("Where", builder.constant(chosen), logs, raw)
        moved = builder.node("Mul", raw, full(self.slope, 1.0))
        moved = builder.node("Add", moved, full(self.offset, 0.0))
        limits = [builder.constant(np.array(limit)) for limit in (-LIMIT, LIMIT)]
        moved = builder.node("Cast", builder.node("Clip", moved, *limits), to=TensorProto.FLOAT)
        mapped = np.zeros(inputs, dtype=bool)
        mapped[self.positions] = True
        return builder.node("Where", builder.constant(mapped), moved, rows)
