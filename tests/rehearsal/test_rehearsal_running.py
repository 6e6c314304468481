"""The pipeline on a slice: nothing leaks, scores are compared with the truth, words fit figures."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from halfseen.data.column_spec import ColumnSpec
from halfseen.data.schema_inference import infer_schema
from halfseen.data.table_files import open_table
from halfseen.errors import InputError
from halfseen.evidence.features import Carving, DomainSeparation
from halfseen.fitting.pipeline import Hooks
from halfseen.members import Sample
from halfseen.rehearsal import Rehearsal, RehearsalStage, RehearsedRun, _choices, rehearse
from halfseen.selection import ONE_FIT_SCORES
from halfseen.settings import FitSettings
from tiny import TINY

NETWORKS = {"members": ("networks",), "options": TINY}


def visitors(rows, moved, seed):
    random = np.random.default_rng(seed)
    visits, basket = random.normal(moved, 1, rows), random.normal(50, 10, rows)
    spend = basket / 10 + visits + random.normal(0, 0.5, rows)
    columns = {"visits": visits, "basket": basket, "spend": spend}
    return pa.table(columns | {"click": np.where(spend > 5, "yes", "no")})


@pytest.fixture
def found(tmp_path):
    pq.write_table(visitors(300, 0.0, 0), tmp_path / "source.parquet")
    target = visitors(200, 0.5, 1).drop_columns(["spend", "click"])
    pq.write_table(target, tmp_path / "target.parquet")
    tables = (open_table(tmp_path / f"{name}.parquet") for name in ("source", "target"))
    return infer_schema(*tables, ColumnSpec("click"))


def stage_of(found, **changed):
    random = np.random.default_rng(0)
    inputs = random.normal(size=(200, len(found.schema.inputs))).astype(np.float32)
    labels = np.arange(200) % 2
    stage = RehearsalStage.of(found.schema, Sample(inputs, labels), np.arange(200) % 3 == 0, 0)
    return replace(stage, slice=replace(stage.slice, **changed)) if changed else stage


def test_neither_labels_nor_missing_block_of_the_slice_reach_training(found):
    plain = stage_of(found)
    other = plain.slice.inputs.copy()
    other[:, list(found.schema.blocks.missing)] += 5.0
    tampered = stage_of(found, inputs=other, labels=1 - plain.slice.labels)
    said = []
    for stage in (plain, tampered):
        shown = stage.observed(stage.fit(FitSettings(options=TINY), Hooks()))
        said.append((shown.target_probabilities, shown.source_loss, shown.weight))
    for one, another in zip(*said, strict=True):
        np.testing.assert_array_equal(one, another)


def test_a_rehearsal_measures_every_model_with_every_seed(found):
    sentences = []
    models = ("Adaptation-Imputation", "Source-IgnoreComponent")
    settings = FitSettings(models=models, **NETWORKS)
    result = rehearse(found, settings, repeats=2, say=sentences.append)[""]
    assert len(result.runs) == 2 * 4
    assert {choice.score for choice in result.choices} == {*ONE_FIT_SCORES, "agreement"}
    for run in result.runs:
        assert 0 < run.measured["cross_entropy"] < 2
        assert set(run.scores) == set(ONE_FIT_SCORES)
    best = result.models[0]
    assert result.verdict.startswith(best)
    for choice in result.choices:
        lost = result.mean(choice.model, "cross_entropy") - result.mean(best, "cross_entropy")
        assert choice.lost == pytest.approx(lost)
    assert result.choices[-1].lost == max(choice.lost for choice in result.choices)
    assert result.to_dict()["rows"]["slice"] == result.carving.chosen.sum()
    assert sum("on the slice" in sentence for sentence in sentences) >= 8


def test_a_class_that_is_nearly_all_in_the_slice_is_refused(found):
    chosen = np.arange(200) % 2 == 0
    chosen[:6] = True, False, False, False, False, False
    source = Sample(np.zeros((200, len(found.schema.inputs)), np.float32), np.arange(200) % 2)
    with pytest.raises(InputError, match="a rehearsal needs 5 of each"):
        RehearsalStage.of(found.schema, source, chosen, 0)


def run(model, seed, loss, **scores):
    known = dict.fromkeys(ONE_FIT_SCORES, 0.5) | scores
    return RehearsedRun(model, seed, {"cross_entropy": loss, "auc": None}, known)


def rehearsal(runs, obtained=0.7):
    separations = (DomainSeparation(auc, 0.0, 1.0) for auc in (0.7, obtained))
    carving = Carving(np.ones(3, bool), np.ones(3), *separations)
    return Rehearsal(carving, tuple(runs), _choices(runs, {}, "cross_entropy"))


def test_choices_follow_each_score_in_its_own_sense():
    runs = [
        run("A", 0, 0.50, dev=0.4, mutual_information=0.1),
        run("A", 1, 0.52, dev=0.4, mutual_information=0.1),
        run("B", 0, 0.40, dev=0.6, mutual_information=0.3),
        run("B", 1, 0.42, dev=0.3, mutual_information=0.3),
    ]
    by_score = {choice.score: choice for choice in rehearsal(runs).choices}
    assert by_score["mutual_information"].model == "B"
    assert by_score["mutual_information"].lost == 0
    assert by_score["dev"].model == "A"
    assert by_score["dev"].lost == pytest.approx(0.1)


def test_words_say_how_far_to_trust_the_lead():
    def lead(gap, obtained=0.7, seeds=2):
        losses = {"A": 0.4, "B": 0.4 + gap}
        runs = [run(m, s, loss + 0.01 * s) for m, loss in losses.items() for s in range(seeds)]
        return rehearsal(runs, obtained)

    assert "take the two as equal" in lead(0.001).trust
    assert "equal" not in lead(0.1).trust
    assert "One seed" in lead(0.1, seeds=1).trust
    assert "smaller than the true one (AUC 0.60 against 0.70)" in lead(0.1, obtained=0.6).trust
    assert "A would have won on the slice, 0.1000" in lead(0.1).verdict
    assert np.isnan(lead(0.1).mean("A", "auc"))
