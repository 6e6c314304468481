"""What a person hands over in Python: data frames, arrays and images, as tables and rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, time
from decimal import Decimal
from types import NoneType
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.sparse import issparse
from sklearn.utils.validation import check_array, column_or_1d

from halfseen.arrays import Floats
from halfseen.blocks import Blocks
from halfseen.data.arrow_columns import LARGEST_BATCH
from halfseen.data.column_spec import ColumnSpec, Missing, Task
from halfseen.data.label_column import FEWEST_ROWS
from halfseen.data.schema_inference import InferredTables, ambiguous_columns, infer_schema
from halfseen.data.tables import ArrowTable
from halfseen.data.values import cells_of, check_alike, composed_name
from halfseen.errors import InputError, capitalized, one_line

PLAIN_CELLS = (str, int, float, Decimal, date, time, NoneType)
"""What a cell of a column may be that holds things of several types."""


@dataclass(frozen=True)
class Images:
    """Images as given: (rows, channels, height, width); bytes are brought to [-1, 1]."""

    array: npt.NDArray[Any]
    where: str
    is_bytes: bool = False

    def __len__(self) -> int:
        return len(self.array)


def read_frame(X: Any, where: str) -> ArrowTable | Images:
    """Read a pandas, polars or Arrow table, a matrix, or images, which messages call `where`."""
    if isinstance(X, pa.RecordBatch):
        X = pa.Table.from_batches([X])
    try:
        frame = nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise InputError(
            f"{capitalized(where)} has a column more than once: {one_line(error)}."
        ) from None
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, nw.DataFrame):
        return _from_frame(frame, where)
    dense = _dense(X, where)
    is_bytes = getattr(dense, "dtype", None) == np.uint8 and dense.ndim > 2
    array = check_array(
        scaled_bytes(dense) if is_bytes else dense,
        dtype=[np.float64, np.float32],
        allow_nd=True,
        ensure_all_finite=False,
        input_name="X" if where == "the source" else where,
    )
    if array.ndim == 2:
        columns = [pa.array(column, from_pandas=True) for column in array.T]
        names = [f"x{position}" for position in range(array.shape[1])]
        return ArrowTable(pa.table(columns, names), where, positional=True)
    if array.ndim == 3:  # grey images without a channel axis
        array = array[:, None]
    if array.ndim != 4:
        raise InputError(
            f"{capitalized(where)} has shape {array.shape}; give (rows, columns) or images of "
            "shape (rows, channels, height, width)."
        )
    return Images(array, where, is_bytes)


def scaled_bytes(pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """Return the bytes of pixels as numbers in [-1, 1]."""
    return pixels.astype(np.float32) * np.float32(2 / 255) - np.float32(1)


def _dense(X: Any, where: str) -> Any:
    """Return a sparse matrix with all of its zeros, where they fit; anything else as it is."""
    if not issparse(X):
        return X
    size = int(np.prod(X.shape, dtype=np.int64)) * X.dtype.itemsize
    if size > LARGEST_BATCH:
        raise InputError(
            f"{capitalized(where)} is sparse and takes {size / 2**20:,.0f} MiB with its zeros, "
            f"more than {LARGEST_BATCH / 2**20:,.0f}: choose columns, or reduce them first "
            "(sklearn.decomposition.TruncatedSVD)."
        )
    return X.toarray()


def _from_frame(frame: nw.DataFrame[Any], where: str) -> ArrowTable:
    names = [composed_name(str(name)) for name in frame.columns]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"{capitalized(where)} has a column more than once: {twice[0]!r}.")
    check_alike({where: names})
    if not names or not len(frame):
        raise InputError(
            f"{capitalized(where)} has {len(frame)} rows and {len(names)} columns: nothing there."
        )
    columns, mixed = [], set()
    for name, series in zip(names, frame.iter_columns(), strict=True):
        try:
            columns.append(series.to_arrow())
        except (pa.ArrowException, TypeError, ValueError) as error:  # also sparse columns
            cells = series.to_list()
            strange = next((cell for cell in cells if not isinstance(cell, PLAIN_CELLS)), None)
            if strange is not None:
                raise InputError(
                    f"Column {name!r} of {where} holds what cannot be read "
                    f"({type(strange).__name__}: {one_line(error)}). Make it all numbers or all "
                    "texts."
                ) from None
            values, is_mixed = cells_of(cells)
            columns.append(values)
            mixed |= {name} if is_mixed else set()
    return ArrowTable(pa.table(columns, names), where, texts=frozenset(mixed))


def named_like(rows: ArrowTable, order: Sequence[str], observed: Sequence[str]) -> ArrowTable:
    """Give the columns of a matrix the names of a model's: all in their order, or the observed."""
    for names in (order, observed):
        if rows.positional and len(rows.names) == len(names):
            return replace(rows, table=rows.table.rename_columns(list(names)))
    if rows.positional:
        raise InputError(
            f"{rows.where} has {len(rows.names)} features, but halfseen is expecting {len(order)} "
            f"features as input, or {len(observed)} without the missing block."
        )
    return rows


