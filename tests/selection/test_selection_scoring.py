from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
import torch

import tiny
from halfseen import Blocks, InputError, OptionError, preset
from halfseen.evidence import effective_sample_size
from halfseen.evidence.risk import deep_embedded_validation as dev
from halfseen.networks.modules import Networks, Predictor, build_networks
from halfseen.networks.train import LabelledRows, TrainingProblem, fit_objective
from halfseen.networks.variants import VARIANTS, variant_named
from halfseen.options import make_options
from halfseen.selection import SCORES, Evidence, Observed, evaluate

BLOCKS = Blocks.columns(4, [3])
OPTIONS = make_options(
    {
        "tables.widths": (16,),
        "tables.latent_size": 8,
        "generator.widths": (16,),
        "networks.classifier_widths": (16,),
        "networks.critic_widths": (16,),
        "networks.normalization": "batch",
        "tables.dropout": 0.0,
        "networks.classifier_dropout": 0.0,
        "training.warmup_epochs": 4,
        "training.joint_epochs": 4,
        "training.learning_rate": 1e-2,
        "networks.prediction_statistics": "target",
    },
    preset("default", inputs="table"),
)
RUNNING = make_options({"networks.prediction_statistics": "running"}, OPTIONS)


def rows(count: int, shift: float, seed: int) -> LabelledRows:
    inputs = torch.randn(count, 4, generator=torch.Generator().manual_seed(seed))
    labels = (inputs[:, 0] + inputs[:, 3] > 0).long()
    return LabelledRows(inputs + shift, labels)


def evidence(shift: float = 0.5, count: int = 300) -> Evidence:
    target = BLOCKS.hide(rows(count, shift, 3).inputs)
    held_out = rows(count, 0.0, 1)
    parts = (held_out.inputs, held_out.labels, target, rows(count, 0.0, 2).inputs)
    return Evidence(*(part.numpy() for part in parts))


def untrained(name: str = "Adaptation-Imputation", options=OPTIONS) -> Predictor:
    torch.manual_seed(0)
    return Predictor(build_networks(BLOCKS, variant_named(name), 2, options), options)


@lru_cache
def trained_networks(shift: float = 0.5) -> Networks:
    given = evidence(shift)
    target = torch.from_numpy(given.target)
    problem = TrainingProblem(BLOCKS, rows(300, 0.0, 2), target, 2)
    method = variant_named("Adaptation-Imputation")
    return fit_objective(problem, method, OPTIONS, seed=0, device="cpu")[0].networks


def trained(shift: float = 0.5, options=OPTIONS) -> Predictor:
    return Predictor(trained_networks(shift), options)


@pytest.mark.parametrize("name", [method.name for method in VARIANTS])
def test_every_model_gets_every_score(name: str) -> None:
    values = evaluate(untrained(name), evidence())
    assert tuple(values) == tuple(SCORES)
    assert all(np.isfinite(value) for value in values.values())
    assert 0 < values["mutual_information"] <= np.log(2)


def test_scores_are_those_of_the_plain_functions() -> None:
    model, given = trained(), evidence()
    observed = Observed(model, given)
    values = evaluate(model, given, ("dev", "source_loss"))
    assert values["dev"] == dev(observed.source_loss, observed.weight).risk
    assert values["source_loss"] == pytest.approx(observed.source_loss.mean())


def test_scoring_leaves_the_networks_as_they_were() -> None:
    model = trained()
    before = {name: tensor.clone() for name, tensor in model.networks.state_dict().items()}
    evaluate(model, evidence())
    after = model.networks.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_source_rows_are_normalised_by_the_sources_statistics() -> None:
    """With the target's statistics, a far shift would make source losses meaningless."""
    given = evidence(shift=4.0)
    right = evaluate(trained(shift=4.0), given, ("source_loss",))["source_loss"]
    wrong = evaluate(trained(4.0, RUNNING), given, ("source_loss",))["source_loss"]
    assert right < 0.6 < wrong


def test_the_missing_block_of_source_rows_is_not_looked_at() -> None:
    given = evidence()
    changed = given.held_out.copy()
    changed[:, 3] = 100.0
    other = replace(given, held_out=changed)
    assert evaluate(trained(), given) == evaluate(trained(), other)


@pytest.mark.parametrize("separate", [True, False])
def test_weights_follow_the_shift_with_and_without_rows_to_fit_them_on(separate: bool) -> None:
    model = untrained(options=RUNNING)
    shares = []
    for shift in (0.0, 1.5):
        given = evidence(shift, count=600)
        if not separate:
            given = replace(given, training=None)
        weight = Observed(model, given).weight
        shares.append(effective_sample_size(weight) / len(weight))
    assert shares[0] > 0.75
    assert shares[1] < 0.5


def test_a_sample_is_the_same_rows_every_time() -> None:
    given = evidence(count=50)
    small = given.sample(20)
    assert [len(small.held_out), len(small.target), len(small.training)] == [20, 20, 20]
    assert np.array_equal(small.held_out, given.sample(20).held_out)
    match = (given.held_out[:, None] == small.held_out).all(2)
    assert np.array_equal(given.labels[match.argmax(0)], small.labels)
    assert given.sample(None) is given


def test_rows_of_a_user_are_prepared_and_labels_checked() -> None:
    X, y = np.random.default_rng(0).normal(size=(5, 4)), np.array(["no", "yes", "no", "no", "yes"])
    many, labels = np.tile(X, (6, 1)), np.tile(y, 6)
    model = tiny.classifier(missing=[3]).fit(many, labels, X_target=many[:, :3]).model_
    prepare, kind = model.prepare, model.target_type
    given = Evidence.prepared(prepare, kind, X, y, X[:3, :3])
    assert given.labels.tolist() == [0, 1, 0, 0, 1]
    assert given.target.shape == (3, 4)
    with pytest.raises(InputError, match="'maybe' is none of the model's classes"):
        Evidence.prepared(prepare, kind, X, ["maybe"] * 5, X)
    with pytest.raises(InputError, match="5 held-out rows and 4 labels"):
        Evidence.prepared(prepare, kind, X, y[:4], X)


def test_scores_that_one_model_cannot_give_are_refused() -> None:
    with pytest.raises(OptionError, match="'agreement' is unknown"):
        evaluate(untrained(), evidence(), ("agreement",))
    with pytest.raises(OptionError, match="'accuracy' is unknown"):
        evaluate(untrained(), evidence(), ("accuracy",))
