import math

import pytest
from torch import nn

from halfseen import Blocks
from halfseen.networks.loop import annealed_rate, ramp
from halfseen.networks.objective import build_objective
from halfseen.networks.terms import Part
from halfseen.networks.train import plan_phases
from halfseen.networks.variants import variant_named
from halfseen.options import make_options
from halfseen.presets import preset


@pytest.mark.parametrize(
    ("progress", "expected"),
    [(0.0, 0.0), (0.5, 2 / (1 + math.exp(-5)) - 1), (1.0, 2 / (1 + math.exp(-10)) - 1)],
)
def test_ramp(progress, expected):
    assert ramp(progress) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("progress", "decay", "expected"),
    [
        (0.0, 10, 0.01),
        (0.5, 10, 0.01 / 6**0.75),
        (1.0, 10, 0.01 / 11**0.75),
        (0.5, 30, 0.01 / 16**0.75),
        (1.0, 30, 0.01 / 31**0.75),
        (1.0, 0, 0.01),
    ],
)
def test_annealed_rate(progress, decay, expected):
    assert annealed_rate(0.01, progress, decay) == pytest.approx(expected)


class Steps:
    def __init__(self, count):
        self.count = count

    def steps(self, batch_size):
        return self.count

    def epoch(self, batch_size, seed):
        raise AssertionError("planning must not touch the data")


def plan(options, name="Adaptation-Imputation", refine=True, steps=100):
    return plan_phases(options, variant_named(name), Steps(steps), rows=1000, refine=refine)


def parts(options):
    """Everything that has a learning rate of its own."""
    method = variant_named("Adaptation-Imputation")
    objective = build_objective(Blocks.columns(3, [2]), method, 2, options)
    brought = [part for term in objective.terms.values() for part in term.parts()]
    return {part.name: part for part in (*objective.network_parts(), *brought)}


def test_the_paper_decays_the_imputation_parts_faster_on_ads():
    options = preset("paper", inputs="table")
    _, joint, refine = plan(options)
    part = parts(options)
    assert joint.rate(part["generator"], 1.0) == pytest.approx(1e-6 / 31**0.75)
    assert joint.rate(part["imputation"], 1.0) == joint.rate(part["generator"], 1.0)
    for name in ("encoder", "missing_encoder", "classifier", "adaptation"):
        assert joint.rate(part[name], 1.0) == pytest.approx(1e-6 / 11**0.75)
    assert refine.rate(part["classifier"], 1.0) == pytest.approx(1e-7)


def test_warm_up_keeps_its_rate_and_leaves_generator_and_critics_alone():
    warm_up, *_ = plan(preset("paper"))
    assert (warm_up.name, warm_up.epochs, warm_up.batch_size) == ("warm-up", 10, 32)
    assert warm_up.rate(Part("encoder", nn.Identity(), decay=10.0), 1.0) == 0.01
    assert warm_up.networks == {"encoder", "missing_encoder", "classifier"}


def test_transport_without_imputation_halves_the_rate_once():
    options = preset("paper", divergence="transport", imputes=False)
    _, joint = plan(options, "Adaptation-IgnoreComponent", refine=False)
    encoder = Part("encoder", nn.Identity(), options.training.rate_decay)
    assert joint.rate(encoder, 0.0) == joint.rate(encoder, 1.0) == pytest.approx(0.005)


def test_reference_refines_the_classifier_alone_on_ads():
    *_, refine = plan(preset("reference", inputs="table"))
    assert refine.networks == {"classifier"}
    assert refine.learning_rate == 1e-6


@pytest.mark.parametrize(
    ("inputs", "steps_of_an_epoch", "epochs"),
    [
        ("table", 30, 10),
        ("image", 100, 40),
        ("table", 7, 43),
        ("table", 1, 200),
        ("table", 100_000, 5),
    ],
)
def test_automatic_epochs_aim_for_a_number_of_steps_within_bounds(
    inputs, steps_of_an_epoch, epochs
):
    options = make_options({"training.joint_epochs": "auto"}, preset("paper", inputs=inputs))
    assert plan(options, steps=steps_of_an_epoch)[1].epochs == epochs
    fewer = make_options({"training.joint_steps": 60}, options)
    expected = min(max(math.ceil(60 / steps_of_an_epoch), 5), 200)
    assert plan(fewer, steps=steps_of_an_epoch)[1].epochs == expected


def test_an_epoch_may_end_before_the_rows_do():
    options = make_options(
        {"training.epoch_steps": 50, "training.joint_epochs": "auto"},
        preset("paper", inputs="table"),
    )
    for phase in plan(options, steps=400):
        assert phase.steps(Steps(400)) == 50
        assert phase.steps(Steps(30)) == 30
    assert plan(options, steps=400)[1].epochs == 6
    assert plan(preset("paper"), steps=400)[1].steps(Steps(400)) == 400


def test_an_automatic_batch_of_images_is_half_as_large():
    for inputs, rows in (("image", 64), ("table", 128)):
        options = preset("default", inputs=inputs)
        phases = plan_phases(
            options, variant_named("Adaptation-Full"), Steps(9), rows=9000, refine=False
        )
        assert phases[-1].batch_size == rows
