"""Alarms on screen, in JSON, in the model, and as errors."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.compute as pc
from tables_cli import check_refused, halfseen, replaced, target_table, write

import halfseen as library
from halfseen.export.onnx_session import open_graph
from halfseen_serve.scorer import Scorer

UNIT = "Alarm: basket on the target is about 1,000 times the source's (median "


def in_grams(path):
    table = target_table()
    return write(replaced(table, "basket", pc.multiply(table["basket"], 1000.0)), path)


def quick(tables, target, *more):
    return halfseen("fit", tables / "source.parquet", target, "--label", "click", "--id", "user",
                    "--effort", "quick", *more)  # fmt: skip


def test_another_unit_is_said_before_training_and_kept_in_the_model(tables, tmp_path, one_part):
    target = in_grams(tmp_path / "target.parquet")
    planned = quick(tables, target, "--dry-run", "--quiet")
    assert planned.code == 0
    assert planned.out.startswith(UNIT)
    run = quick(tables, target, "-o", tmp_path / "model", "--json")
    assert run.code == 0, run.err
    assert UNIT in run.err
    alarms = json.loads(run.out)["alarms"]
    assert alarms[0]["kind"] == "unit"
    assert alarms[0]["columns"] == ["basket"]
    assert 900 < alarms[0]["figures"]["factor"] < 1100
    assert library.load(tmp_path / "model").metrics["alarms"] == alarms


def test_strict_refuses_before_training(tables, out, tmp_path):
    target = in_grams(tmp_path / "target.parquet")
    run = quick(tables, target, "-o", out / "model", "--strict")
    assert run.err.strip().endswith("Convert one of them.")
    check_refused(run, out, "An alarm, refused as asked: basket on the target is about 1,000 times")


def test_scored_rows_raise_alarms_and_strict_writes_nothing(tables, out, tmp_path, predict):
    good = predict(tables / "target.parquet", "--json", to=tmp_path / "good.parquet")
    assert not {a["kind"] for a in json.loads(good.out)["alarms"]} & {"unit", "range", "swapped"}
    rows = in_grams(tmp_path / "new.parquet")
    run = predict(rows)
    assert run.code == 0
    assert UNIT in run.out
    (out / "scores.parquet").unlink()
    check_refused(predict(rows, "--strict"), out, "refused as asked")


def test_the_server_names_kind_and_column_without_figures(tables):
    scorer = Scorer(open_graph(tables / "model"))
    table = target_table()
    rows = replaced(table, "basket", pc.multiply(table["basket"], 1000.0))
    probabilities = np.tile([0.4, 0.6], (len(rows), 1))
    assert scorer.alarms(scorer.read(rows), probabilities) == ["unit: basket"]
    few = scorer.read(rows.slice(0, 19))
    assert scorer.alarms(few, probabilities[:19]) == ["far: basket in row 1"]
    assert scorer.alarms(scorer.read(table), probabilities) == []
    requests = [table.slice(0, 5), rows.slice(0, 5), table.slice(5, 20)]
    together = scorer.answer(requests, lambda: False)  # each as if the others were not there
    assert [answer.alarms for answer in together] == [[], ["far: basket in row 1"], []]
    for request, answer in zip(requests, together, strict=True):
        (alone,) = scorer.answer([request], lambda: False)
        np.testing.assert_allclose(answer.outputs, alone.outputs, rtol=0, atol=1e-6)
        assert answer.alarms == alone.alarms
