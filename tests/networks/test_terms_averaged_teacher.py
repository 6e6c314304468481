"""The averaged teacher: its closed form, its losses, when it starts and that it predicts."""

import numpy as np
import pytest
import torch
from scipy.special import softmax
from scipy.stats import entropy
from test_training_loop import OPTIONS, StopError, fit, problem, same, weights
from torch import nn

from halfseen import OptionError
from halfseen.networks.objective import build_objective
from halfseen.networks.terms import Batch
from halfseen.networks.terms.averaged_teacher import (
    AveragedTeacher,
    class_balance_loss,
    consistency_loss,
    move_average,
)
from halfseen.networks.variants import variant_named
from halfseen.options import make_options


def options_with(changed=None, **settings):
    given = {"objective.terms": {"averaged_teacher": settings}}
    return make_options(
        {**given, "training.target_augmentation": "mask", **(changed or {})}, OPTIONS
    )


def teacher_of(objective):
    return objective.terms["averaged_teacher"].teacher


def flat(module):
    return torch.cat([parameter.detach().flatten() for parameter in module.parameters()])


def test_the_moving_average_is_its_closed_form():
    """θ'_n = α^n θ'_0 + (1 − α) Σ_i α^(n − i) θ_i."""
    torch.manual_seed(0)
    average, module = nn.Linear(3, 2).double(), nn.Linear(3, 2).double()
    start, steps, decay = flat(average).numpy(), [], 0.9
    for _ in range(7):
        for parameter in module.parameters():
            nn.init.normal_(parameter)
        steps.append(flat(module).numpy())
        move_average(average, module, decay)
    powers = decay ** np.arange(6, -1, -1)
    expected = decay**7 * start + (1 - decay) * powers @ np.array(steps)
    np.testing.assert_allclose(flat(average), expected, rtol=1e-12)


def test_training_averages_over_its_own_steps(monkeypatch):
    seen, decay, usual = [], 0.8, AveragedTeacher.after_step

    def watched(term, networks, phase, progress):
        usual(term, networks, phase, progress)
        seen.append((phase, flat(networks).double().numpy(), flat(term.teacher).double().numpy()))

    monkeypatch.setattr(AveragedTeacher, "after_step", watched)
    fit(options_with({"training.joint_epochs": 1}, decay=decay), refine=False)
    warm_up = [step for step in seen if step[0] == "warm-up"]
    for _, networks, teacher in warm_up:
        np.testing.assert_array_equal(networks, teacher)
    expected = warm_up[-1][2]
    for _, networks, teacher in seen[len(warm_up) :]:
        expected = decay * expected + (1 - decay) * networks
        np.testing.assert_allclose(teacher, expected, atol=1e-5)


def test_labels_are_those_that_the_teacher_is_sure_of():
    random = np.random.default_rng(0)
    logits, believed = random.normal(size=(20, 3)), random.dirichlet(np.ones(3), size=20)
    answer = softmax(logits, axis=1)
    rows = [
        -np.log(p[q.argmax()]) if q.max() >= 0.7 else 0.0
        for p, q in zip(answer, believed, strict=True)
    ]
    assert 0 < np.count_nonzero(rows) < 20
    found = consistency_loss(torch.tensor(logits), torch.tensor(believed), 0.7)
    assert found.item() == pytest.approx(np.mean(rows))


def test_class_balance_is_the_divergence_of_the_mean_answer():
    answer = np.random.default_rng(0).dirichlet(np.ones(3), size=20)
    found = class_balance_loss(torch.tensor(answer))
    assert found.item() == pytest.approx(entropy(np.full(3, 1 / 3), answer.mean(0)))
    gone = torch.tensor([[1.0, 0.0]], requires_grad=True)
    assert torch.isfinite(class_balance_loss(gone))


def objective_of(**settings):
    torch.manual_seed(0)
    small = problem()
    method = variant_named("Adaptation-Imputation")
    objective = build_objective(small.blocks, method, 2, options_with(**settings))
    batch = Batch(small.source.inputs[:8], small.source.labels[:8], small.target[:8])
    return objective.train(), batch


def test_gradients_reach_the_networks_and_never_the_teacher():
    objective, batch = objective_of(threshold=0.0)
    losses = objective("joint", batch)
    (losses["consistency"] + losses["class_balance"]).backward()
    assert objective.networks.classifier[0].weight.grad.abs().sum() > 0
    assert all(p.grad is None for p in teacher_of(objective).parameters())


def test_the_teacher_has_no_dropout_and_normalises_by_the_batch():
    objective, _ = objective_of()
    modes = {type(layer).__name__: layer.training for layer in teacher_of(objective).modules()}
    assert not modes["Dropout"]
    assert modes["BatchNorm1d"]
    assert not any(layer.training for layer in objective.eval().modules())


def test_it_starts_when_it_is_told_to():
    objective, batch = objective_of(start=0.5)
    assert "consistency" not in objective("joint", batch, progress=0.4)
    assert "consistency" in objective("joint", batch, progress=0.5)
    assert "consistency" in objective("refine", batch, progress=0.0)
    assert "consistency" not in objective("warm-up", batch)
    _, history = fit(options_with(start=0.5), refine=False)
    assert [("consistency" in record) for record in history] == [False] * 3 + [True] * 2
    assert all(np.isfinite(record["classification"]) for record in history)


def test_the_average_predicts_in_the_end():
    average, _ = fit(options_with(decay=0.9))
    assert same(teacher_of(average).state_dict(), average.networks.state_dict())


def test_epochs_are_looked_at_as_they_would_predict_and_training_goes_on_undisturbed():
    seen = []

    def hook(objective, record):
        assert objective.networks is teacher_of(objective)
        seen.append(flat(objective.networks).clone())

    plain, _ = fit(options_with())
    hooked, _ = fit(options_with(), on_epoch=hook)
    assert same(weights(plain), weights(hooked))
    assert torch.equal(seen[-1], flat(hooked.networks))


@pytest.mark.parametrize("stop_after", [1, 3, 5])
def test_a_run_stopped_and_resumed_ends_with_the_same_average(tmp_path, stop_after):
    whole, _ = fit(options_with())
    path, seen = tmp_path / "run.safetensors", []

    def stop(objective, record):
        seen.append(record)
        if len(seen) == stop_after + 1:
            raise StopError

    with pytest.raises(StopError):
        fit(options_with(), checkpoint=path, on_epoch=stop)
    resumed, _ = fit(options_with(), checkpoint=path)
    assert same(weights(whole), weights(resumed))


def test_a_model_that_does_not_adapt_refuses_it():
    with pytest.raises(OptionError, match="averaged_teacher looks at target rows in training"):
        fit(options_with(), "Source-IgnoreComponent", refine=False)


@pytest.mark.parametrize("view", ["plain", "augmented"])
def test_the_teacher_sees_rows_as_they_are_or_augmented(monkeypatch, view):
    seen, usual = [], AveragedTeacher.forward

    def watched(term, state):
        hook = term.teacher.register_forward_pre_hook(
            lambda _, rows: seen.append(torch.equal(rows[0], state.plain.target))
        )
        with hook:
            return usual(term, state)

    monkeypatch.setattr(AveragedTeacher, "forward", watched)
    fit(options_with({"training.joint_epochs": 1}, view=view), refine=False)
    assert set(seen) == {view == "plain"}
