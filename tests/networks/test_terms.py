"""Terms as such: what they see, what they bring, when they are called and when refused."""

from typing import ClassVar

import numpy as np
import pytest
import torch
from test_training_loop import OPTIONS, StopError, fit, problem, same, weights
from torch import nn

from halfseen import OptionError
from halfseen.networks import terms
from halfseen.networks.modules import build_networks
from halfseen.networks.terms import (
    Batch,
    Part,
    State,
    Term,
    TermSettings,
    Views,
    loss_words,
    register,
)
from halfseen.networks.terms.paper import classification_loss
from halfseen.networks.train import LabelledRows, ResidentBatches, TrainingProblem, fit_objective
from halfseen.networks.variants import variant_named
from halfseen.options import TERM_SETTINGS, make_options


@pytest.fixture
def registry(monkeypatch):
    """Whatever a test registers is forgotten after it."""
    monkeypatch.setattr(terms, "_REGISTERED", dict(terms._REGISTERED))
    for name in set(TERM_SETTINGS):
        monkeypatch.setitem(TERM_SETTINGS, name, TERM_SETTINGS[name])
    before = set(TERM_SETTINGS)
    yield
    for name in set(TERM_SETTINGS) - before:
        del TERM_SETTINGS[name]


class ScaleSettings(TermSettings):
    pace: float = 1.0


class Scale(Term):
    """Learns the scale of target latents, and counts its steps."""

    words: ClassVar = {"scale": "how far the latents are from a learned scale"}
    phases = ("joint", "refine")
    Settings = ScaleSettings

    def __init__(self, setup, settings=None):
        super().__init__(setup, settings)
        self.scale = nn.Linear(1, 1)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.register_buffer("last", torch.zeros((), dtype=torch.float64))

    def forward(self, state):
        spread = state.latents.target.std().reshape(1, 1)
        return {"scale": self.scale(spread).square().sum()}

    def parts(self):
        return [Part("scale", self.scale, decay=0.0, rate_factor=self.settings.pace)]

    def after_step(self, networks, phase, progress):
        if phase in self.phases:
            self.steps += 1
            self.last.fill_(progress)


def with_scale(**settings):
    return make_options({"objective.terms": {"scale": settings}}, OPTIONS)


def test_a_registered_term_is_trained_shown_and_told_of_every_step(registry):
    register("scale")(Scale)
    objective, history = fit(with_scale(weight=0.5))
    assert list(loss_words())[-1] == "scale"
    assert [("scale" in record) for record in history] == [False] * 2 + [True] * 5
    steps = ResidentBatches(problem().source, problem().target, balanced=True).steps(16)
    term = objective.terms["scale"]
    assert term.steps.item() == 5 * steps
    assert term.last.item() == pytest.approx((2 * steps - 1) / (2 * steps))
    assert objective.total("joint", {"scale": torch.ones(())}) == 0.5
    assert term not in objective.terms_in("warm-up")


def test_a_part_has_its_own_learning_rate(registry):
    register("scale")(Scale)

    def learned(pace, epochs):
        options = make_options({"training.joint_epochs": epochs}, with_scale(pace=pace))
        return fit(options, refine=False)[0].terms["scale"].scale.weight

    assert torch.equal(learned(0.0, 1), learned(0.0, 3))
    assert not torch.equal(learned(1.0, 1), learned(1.0, 3))


@pytest.mark.parametrize("stop_after", [1, 3, 6])
def test_what_a_term_holds_is_kept_in_checkpoints(registry, tmp_path, stop_after):
    register("scale")(Scale)
    whole, _ = fit(with_scale())
    path, seen = tmp_path / "run.safetensors", []

    def stop(objective, record):
        seen.append(record)
        if len(seen) == stop_after + 1:
            raise StopError

    with pytest.raises(StopError):
        fit(with_scale(), checkpoint=path, on_epoch=stop)
    resumed, _ = fit(with_scale(), checkpoint=path)
    assert "terms.scale.steps" in weights(resumed)
    assert same(weights(whole), weights(resumed))


def test_a_term_leaves_the_weights_of_the_others_alone_while_it_weighs_nothing(registry):
    """Initial weights and batches of a model do not depend on what is added after it."""
    register("scale")(Scale)
    plain, _ = fit()
    added, _ = fit(with_scale(weight=0.0))
    first, second = weights(plain), weights(added)
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"scall": {}},
            "There is no term 'scall' for objective.terms. Did you mean 'scale'? The terms are",
        ),
        (
            {"scale": {"wait": 1}},
            "There is no option 'objective.terms.scale.wait'. Did you mean "
            "'objective.terms.scale.weight'? The options of scale are weight, pace.",
        ),
        ({"scale": {"weight": -1}}, "objective.terms.scale.weight=-1: Input should be greater"),
        ({"scale": 3}, "objective.terms.scale=3: give a mapping of its settings"),
    ],
)
def test_unknown_names_and_settings_get_a_sentence(registry, given, sentence):
    register("scale")(Scale)
    with pytest.raises(OptionError) as caught:
        make_options({"objective.terms": given}, OPTIONS)
    assert str(caught.value).startswith(sentence)


