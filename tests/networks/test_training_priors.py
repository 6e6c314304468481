"""Refinement at 10 % positives: which rows get pseudo-labels, and whose proportions are used."""

import numpy as np
import pytest
import torch

from halfseen import Blocks, preset
from halfseen.errors import OptionError
from halfseen.networks.methods import method_named
from halfseen.networks.terms.refinement import select_by_prior, select_confident
from halfseen.networks.training import LabelledRows, Rows
from halfseen.networks.training.fitting import TrainingProblem, fit_objective
from halfseen.networks.training.priors import refinement_prior
from halfseen.options import make_options
from halfseen_bench.data.simulator import draw
from halfseen_bench.data.simulator_rates import draw_at_click_rate
from halfseen_bench.data.simulator_world import MISSING, OBSERVED, Dials, World
from table_models import LEARNS_FAST

BLOCKS = Blocks.columns([*OBSERVED, *MISSING], missing=list(MISSING))


def simulated(shift=0.0, rows=2000, rate=0.1):
    """Clicks are 23 % of the source and 10 % of the target; p(x | y) moves with `shift`."""
    dials = Dials(activity_shift=shift)
    source = draw(World("retargeting", dials), 0, rows)
    return source, draw_at_click_rate(World("prospecting", dials), rows, rate)


def problem_of(source, target):
    mean, deviation = source.inputs.mean(0), source.inputs.std(0)
    inputs, shifted = ((rows.inputs - mean) / deviation for rows in (source, target))
    inputs, labels = torch.from_numpy(inputs), torch.from_numpy(source.labels)
    hidden = torch.from_numpy(BLOCKS.hide(shifted))
    return TrainingProblem.resident(BLOCKS, LabelledRows(inputs, labels), Rows(hidden), 2)


def refined(problem, **settings):
    quick = LEARNS_FAST | {
        "training.joint_epochs": 2,
        "refinement.epochs": 1,
        "training.balanced": False,
    }
    options = make_options(quick | settings, preset("default", inputs="table"))
    method = method_named("Adaptation-IgnoreComponent")
    return fit_objective(problem, method, options, seed=0, refine=True)[0]


def test_at_ten_percent_only_prior_aware_thresholds_select_positives():
    source, target = simulated()
    problem = problem_of(source, target)
    objective = refined(problem, **{"refinement.selection": "prior"})
    assert float(objective.target_prior[1]) == pytest.approx(0.1, abs=0.04)
    with torch.no_grad():
        logits = objective.networks(problem.target.inputs)
    fixed, label = select_confident(logits, 0.95)
    assert fixed.sum() > 100
    assert label[fixed].float().mean() < 0.01
    chosen, label = select_by_prior(logits, objective.target_prior, 0.5)
    positive = (chosen & (label == 1)).numpy()
    assert positive.sum() == pytest.approx(0.5 * 2000 * float(objective.target_prior[1]), abs=5)
    assert target.labels[positive].mean() > 2.5 * 0.1  # three or four times as often as by chance


def test_fixed_thresholds_are_the_default_and_estimate_nothing():
    assert preset("default").refinement.selection == "confidence"
    objective = refined(problem_of(*simulated(rows=300)))
    assert objective.target_prior is None


def test_a_refused_estimate_gives_the_source_proportions_with_a_warning():
    source, target = simulated(shift=3.0)
    with pytest.warns(UserWarning, match="source's class proportions"):
        objective = refined(problem_of(source, target), **{"refinement.selection": "prior"})
    np.testing.assert_allclose(objective.target_prior[1], source.labels.mean())


def test_a_class_with_too_few_rows_gives_the_source_proportions():
    source = np.random.default_rng(0).normal(size=(50, 2))
    labels = np.r_[np.zeros(47, dtype=np.int64), np.ones(3, dtype=np.int64)]
    found = refinement_prior(source, labels, source, classes=2)
    assert not found.estimated
    np.testing.assert_allclose(found.prior, [0.94, 0.06])


def test_rows_at_a_click_rate_keep_what_a_label_says_about_its_row():
    world = World("prospecting", Dials())
    some, many = draw_at_click_rate(world, 4000, 0.3), draw(world, 0, 20_000)
    assert some.labels.mean() == 0.3
    for label in (0, 1):
        here, there = some.inputs[some.labels == label], many.inputs[many.labels == label]
        error = here.std(0) / np.sqrt(len(here)) + there.std(0) / np.sqrt(len(there))
        assert (np.abs(here.mean(0) - there.mean(0)) < 4 * error).all()
    with pytest.raises(OptionError, match="click_rate=1"):
        draw_at_click_rate(world, 10, 1.0)
