"""A model folder as a map over a Spark data frame."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from halfseen.model.loading import load_table_model
from halfseen.model.model import Model
from halfseen.model.scoring import PREDICTION, TableScorer, score_names

_SPARK_TYPES: dict[Any, DataType] = {
    pa.bool_(): BooleanType(),
    pa.int64(): LongType(),
    pa.float64(): DoubleType(),
    pa.string(): StringType(),
}


def score_frame(frame: DataFrame, model: str | Path, *, use_missing: bool = False) -> DataFrame:
    """Return the scores of a frame's rows: id columns, and those of `halfseen predict`.

    Rows cross to Python and back as Arrow batches (``mapInArrow``), which keep whole numbers with
    gaps as they are. Nothing is computed before the result is written or looked at.

    Parameters
    ----------
    frame
        With the columns that the model observes, in any order; others are not read.
    model
        Folder that `halfseen fit` wrote, where every worker sees it.
    use_missing
        Whether rows that have the missing block are scored with it.

    Examples
    --------
    ::

        rows = spark.read.parquet("s3://bucket/prospects/")
        score_frame(rows, "/shared/model").write.parquet("s3://bucket/scores/")
    """
    folder = str(Path(model).resolve())
    loaded = load_table_model(folder)
    scorer = TableScorer.of(loaded, frame.columns, use_missing=use_missing, where="The frame")
    fields = [frame.schema[name] for name in scorer.ids]
    types = dict.fromkeys(score_names(loaded), DoubleType())
    if PREDICTION in types:
        types[PREDICTION] = _SPARK_TYPES[pa.array(loaded.schema.classes).type]
    schema = StructType([*fields, *(StructField(name, kind) for name, kind in types.items())])
    quoted = [f"`{name.replace('`', '``')}`" for name in scorer.columns]
    score = _scoring(folder, scorer.columns, use_missing)
    return frame.select(*quoted).mapInArrow(score, schema)


def _scoring(
    folder: str, columns: list[str], use_missing: bool
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def score(batches: Iterator[Any]) -> Iterator[Any]:
        model = _loaded(folder)
        scorer = TableScorer.of(model, columns, use_missing=use_missing, where="The frame")
        for batch in batches:
            yield from scorer(batch).to_batches()

    return score


@cache
def _loaded(folder: str) -> Model:
    """Load a model once in a worker, which has one core of a machine full of workers."""
    os.environ["OMP_NUM_THREADS"] = "1"  # before the libraries that read it are imported
    return load_table_model(folder)
