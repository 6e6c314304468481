"""What a user hands over (arrays, images, data frames) as checked matrices and blocks."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import narwhals as nw
import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_array, column_or_1d

from halfseen.blocks import Blocks
from halfseen.errors import InputError

__all__ = [
    "Missing",
    "Table",
    "compare_names",
    "encode_labels",
    "prepare_domains",
    "prepare_rows",
    "read_inputs",
    "split_stacked",
    "take_rows",
]

Matrix = npt.NDArray[np.float32]
Missing = Blocks | Sequence[str] | Sequence[int] | npt.NDArray[np.bool_] | str | None
"""How a user may name the missing block; None finds it."""


@dataclass(frozen=True)
class Table:
    """Inputs as given: an array without names, or the columns of a data frame."""

    role: str
    array: npt.NDArray[Any] | None = None
    columns: dict[str, nw.Series[Any]] | None = None

    @property
    def names(self) -> tuple[str, ...] | None:
        """Column names, where there are any."""
        return None if self.columns is None else tuple(self.columns)

    def __len__(self) -> int:
        if self.columns is not None:
            return len(next(iter(self.columns.values()), ()))
        assert self.array is not None
        return len(self.array)

    def matrix(self, names: Sequence[str] | None = None) -> Matrix:
        """Return the values, of the named columns in that order; an absent column is NaN."""
        if self.columns is None:
            assert self.array is not None
            return _float32(self.array, self.role)
        wanted = self.names if names is None else names
        assert wanted is not None
        values = [
            self._values(name) if name in self.columns else np.full(len(self), np.nan)
            for name in wanted
        ]
        return _float32(np.column_stack(values), self.role)

    def _values(self, name: str) -> npt.NDArray[np.float64]:
        assert self.columns is not None
        column = self.columns[name]
        if not (column.dtype.is_numeric() or column.dtype == nw.Boolean):
            if _all_null(column):
                return np.full(len(self), np.nan)
            raise InputError(
                f"Column {name!r} of {self.role} holds {column.dtype}, not numbers: encode "
                "it first (for example with sklearn.preprocessing.OrdinalEncoder), or drop it."
            )
        values: npt.NDArray[np.float64] = column.cast(nw.Float64).to_numpy()
        return values


def read_inputs(X: Any, role: str) -> Table:
    """Read a NumPy array, a tensor, or a pandas, polars or Arrow table.

    Examples
    --------
    >>> read_inputs(np.zeros((3, 2)), "the source").names is None
    True
    """
    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise InputError(
            f"{_capital(role)} has a column more than once: {' '.join(str(error).split())}."
        ) from None
    if isinstance(frame, nw.DataFrame):
        names = [str(name) for name in frame.columns]
        if not names or not len(frame):
            raise InputError(
                f"{_capital(role)} has {len(frame)} rows and {len(names)} columns: nothing there."
            )
        columns = dict(zip(names, frame.iter_columns(), strict=True))
        return Table(role, columns=columns)
    array = check_array(
        X,
        dtype=[np.float64, np.float32],
        allow_nd=True,
        ensure_all_finite=False,
        input_name="X" if role == "the source" else role,
    )
    if array.ndim == 3:  # grey images without a channel axis
        array = array[:, None]
    if array.ndim not in (2, 4):
        raise InputError(
            f"{_capital(role)} has shape {array.shape}; give (rows, columns) or images of shape "
            "(rows, channels, height, width)."
        )
    return Table(role, array=array)


def prepare_domains(
    source: Table, target: Table | None, missing: Missing, *, complete_target: bool
) -> tuple[Blocks, Matrix, Matrix]:
    """Find the missing block and return it with complete source and hidden target matrices.

    Parameters
    ----------
    source, target
        As read. Without a target, the source's own rows with the block hidden stand in for it.
    missing
        The block as the user names it; None looks for what the target lacks.
    complete_target
        Whether the model is shown the target's x2 too (benchmarks), so that nothing need be
        missing and nothing is hidden.
    """
    if target is not None:
        _check_same_columns(source, target)
    source_matrix = source.matrix()
    shape = source_matrix.shape[1:]
    blocks = _find_blocks(source, target, missing, shape, complete_target)
    _check_complete(source_matrix, blocks, "the source", range(blocks.length))
    target_matrix = source_matrix if target is None else align(target, source.names, blocks)
    return blocks, source_matrix, _hidden(target_matrix, blocks, complete_target, "the target")


def prepare_rows(rows: Table, blocks: Blocks, *, complete: bool) -> Matrix:
    """Return rows to predict on as the target matrices of training look."""
    return _hidden(align(rows, blocks.names, blocks), blocks, complete, rows.role)


def align(table: Table, names: tuple[str, ...] | None, blocks: Blocks) -> Matrix:
    """Bring a table to the source's columns; those of the missing block may be absent."""
    if table.columns is not None and names is not None:
        needed = blocks.names_of(blocks.observed)
        absent = [name for name in needed if name not in table.columns]
        if absent:
            raise InputError(
                f"{_capital(table.role)} lacks column {absent[0]!r}, which the model observes."
            )
        return table.matrix(names)
    matrix = table.matrix()
    if matrix.shape[1:] == blocks.shape:
        return matrix
    if blocks.is_table and matrix.ndim == 2 and matrix.shape[1] == len(blocks.observed):
        widened = np.full((len(matrix), blocks.length), np.nan, dtype=np.float32)
        widened[:, list(blocks.observed)] = matrix
        return widened
    if blocks.is_table and matrix.ndim == 2:
        raise InputError(
            f"{table.role} has {matrix.shape[1]} features, but halfseen is expecting "
            f"{blocks.length} features as input, or {len(blocks.observed)} without the missing "
            "block."
        )
    raise InputError(
        f"Rows of {table.role} have shape {matrix.shape[1:]}, but {blocks.shape} is expected."
    )


