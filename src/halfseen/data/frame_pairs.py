"""Two frames, as Python has them, understood like two files."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from halfseen.arrays import Floats
from halfseen.blocks import Blocks
from halfseen.data.column_spec import ColumnSpec, Missing, Task
from halfseen.data.frames import named_like, with_label
from halfseen.data.label_column import FEWEST_ROWS
from halfseen.data.schema_inference import InferredTables, ambiguous_columns, infer_schema
from halfseen.data.tables import ArrowTable
from halfseen.errors import InputError


def infer_frames(
    source: ArrowTable,
    labels: pa.Array,
    target: ArrowTable | None,
    *,
    missing: Missing = None,
    keep: Sequence[Any] | None = (),
    categorical: Sequence[Any] = (),
    drop: Sequence[Any] = (),
    complete: bool = False,
    fewest: int = FEWEST_ROWS,
    target_labels: pa.Array | None = None,
    task: Task = "classification",
    weights: Floats | None = None,
) -> InferredTables:
    """Return what was understood of a labelled frame and a target's.

    Without a target the source's own rows stand in for one without shift. Columns are named as in
    :class:`~halfseen.data.column_spec.ColumnSpec`, or by position; `keep=None` keeps all.
    `target_labels` are null where there is none, and used wherever there are enough; `complete`
    is as for :func:`~halfseen.data.schema_inference.infer_schema`.
    """
    hidden = _missing_names(source, missing)
    names = source.names
    if target is None:
        if not hidden and not complete:
            raise InputError(
                "No target was given, so missing=[...] must name the block that predictions do "
                f"without (n_features={len(names)})."
            )
        observed = [name for name in names if name not in hidden]
        target = ArrowTable(source.table.select(observed), "the target", source.positional)
    else:
        target = _matched(source, target, hidden, explicit=missing is not None)
    taken = {*names, *target.names}
    label, weight = _free("label", taken), _free("weight", taken)
    whole = with_label(source, labels, label)
    if weights is not None:
        whole = with_label(whole, weights, weight)
    if target_labels is not None:
        target = with_label(target, target_labels, label)
    dropped = _names(drop, names)
    spec = ColumnSpec(
        label,
        missing=hidden,
        keep=tuple(n for n in names if n not in (*hidden, *dropped))
        if keep is None
        else _names(keep, names),
        categorical=_names(categorical, names),
        drop=dropped,
        in_python=True,
        target_labels=True,
        task=task,
        weight=None if weights is None else weight,
    )
    found = infer_schema(whole, target, spec, complete=complete, fewest=fewest)
    if isinstance(found, InferredTables):
        return found
    raise ambiguous_columns(found, spec)


def _free(name: str, taken: set[str]) -> str:
    """Return a name that no column has."""
    while name in taken:
        name += "_"
    return name


def _missing_names(source: ArrowTable, missing: Missing) -> tuple[str, ...]:
    """Return the missing block by name, however it was named."""
    if missing is None:
        return ()
    names = source.names
    blocks = missing if isinstance(missing, Blocks) else Blocks.columns(names, missing)
    if blocks.shape != (len(names),):
        raise InputError(f"The blocks are for rows of shape {blocks.shape}, not {(len(names),)}.")
    return tuple(names[position] for position in blocks.missing)


def _matched(
    source: ArrowTable, target: ArrowTable, missing: Sequence[str], *, explicit: bool
) -> ArrowTable:
    """Return the target with the source's names; refuse columns that do not correspond."""
    names = source.names
    if target.positional:
        widths = {len(names), len(names) - len(missing)}
        if len(target.names) not in widths:
            raise InputError(
                f"Source rows have shape ({len(names)},) and target rows ({len(target.names)},), "
                "without column names to compare: name the missing block with missing=[...]."
            )
        return named_like(target, names, [name for name in names if name not in missing])
    extra = [name for name in target.names if name not in names]
    if extra:
        warnings.warn(
            f"The target has column {extra[0]!r}"
            + (f" and {len(extra) - 1} more" if len(extra) > 1 else "")
            + ", which the source lacks; ignored.",
            stacklevel=5,
        )
    absent = [name for name in names if name not in target.names and name not in missing]
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
