"""A model folder as a map over a Ray dataset."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ray.data

from halfseen.front.tables import BATCH_ROWS
from halfseen.model.loading import load_table_model
from halfseen.model.scoring import TableScorer


def score_dataset(
    dataset: ray.data.Dataset,
    model: str | Path,
    *,
    use_missing: bool = False,
    workers: int | None = None,
) -> ray.data.Dataset:
    """Return the scores of a dataset's rows: id columns, and those of `halfseen predict`.

    Ray may change the order of rows: give the model an id column (``halfseen fit --id``) to know
    them again. Nothing is computed before the result is written or looked at.

    Parameters
    ----------
    dataset
        With the columns that the model observes, in any order; others are not read.
    model
        Folder that `halfseen fit` wrote, where every worker sees it.
    use_missing
        Whether rows that have the missing block are scored with it.
    workers
        How many, each on one core; by default as many as the cluster has room for.

    Examples
    --------
    ::

        rows = ray.data.read_parquet("s3://bucket/prospects/")
        score_dataset(rows, "/shared/model").write_parquet("s3://bucket/scores/")
    """
    folder = str(Path(model).resolve())
    scorer = TableScorer.of(
        load_table_model(folder), dataset.columns(), use_missing=use_missing, where="The dataset"
    )
    return dataset.select_columns(scorer.columns).map_batches(
        _Worker,
        fn_constructor_args=(folder, scorer.columns, use_missing),
        batch_format="pyarrow",
        batch_size=BATCH_ROWS,
        compute=ray.data.ActorPoolStrategy(size=workers),
    )


class _Worker:
    """Holds the model for as long as Ray keeps the process."""

    def __init__(self, folder: str, columns: Sequence[str], use_missing: bool) -> None:
        model = load_table_model(folder)
        self.scorer = TableScorer.of(model, columns, use_missing=use_missing, where="The dataset")

    def __call__(self, rows: Any) -> Any:
        return self.scorer(rows)