def split_stacked(X: Any, y: Any, sample_domain: Any) -> tuple[Any, Any, Any]:
    """Split the stacked form into source inputs, source labels and target inputs.

    Positive entries of `sample_domain` mark source rows, negative ones target rows, whose
    labels are dropped here unread.
    """
    domain = np.asarray(sample_domain)
    if domain.shape != (len(y),):
        raise InputError(
            f"sample_domain has shape {domain.shape} for {len(y)} rows: give one number per row."
        )
    is_source, is_target = domain > 0, domain < 0
    if not is_source.any() or not is_target.any():
        raise InputError(
            "sample_domain must hold positive numbers for source rows and negative ones for "
            f"target rows; it holds {np.unique(domain).tolist()[:5]}."
        )
    return take_rows(X, is_source), take_rows(y, is_source), take_rows(X, is_target)


def encode_labels(y: Any, rows: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return the sorted classes and each row's position among them."""
    labels = column_or_1d(np.asarray(y), warn=True)
    if len(labels) != rows:
        raise InputError(f"There are {rows} source rows and {len(labels)} labels.")
    absent = np.array([label is None or label != label for label in labels.tolist()], dtype=bool)
    if absent.any():
        raise InputError(
            f"The source label of row {int(np.argmax(absent))} is missing (NaN): every source row "
            "needs a label; drop the rows that have none."
        )
    if labels.dtype.kind == "f" and not np.all(labels == np.round(labels)):
        raise InputError(
            f"Unknown label type: the source labels are continuous numbers such as {labels[0]}; "
            "classes are needed."
        )
    classes, encoded = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise InputError(
            f"The source labels hold one class, {classes.tolist()[0]!r}; two or more are needed to "
            "learn a classifier."
        )
    return classes, encoded.astype(np.int64)


def compare_names(
    fitted: Sequence[str] | None, given: Sequence[str] | None, model: str, *, stacklevel: int
) -> None:
    """Warn where rows to predict on have names and those of fitting had none, or otherwise."""
    warning = None
    if fitted is not None and given is None:
        warning = f"X does not have valid feature names, but {model} was fitted with feature names"
    elif fitted is None and given is not None:
        warning = f"X has feature names, but {model} was fitted without feature names"
    elif fitted is not None and given is not None:
        extra = [name for name in given if name not in set(fitted)]
        warning = f"Columns {extra} were not seen in fit; ignored." if extra else None
    if warning is not None:
        warnings.warn(warning, stacklevel=stacklevel + 1)


def _find_blocks(
    source: Table,
    target: Table | None,
    missing: Missing,
    shape: tuple[int, ...],
    complete_target: bool,
) -> Blocks:
    if isinstance(missing, Blocks):
        if missing.shape != shape:
            raise InputError(f"The blocks are for rows of shape {missing.shape}, not {shape}.")
        return missing
    if len(shape) == 3 and isinstance(missing, str):
        return Blocks.rows(shape, side=cast(Literal["top", "bottom"], missing))
    columns: int | tuple[str, ...] = source.names or shape[0]
    if missing is not None and len(shape) == 1:
        blocks = Blocks.columns(columns, missing)
    elif missing is not None:
        blocks = Blocks(shape, tuple(int(row) for row in missing))
    else:
        found = () if target is None else _lacking(source, target, shape)
        names = source.names if len(shape) == 1 else None
        blocks = Blocks(shape, found, names)
    if not blocks.missing and not complete_target:
        raise InputError(
            f"No missing block found among {blocks.length} columns (n_features={blocks.length}): "
            "the target has them all. Name what it lacks with missing=[...], or fit "
            "DomainAdaptationClassifier(view='full')."
            if target is not None
            else "No target was given, so missing=[...] must name the block that predictions "
            f"do without (n_features={blocks.length})."
        )
    return blocks


def _lacking(source: Table, target: Table, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Positions of what the target lacks or has entirely empty."""
    if source.names is not None and target.columns is not None:
        return tuple(
            position
            for position, name in enumerate(source.names)
            if name not in target.columns or _all_null(target.columns[name])
        )
    matrix = target.matrix()
    if matrix.shape[1:] != shape:
        raise InputError(
            f"Source rows have shape {shape} and target rows {matrix.shape[1:]}, without column "
            "names to compare: name the missing block with missing=[...]."
        )
    empty = np.isnan(matrix)
    axes = (0,) if len(shape) == 1 else (0, 1, 3)
    return tuple(int(p) for p in np.flatnonzero(empty.all(axis=axes)))


def _check_same_columns(source: Table, target: Table) -> None:
    if source.columns is None or target.columns is None:
        return
    extra = [name for name in target.columns if name not in source.columns]
    if extra:
        raise InputError(
            f"The target has column {extra[0]!r}, which the source lacks; drop it, or add it to "
            "the source."
        )
    for name, column in target.columns.items():
        here, there = source.columns[name].dtype, column.dtype
        if _is_number(here) != _is_number(there) and not _all_null(column):
            raise InputError(
                f"Column {name!r} is {here} in the source and {there} in the target; convert one "
                "of them."
            )


def _hidden(matrix: Matrix, blocks: Blocks, complete: bool, role: str) -> Matrix:
    """Check what is observed, and hide the missing block unless the model is shown it."""
    if complete:
        _check_complete(matrix, blocks, role, range(blocks.length))
        return matrix
    _check_complete(matrix, blocks, role, blocks.observed)
    return blocks.hide(matrix) if blocks.missing else matrix


def _check_complete(matrix: Matrix, blocks: Blocks, role: str, positions: Sequence[int]) -> None:
    """Refuse NaN and infinity where values are needed, naming the column and the row."""
    chosen = list(positions)
    part = matrix[:, chosen] if blocks.is_table else matrix[:, :, chosen]
    bad = ~np.isfinite(part)
    if not bad.any():
        return
    row, *rest = (int(index) for index in np.argwhere(bad)[0])
    (name,) = blocks.names_of([chosen[rest[0] if blocks.is_table else rest[1]]])
    place = _capital(name) if blocks.names is None else f"Column {name!r}"
    value = part[(row, *rest)]
    if np.isinf(value):
        raise InputError(
            f"{place} of {role} holds an infinite value (inf) in row {row}; replace "
            "it by a finite number or drop the row."
        )
    count = int(np.isnan(part).any(axis=tuple(range(1, part.ndim))).sum())
    advice = (
        "fill it first, for example with sklearn.impute.SimpleImputer"
        if role == "the source"
        else "it is observed, so fill it first, for example with sklearn.impute.SimpleImputer, or "
        "name it in missing=[...] if it was never measured"
    )
    raise InputError(f"{place} of {role} is NaN in row {row} ({count} rows hold NaN): {advice}.")


def _capital(phrase: str) -> str:
    return phrase[0].upper() + phrase[1:]


def _float32(values: npt.NDArray[Any], role: str) -> Matrix:
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
    too_large = np.isinf(narrow) & np.isfinite(values)
    if too_large.any():
        row, column = (int(i) for i in np.argwhere(too_large)[0][:2])
        raise InputError(
            f"{_capital(role)} holds {values[too_large][0]:g} in row {row}, column {column}: too "
            "large for single precision; rescale the column."
        )
    return narrow


def _is_number(dtype: nw.dtypes.DType) -> bool:
    return dtype.is_numeric() or dtype == nw.Boolean


def _all_null(column: nw.Series[Any]) -> bool:
    missing = int(column.is_null().sum())
    if column.dtype.is_float():
        missing = int((column.is_null() | column.is_nan().fill_null(True)).sum())
    return missing == len(column)


def take_rows(values: Any, rows: npt.NDArray[np.bool_]) -> Any:
    """Select rows of an array, a data frame or a series."""
    native = nw.from_native(values, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(native, nw.DataFrame | nw.Series):
        return native.filter(rows.tolist()).to_native()
    return np.asarray(values)[rows]
