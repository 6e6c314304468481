import json
from dataclasses import replace

import numpy as np
import pytest
from small_pair import small_pair

from halfseen import InputError, OptionError
from halfseen.networks.variants import VARIANTS
from halfseen.options import Options
from halfseen_bench.baselines import BASELINES
from halfseen_bench.budgets import BUDGETS, DEMO_BUDGET
from halfseen_bench.data import Labelled
from halfseen_bench.data.catalog import FAMILIES
from halfseen_bench.problems import load_problem, with_source_rows
from halfseen_bench.suites import CONSTANTS, SUITES, TREES_COLOURS
from halfseen_bench.sweep import Selection, plan_runs, run_one

MODELS = {method.name for method in VARIANTS}


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=lambda b: b.name)
@pytest.mark.parametrize("suite", SUITES.values(), ids=lambda s: s.name)
def test_every_suite_plans_distinct_runs(suite, budget):
    runs = plan_runs(suite, budget).runs
    assert len({run.key for run in runs}) == len(runs) > 0
    assert set(suite.baselines) <= set(BASELINES)
    assert set(suite.models) <= MODELS
    for run in runs:
        assert run.problem.family in (*FAMILIES, "demo")
        if run.model in MODELS:
            assert (run.divergence is not None) == run.model.startswith("Adaptation")


def test_the_paper_budget_has_the_papers_lengths():
    runs = plan_runs(SUITES["digits"], BUDGETS["paper"], Selection(models=("models",))).runs
    assert {run.seed for run in runs} == set(range(5))
    trained = [Options.model_validate(run.options) for run in runs]
    (lengths,) = {
        (options.training.warmup_epochs, options.training.joint_epochs) for options in trained
    }
    assert lengths == (10, 90)
    assert not any("max_train" in run.problem.reader for run in runs)
    assert {run.variant for run in runs} == {"", "former", "augmented"}
    augmented = [o for o, run in zip(trained, runs, strict=True) if run.variant == "augmented"]
    assert {options.training.augmentation for options in augmented} == {"affine"}
    assert {run.problem.reader["side"] for run in runs} == {"bottom"}


def test_the_demo_has_its_own_small_networks_and_the_stronger_trees():
    runs = plan_runs(SUITES["demo"], DEMO_BUDGET, Selection(seeds=1)).runs
    assert {run.model for run in runs} - MODELS - set(CONSTANTS) == {TREES_COLOURS}
    for run in runs:
        options = Options.model_validate(run.options)
        assert options.images.channels == (16, 32, 64)
        assert (options.images.kernel_size, options.images.padding) == (3, "same")
        assert (options.images.pools, options.generator.widths) == (3, (128, 128))
        assert options.networks.critic_widths == (100,)
        training = options.training
        assert (training.warmup_epochs, training.joint_epochs) == (0, 30)
        assert (training.augmentation, training.batch_size) == ("light", 64)


def test_the_former_default_of_images_leaves_lengths_and_sizes_to_the_budget():
    wanted = Selection(pairs=("usps:mnist",), models=("models",), variants=("former", "plain"))
    for name, epochs in (("cpu", (4, 16, None)), ("steps", (0, 16, 100))):
        runs = plan_runs(SUITES["digits"], BUDGETS[name], wanted).runs
        for run in runs:
            options = Options.model_validate(run.options)
            training = options.training
            assert (training.warmup_epochs, training.joint_epochs, training.epoch_steps) == epochs
            assert options.images.channels == ((32, 32, 128) if name == "cpu" else (32, 32, 256))
            former = run.variant == "former"
            assert training.augmentation == ("none" if former else "auto")
            teaches = not former and run.model.startswith("Adaptation")
            assert ("averaged_teacher" in options.objective.terms) is teaches


