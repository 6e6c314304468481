"""Columns of tables on the scale of the source, as the library's preprocessor scales them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from halfseen.data.preprocessing import FEWEST_COLUMNS, MOST_ROWS, shared_scale
from halfseen.targets import ClassTarget
from halfseen_bench.data import DomainPair, Labelled
from halfseen_bench.data.pairs import Sealed

Matrix = npt.NDArray[np.float32]

LOOKED_AT = 2_000
FEWEST_VALUES = 10
"""Different values from which a column counts as a measurement: fewer are codes and flags."""


def standardized(pair: DomainPair) -> DomainPair:
    """Return a table with each column's mean and standard deviation on the source taken out.

    Many measurements share one scale where the source's labels are predicted better so. Images
    are returned as they are.
    """
    if not pair.blocks.is_table:
        return pair
    inputs = pair.source_train.inputs
    mean, scale = inputs.mean(0), _scales(inputs, pair.source_train.labels)

    def scaled(rows: Matrix) -> Matrix:
        found: Matrix = ((rows - mean) / scale).astype(np.float32)
        return found

    complete = pair.complete_target
    if complete is not None:
        train, test = complete.open("scaling")
        complete = Sealed((scaled(train), scaled(test)))
    return replace(
        pair,
        source_train=Labelled(scaled(inputs), pair.source_train.labels),
        source_test=Labelled(scaled(pair.source_test.inputs), pair.source_test.labels),
        target_train=scaled(pair.target_train),
        target_test=scaled(pair.target_test),
        complete_target=complete,
    )


def _scales(inputs: Matrix, labels: npt.NDArray[np.int64]) -> Matrix:
    deviation = inputs.std(0)
    scale: Matrix = np.where(deviation > 1e-6, deviation, 1.0).astype(np.float32)
    some = inputs[:: len(inputs) // LOOKED_AT + 1]
    columns = np.flatnonzero([len(np.unique(column)) >= FEWEST_VALUES for column in some.T])
    if len(columns) < FEWEST_COLUMNS or len(inputs) > MOST_ROWS:
        return scale
    standardized = ((inputs - inputs.mean(0)) / scale)[:, columns]
    kind = ClassTarget.of(int(labels.max()) + 1)
    common = shared_scale(standardized, labels, scale[columns], kind)
    if common is not None:
        scale[columns] = common
    return scale
