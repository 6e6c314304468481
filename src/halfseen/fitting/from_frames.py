"""What a person hands over in Python, fitted: data frames, arrays or images to one model."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from halfseen.arrays import Floats
from halfseen.data.column_spec import Missing, Task
from halfseen.data.frames import (
    Images,
    infer_frames,
    label_column,
    read_frame,
    split_stacked,
    target_label_column,
)
from halfseen.data.label_column import FEWEST_ROWS, checked_weights
from halfseen.data.preprocessors import (
    ImagePreprocessor,
    Scale,
    image_blocks,
    prepare_images,
)  # fmt: skip
from halfseen.data.tables import ArrowTable
from halfseen.errors import InputError, OptionError
from halfseen.fitting.member_training import Hooks
from halfseen.fitting.pipeline import fit_images, fit_tables
from halfseen.members import Sample
from halfseen.model.model import Model
from halfseen.options import dotted
from halfseen.options.presets import encoder_for
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
    y_target: Any = None,
    sample_domain: Any = None,
    sample_weight: Any = None,
    task: Task = "classification",
    missing: Missing = None,
    **columns: Any,
) -> FrameFit:
    """Fit a model, as :meth:`halfseen.AdaptationImputationClassifier.fit` says.

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
    labels, column = label_column(y, len(source), task)
    weights = None if sample_weight is None else checked_weights(sample_weight, len(source))
    classes = np.unique(labels)
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
        if isinstance(target, ArrowTable):
            raise InputError("The source holds images and the target is a table.")
        model = _fit_images(source, target, labels, weights, missing, settings, hooks)
        return FrameFit(model, classes, source.array.shape[1], None, [])
    if isinstance(target, Images):
        raise InputError("The source is a table and the target holds images.")
    known = None
    if y_target is not None and target is not None:
        known = target_label_column(y_target, len(target))
    found = infer_frames(
        source,
        column,
        target,
        missing=missing,
        fewest=FEWEST_ROWS if settings.holds_out("table") else 1,
        target_labels=known,
        task=task,
        weights=weights,
        **columns,
    )
    model = fit_tables(found, settings, hooks).model
    names = None if source.positional else source.names
    return FrameFit(model, classes, len(source.names), names, found.notes)


def _fit_images(
    source: Images,
    target: Images | None,
    labels: npt.NDArray[Any],
    weights: Floats | None,
    missing: Missing,
    settings: FitSettings,
    hooks: Hooks,
) -> Model:
    blocks = image_blocks(source, target, missing)
    classes, positions = np.unique(labels, return_inverse=True)
    shown = replace(source, where="the target") if target is None else target
    scale: Scale = "bytes" if source.is_bytes or shown.is_bytes else "own"
    inputs = prepare_images(source, blocks, complete=True, scale=scale)
    sample = Sample(inputs, positions.astype(np.int64), weights)
    rows = prepare_images(shown, blocks, complete=False, scale=scale)
    if scale == "own" and max(np.abs(inputs).max(), np.abs(rows).max()) <= 1.0:
        scale = "unit"
    preprocessor = ImagePreprocessor(blocks, tuple(classes.tolist()), scale)
    given = dotted(settings.options)
    if settings.preset == "default" and not any(name.startswith("images.") for name in given):
        side = min(32, *blocks.shape[1:])  # larger images have the encoder of 32 pixels
        settings = replace(settings, options=encoder_for(side) | given)
    return fit_images(preprocessor, sample, rows, settings, hooks).model
