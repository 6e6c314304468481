"""What a person hands over in Python, fitted: data frames, arrays or images to one model."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from halfseen.api import ImageDomains, fit_domains
from halfseen.arrays import Floats
from halfseen.data.column_spec import Missing, Task
from halfseen.data.frames import (
    Images,
    infer_frames,
    label_column,
    named_like,
    read_frame,
    split_stacked,
    target_label_column,
)
from halfseen.data.label_column import FEWEST_ROWS, checked_weights
from halfseen.data.preprocessors import ImagePreprocessor, Scale, image_blocks, prepare_images
from halfseen.data.tables import ArrowTable
from halfseen.errors import InputError, OptionError
from halfseen.fitting.member_training import Hooks
from halfseen.members import Sample
from halfseen.model.model import Model
from halfseen.settings import FitSettings


@dataclass(frozen=True)
class FrameFit:
    """A fitted model, and what an estimator tells of the rows that it was given."""

    model: Model
    classes: npt.NDArray[Any]
    features: int
    names: tuple[str, ...] | None
    """Of the columns, where they had any."""
    notes: list[str]


def fit_frames(
    X: Any,
    y: Any,
    X_target: Any,
    settings: FitSettings,
    hooks: Hooks,
    *,
    X_unlabelled: Any = None,
    y_target: Any = None,
    sample_domain: Any = None,
    sample_weight: Any = None,
    task: Task = "classification",
    missing: Missing = None,
    **columns: Any,
) -> FrameFit:
    """Fit a model, as :meth:`halfseen.HalfSeenClassifier.fit` says.

    `columns` are what is said of them: keep, categorical and drop.
    """
    if sample_domain is not None:
        if X_target is not None:
            raise OptionError("Give either X_target or sample_domain, not both.")
        if y_target is not None:
            raise OptionError("y_target goes with X_target, not with sample_domain.")
        X, y, X_target, sample_weight = split_stacked(X, y, sample_domain, sample_weight)
    source = read_frame(X, "the source")
    target = None if X_target is None else read_frame(X_target, "the target")
    settings.check("image" if isinstance(source, Images) else "table")
    if y_target is not None and (target is None or isinstance(source, Images)):
        raise OptionError("y_target needs X_target, and tables: images do not use it.")
    if isinstance(source, Images) and task == "regression":
        raise InputError("Amounts are predicted of tables, and the source holds images.")
    known = known_labels(y)
    if known.all() or len(known) != len(source):
        labels, column = label_column(y, len(source), task)
    else:
        if not known.any():
            raise InputError("No source row has a label (all are None or NaN): label some of them.")
        labels, column = label_column(np.asarray(y)[known], int(known.sum()), task)
        column = _among_unlabelled(column, known)
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        raise InputError("A source label is infinite: correct it, or leave it empty.")
    weights = None if sample_weight is None else checked_weights(sample_weight, len(source))
    classes = np.unique(labels if weights is None else labels[weights[known] > 0])
    if len(classes) < 2:
        what = "class" if task == "classification" else "amount"
        raise InputError(
            f"The source labels hold one {what}, {labels.tolist()[0]!r} (n_samples={len(labels)}); "
            "two or more are needed to learn anything."
        )
    if target is None:
        warnings.warn(
            "No target was given: the source's own rows without the missing block stand in "
            "for it. Pass X_target=... to adapt to a shifted target.",
            stacklevel=3,
        )
    if isinstance(source, Images):
        more = None if X_unlabelled is None else read_frame(X_unlabelled, "the unlabelled rows")
        if isinstance(target, ArrowTable):
            raise InputError("The source holds images and the target is a table.")
        if isinstance(more, ArrowTable):
            raise InputError("The source holds images and the unlabelled rows are a table.")
        images = _image_domains(source, known, labels, target, more, weights, missing)
        model = fit_domains(images, settings, hooks)
        return FrameFit(model, classes, source.array.shape[1], None, [])
    if isinstance(target, Images):
        raise InputError("The source is a table and the target holds images.")
    if X_unlabelled is not None:
        source, column, weights = _joined(source, column, weights, X_unlabelled)
    target_labels = None
    if y_target is not None and target is not None:
        target_labels = target_label_column(y_target, len(target))
    inferred = infer_frames(
        source,
        column,
        target,
        missing=missing,
        fewest=FEWEST_ROWS if settings.holds_out("table") else 1,
        target_labels=target_labels,
        task=task,
        weights=weights,
        **columns,
    )
    model = fit_domains(inferred, settings, hooks)
    names = None if source.positional else source.names
    return FrameFit(model, classes, len(source.names), names, inferred.notes)


def known_labels(y: Any) -> npt.NDArray[np.bool_]:
    """Say which labels are there: not None or NaN, nor -1 where other whole numbers are classes."""
    labels: npt.NDArray[Any] = np.asarray(y)
    if labels.dtype.kind in "iu":
        others = np.unique(labels[labels != -1])
        known = labels != -1 if len(others) > 1 and others[0] >= 0 else np.ones(labels.shape, bool)
        return np.asarray(known, dtype=bool)
    if labels.dtype.kind == "f":
        known = ~np.isnan(labels)
        return np.asarray(known, dtype=bool)
    return np.array([label is not None and label == label for label in labels.ravel().tolist()])


def _among_unlabelled(column: pa.Array, known: npt.NDArray[np.bool_]) -> pa.Array:
    """Return labels in the places of those that are known, null in the others."""
    places = np.where(known, np.cumsum(known) - 1, -1)
    return column.take(pa.array(places, mask=~known))


def _joined(
    source: ArrowTable, column: pa.Array, weights: Floats | None, X_unlabelled: Any
) -> tuple[ArrowTable, pa.Array, Floats | None]:
    """Return the source with more complete rows, which have no label."""
    more = read_frame(X_unlabelled, "the unlabelled rows")
    if isinstance(more, Images):
        raise InputError("The source is a table and the unlabelled rows are images.")
    more = named_like(more, source.names, source.names)
    lacking = [name for name in source.names if name not in more.names]
    if lacking:
        raise InputError(
            f"The unlabelled rows lack column {lacking[0]!r}: they teach only if they are "
            "complete, as the source's are."
        )
    try:
        table = pa.concat_tables(
            [source.table, more.table.select(source.names).cast(source.table.schema)]
        )
    except pa.ArrowException:
        raise InputError(
            "The unlabelled rows have columns of other kinds than the source's: write them alike."
        ) from None
    whole = ArrowTable(table, source.where, source.positional, texts=source.texts)
    column = pa.concat_arrays([column, pa.nulls(len(more), column.type)])
    counted = None if weights is None else np.concatenate([weights, np.ones(len(more))])
    return whole, column, counted


def _image_domains(
    source: Images,
    known: npt.NDArray[np.bool_],
    labels: npt.NDArray[Any],
    target: Images | None,
    unlabelled: Images | None,
    weights: Floats | None,
    missing: Missing,
) -> ImageDomains:
    """Return images of both domains, prepared; rows that count nothing are left out.

    The `labels` are those of source images where they are `known`.
    """
    blocks = image_blocks(source, target, missing)
    classes, positions = np.unique(labels, return_inverse=True)
    others = replace(source, where="the target") if target is None else target
    scale: Scale = "bytes" if source.is_bytes or others.is_bytes else "own"
    inputs = prepare_images(source, blocks, complete=True, scale=scale)
    rows = prepare_images(others, blocks, complete=False, scale=scale)
    counted = np.ones(len(known), bool) if weights is None else weights > 0
    own = None if weights is None else weights[known]
    labelled = inputs if known.all() else inputs[known]
    sample = Sample(labelled, positions.astype(np.int64), own)
    if weights is not None:
        sample = sample[np.flatnonzero(counted[known])]
    complete = [inputs[counted & ~known]]
    if unlabelled is not None:
        complete.append(prepare_images(unlabelled, blocks, complete=True, scale=scale))
    more = np.concatenate(complete)
    if scale == "own" and max(np.abs(each).max() for each in (inputs, rows, *complete[1:])) <= 1.0:
        scale = "unit"
    preprocessor = ImagePreprocessor(blocks, tuple(classes.tolist()), scale)
    return ImageDomains(preprocessor, sample, rows, unlabelled=more if len(more) else None)
