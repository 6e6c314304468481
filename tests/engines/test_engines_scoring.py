"""Ray and Spark, each on this machine alone, give the scores of `halfseen predict`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from halfseen.cli.app import app
from halfseen.errors import InputError
from halfseen.front.fronts import TableFront
from table_models import rows_of, table_model

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A model with an id column, rows in two files, and their scores from the command."""
    folder = tmp_path_factory.mktemp("engines")
    model = table_model()
    model.front = TableFront(model.schema.model_copy(update={"id": ("row",)}))
    model.save(folder / "model")
    (folder / "rows").mkdir()
    for number in range(2):
        rows = rows_of(model, 300, seed=number)
        rows.insert(0, "row", np.arange(300 * number, 300 * (number + 1)))
        rows["unknown"] = "x"
        rows.to_parquet(folder / "rows" / f"{number}.parquet")
    words = ["predict", folder / "model", folder / "rows", "-o", folder / "scores.parquet"]
    done = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return folder


def compare(scored: pd.DataFrame, folder: Path) -> None:
    expected = pd.read_parquet(folder / "scores.parquet")
    found = scored.sort_values("row").reset_index(drop=True)
    assert list(found.columns) == list(expected.columns) == ["row", "p_no", "p_yes", "prediction"]
    assert found["row"].tolist() == expected["row"].tolist() == list(range(600))
    assert found["prediction"].tolist() == expected["prediction"].tolist()
    for name in ("p_no", "p_yes"):
        np.testing.assert_allclose(found[name], expected[name], atol=1e-6)


def test_ray_data(folder):
    ray = pytest.importorskip("ray")
    from halfseen.engines.ray import score_dataset

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, address="local")
    try:
        rows = ray.data.read_parquet(str(folder / "rows"))
        compare(score_dataset(rows, folder / "model", workers=1).to_pandas(), folder)
        with pytest.raises(InputError, match="The dataset lacks column 'age'"):
            score_dataset(rows.drop_columns(["age"]), folder / "model")
    finally:
        ray.shutdown()


def test_spark(folder):
    sql = pytest.importorskip("pyspark.sql")
    from halfseen.engines.spark import score_frame

    with mock.patch.dict(os.environ, {"PYSPARK_PYTHON": sys.executable}):
        quiet = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1"}
        spark = sql.SparkSession.builder.master("local[2]").config(map=quiet).getOrCreate()
        try:
            rows = spark.read.parquet(str(folder / "rows"))
            scored = score_frame(rows, folder / "model").collect()
            compare(pd.DataFrame([row.asDict() for row in scored]), folder)
            with pytest.raises(InputError, match="The frame lacks column 'age'"):
                score_frame(rows.drop("age"), folder / "model")
        finally:
            spark.stop()