def test_a_term_of_the_target_is_refused_for_a_model_that_does_not_adapt(registry):
    register("scale")(Scale)
    with pytest.raises(OptionError, match="Source-Full does not adapt: choose a model that adapts"):
        fit(with_scale(), "Source-Full", refine=False)


@pytest.mark.parametrize("name", ["adaptation", "not a name"])
def test_a_term_cannot_take_a_name_that_is_taken_or_none(registry, name):
    with pytest.raises(OptionError, match=f"A term cannot be called '{name}'"):
        register(name)(Scale)


# --- what a term sees -----------------------------------------------------------------------


def state(phase="joint", name="Adaptation-Imputation", **given):
    torch.manual_seed(0)
    small = problem(rows=8)
    networks = build_networks(small.blocks, variant_named(name), 2, OPTIONS)
    batch = Batch(small.source.inputs, small.source.labels, small.target)
    return State(phase, networks, OPTIONS, batch, **given)


def test_a_state_computes_what_is_asked_for_and_once():
    calls = []
    given = state()
    given.networks.classifier.register_forward_hook(lambda *_: calls.append(1))
    assert given.target_logits is given.target_logits
    assert len(calls) == 1
    assert torch.equal(given.latents.observed_source, given.latents.observed_source)


def test_the_warm_up_and_source_models_do_not_look_at_the_target():
    for given in (state("warm-up"), state("joint", "Source-Full")):
        assert given.source_logits is not None
        assert "latents" not in vars(given)


def test_both_domains_are_augmented_and_a_second_view_is_another_draw():
    noise = Views(lambda x: x + 1, lambda x: x + torch.rand(1))
    given = state(views=noise)
    assert torch.equal(given.source, given.plain.source + 1)
    first, second = given.target - given.plain.target, given.another_target - given.plain.target
    assert first.abs().min() > 0
    assert not torch.allclose(first, second)
    assert given.another_target is given.another_target


def test_target_batches_can_be_augmented():
    plain, _ = fit()
    named, _ = fit(make_options({"training.target_augmentation": "mask"}, OPTIONS))
    assert not same(weights(plain), weights(named))


# --- labels ---------------------------------------------------------------------------------


def test_soft_labels_and_weights_are_their_formula():
    random = np.random.default_rng(0)
    logits, weight = random.normal(size=(6, 3)), random.uniform(0, 2, size=6)
    soft = random.dirichlet(np.ones(3), size=6)
    log_probability = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    expected = np.mean(
        [w * -(y @ p) for w, y, p in zip(weight, soft, log_probability, strict=True)]
    )
    given = [torch.tensor(part) for part in (logits, soft, weight)]
    assert classification_loss(*given).item() == pytest.approx(expected)
    hard = torch.tensor([0, 1, 2, 0, 1, 2])
    certain = nn.functional.one_hot(hard).double()
    for rows in (None, given[2]):
        one, other = (classification_loss(given[0], labels, rows) for labels in (hard, certain))
        assert one.item() == pytest.approx(other.item())


def trained(labels, weights=None):
    small = problem()
    rows = LabelledRows(small.source.inputs, labels, weights)
    given = TrainingProblem(small.blocks, rows, small.target, 2)
    method = variant_named("Adaptation-Imputation")
    return fit_objective(given, method, OPTIONS, seed=7, refine=True, device="cpu")[0]


def test_certain_soft_labels_train_as_classes_do_and_scale_of_weights_is_nothing():
    labels = problem().source.labels
    hard = weights(trained(labels))
    soft = weights(trained(nn.functional.one_hot(labels).float()))
    assert all(torch.allclose(hard[name], soft[name], atol=1e-4) for name in hard)
    random = torch.rand(64, generator=torch.Generator().manual_seed(0))
    light, heavy = weights(trained(labels, random)), weights(trained(labels, 4 * random))
    assert same(light, heavy)
    assert not same(light, hard)


def test_batches_are_balanced_by_the_most_probable_class_and_carry_weights():
    soft = torch.tensor([[0.9, 0.1]] * 12 + [[0.2, 0.8]] * 4)
    rows = LabelledRows(torch.arange(16.0)[:, None], soft, torch.arange(16.0))
    epoch = list(ResidentBatches(rows, torch.zeros(16, 1), balanced=True).epoch(8, seed=0))
    labels = torch.cat([batch.labels for batch in epoch])
    assert labels.argmax(1).bincount().tolist() == [12, 12]
    for batch in epoch:
        assert torch.allclose(batch.weights, batch.source.flatten() / 7.5)