# --- labels beside them -------------------------------------------------------------------------


def label_column(
    y: Any, rows: int, task: str = "classification"
) -> tuple[npt.NDArray[Any], pa.Array]:
    """Return the labels of source rows, checked, as an array and as an Arrow column."""
    labels = column_or_1d(np.asarray(y), warn=True)
    if len(labels) != rows:
        raise InputError(f"There are {rows} source rows and {len(labels)} labels.")
    absent = [label is None or label != label for label in labels.tolist()]
    if any(absent):
        raise InputError(
            f"The source label of row {absent.index(True)} is missing (NaN): every source row "
            "needs a label; drop the rows that have none."
        )
    continuous = labels.dtype.kind == "f" and not np.all(labels == np.round(labels))
    if task == "classification" and continuous:
        raise InputError(
            f"Unknown label type: the source labels are continuous numbers such as {labels[0]}; "
            "classes are needed. HalfSeenRegressor predicts amounts."
        )
    return labels, _of_one_kind(labels.tolist(), "The source labels")


def target_label_column(y: Any, rows: int) -> pa.Array:
    """Return labels of target rows as an Arrow column, null for None and NaN."""
    labels = column_or_1d(np.asarray(y, dtype=object), dtype=object)
    if len(labels) != rows:
        raise InputError(f"There are {rows} target rows and {len(labels)} labels in y_target.")
    known = [None if label is None or label != label else label for label in labels.tolist()]
    return _of_one_kind(known, "The labels in y_target")


def _of_one_kind(labels: list[Any], called: str) -> pa.Array:
    try:
        return pa.array(labels)
    except (pa.ArrowException, TypeError) as error:
        raise InputError(f"{called} hold values of several kinds: {one_line(error)}.") from None