def test_a_selection_narrows_and_changes():
    selection = Selection(
        pairs=("svhn:mnist",),
        models=("Adaptation-Imputation",),
        seeds=2,
        first_seed=7,
        reader={"side": "top"},
        options={"training.learning_rate": 0.003},
    )
    runs = plan_runs(SUITES["patch"], BUDGETS["quick"], selection).runs
    assert len(runs) == 5 * 2, "svhn:mnist means every patch size"
    assert {run.seed for run in runs} == {7, 8}
    assert {run.problem.reader["side"] for run in runs} == {"top"}
    trained = [Options.model_validate(run.options) for run in runs]
    assert {options.training.learning_rate for options in trained} == {0.003}
    assert {run.variant for run in runs} == {"training.learning_rate=0.003"}


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (Selection(pairs=("a:b",)), "amazon has no pair 'a:b'; it has dvd:electronics"),
        (Selection(models=("Magic",)), "There is no model 'Magic'"),
        (Selection(divergences=("cosine",)), "There is no divergence 'cosine'"),
        (Selection(variants=("bold",)), "There is no variant 'bold'; there are plain"),
        (Selection(options={"networks.classifier_dropout": 2}), "classifier_dropout=2"),
        (Selection(preset="mine"), "preset='mine' is unknown"),
    ],
)
def test_mistakes_are_one_sentence(selection, message):
    with pytest.raises(OptionError, match=message):
        plan_runs(SUITES["amazon"], BUDGETS["quick"], selection)


def test_source_rows_are_nested_and_keep_the_classes():
    pair = small_pair()
    few, more = with_source_rows(pair, 10, seed=3), with_source_rows(pair, 40, seed=3)
    assert (len(few.source_train), len(more.source_train)) == (10, 40)
    rows = {row.tobytes() for row in more.source_train.inputs}
    assert all(row.tobytes() in rows for row in few.source_train.inputs)
    share = pair.source_train.labels.mean()
    assert more.source_train.labels.mean() == pytest.approx(share, abs=0.03)
    assert with_source_rows(pair, 500, seed=3) is pair
    labels = np.zeros(120, dtype=np.int64)
    labels[77] = 1
    rare = replace(pair, source_train=Labelled(pair.source_train.inputs, labels))
    assert with_source_rows(rare, 5, seed=0).source_train.labels.sum() == 1
    with pytest.raises(InputError, match="cannot show the 2 classes"):
        with_source_rows(pair, 1, seed=0)


def test_a_run_keeps_everything_that_explains_it(tmp_path):
    selection = Selection(models=("Adaptation-Imputation",), seeds=1)
    (run, *_) = plan_runs(SUITES["ads-sim"], BUDGETS["quick"], selection).runs
    result = run_one(run.model_dump(), None, str(tmp_path))
    json.dumps(result)
    assert result["run"] == run.model_dump(mode="json")
    assert {"records", "history", "versions", "git", "machine", "started"} <= set(result)
    assert result["seconds"] > 0
    assert result["peak_memory_mib"] > 50
    assert result["versions"]["torch"]
    assert len(result["history"]) == 1 + 2 + 1
    record = result["records"][0]
    assert (record["suite"], record["pair"], record["budget"]) == ("ads-sim", "ads-sim", "quick")
    assert record["regret"] >= 0
    for metric in ("macro_f1", "normalised_cross_entropy", "auc", "calibration_error"):
        assert record[metric] is not None


def test_regret_is_zero_for_the_truth():
    problem = BUDGETS["quick"].problem(SUITES["ads-sim"].problems[0])
    loaded = load_problem(problem, seed=0)
    prior = np.full(400, loaded.pair.source_train.labels.mean())
    assert loaded.regret(prior) > 0.01


def test_learning_curves_do_not_repeat_all_rows_under_another_name():
    (run_sizes,) = {
        BUDGETS["quick"].problem(p).source_rows
        for p in SUITES["source-size"].problems
        if p.name == "ads-sim"
    }
    assert run_sizes == (50, 100, 200, None), "400 rows are simulated"