def split_stacked(
    X: Any, y: Any, sample_domain: Any, sample_weight: Any = None
) -> tuple[Any, Any, Any, Any]:
    """Split the stacked form into source inputs, source labels, target inputs, source weights.

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
    weights = None if sample_weight is None else take_rows(sample_weight, is_source)
    return take_rows(X, is_source), take_rows(y, is_source), take_rows(X, is_target), weights


def take_rows(values: Any, rows: npt.NDArray[np.bool_]) -> Any:
    """Select rows of an array, a data frame or a series."""
    native = nw.from_native(values, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(native, nw.DataFrame | nw.Series):
        return native.filter(rows.tolist()).to_native()
    return np.asarray(values)[rows]


# --- two of them, understood like two files -----------------------------------------------------


def infer_frames(
    source: ArrowTable,
    labels: pa.Array,
    target: ArrowTable | None,
    *,
    missing: Missing = None,
    keep: Sequence[Any] | None = (),
    categorical: Sequence[Any] = (),
    drop: Sequence[Any] = (),
    fewest: int = FEWEST_ROWS,
    target_labels: pa.Array | None = None,
    task: Task = "classification",
    weights: Floats | None = None,
) -> InferredTables:
    """Return what was understood of a labelled frame and a target's.

    Without a target the source's own rows stand in for one without shift. Columns are named as in
    :class:`~halfseen.data.column_spec.ColumnSpec`, or by position; `keep=None` keeps all.
    `target_labels` are null where there is none, and used wherever there are enough.
    """
    names = source.names
    hidden: tuple[str, ...] = ()
    if missing is not None:
        blocks = missing if isinstance(missing, Blocks) else Blocks.columns(names, missing)
        if blocks.shape != (len(names),):
            raise InputError(
                f"The blocks are for rows of shape {blocks.shape}, not {(len(names),)}."
            )
        hidden = tuple(names[position] for position in blocks.missing)
    observed = [name for name in names if name not in hidden]
    if target is not None:
        target = _matched(source, target, observed, explicit=missing is not None)
    elif hidden:
        target = replace(source, table=source.table.select(observed), where="the target")
    else:
        raise InputError(
            "No target was given, so missing=[...] must name the block that predictions do "
            f"without (n_features={len(names)})."
        )
    label, weight = "label", "weight"
    while {label, weight} & {*names, *target.names}:
        label, weight = f"{label}_", f"{weight}_"
    whole = _with_column(source, labels, label)
    if weights is not None:
        whole = _with_column(whole, weights, weight)
    if target_labels is not None:
        target = _with_column(target, target_labels, label)
    dropped = _names(drop, names)
    spec = ColumnSpec(
        label,
        missing=hidden,
        keep=tuple(n for n in observed if n not in dropped)
        if keep is None
        else _names(keep, names),
        categorical=_names(categorical, names),
        drop=dropped,
        in_python=True,
        target_labels=True,
        task=task,
        weight=None if weights is None else weight,
    )
    found = infer_schema(whole, target, spec, fewest=fewest)
    if isinstance(found, InferredTables):
        return found
    raise ambiguous_columns(found, spec)


def _with_column(table: ArrowTable, cells: Any, name: str) -> ArrowTable:
    """Return the table with labels, or weights, as one more column."""
    return replace(table, table=table.table.append_column(name, pa.array(cells)))


def _matched(
    source: ArrowTable, target: ArrowTable, observed: Sequence[str], *, explicit: bool
) -> ArrowTable:
    """Return the target with the source's names; refuse columns that do not correspond."""
    names = source.names
    if target.positional:
        if len(target.names) not in (len(names), len(observed)):
            raise InputError(
                f"Source rows have shape ({len(names)},) and target rows ({len(target.names)},), "
                "without column names to compare: name the missing block with missing=[...]."
            )
        return named_like(target, names, observed)
    extra = [name for name in target.names if name not in names]
    if extra:
        warnings.warn(
            f"The target has column {extra[0]!r}"
            + (f" and {len(extra) - 1} more" if len(extra) > 1 else "")
            + ", which the source lacks; ignored.",
            stacklevel=5,
        )
    absent = [name for name in observed if name not in target.names]
    if explicit and absent:
        raise InputError(
            f"The target lacks column {absent[0]!r}, which missing=[...] does not name: name it "
            "there too, or leave missing out to have the block found."
        )
    return target


def _names(given: Sequence[Any], names: Sequence[str]) -> tuple[str, ...]:
    """Return columns by name; positions count from zero."""
    found = []
    for entry in [given] if isinstance(given, str) else given:
        if not isinstance(entry, int | np.integer) or isinstance(entry, bool):
            found.append(str(entry))
        elif -len(names) <= entry < len(names):
            found.append(names[int(entry)])
        else:
            raise InputError(f"There is no column {entry}; there are {len(names)}.")
    return tuple(found)
