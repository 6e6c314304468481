"""Networks that are trained as one stack are those that training one by one gives."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from halfseen.blocks import Blocks
from halfseen.labels import Classes
from halfseen.members import NetworksLearner, Sample, Task
from halfseen.networks.methods import method_named
from halfseen.networks.terms import Part
from halfseen.networks.training.optimizer import Adam, ParameterGroup
from halfseen.options import make_options, preset

QUIET = {
    "tables.dropout": 0.0,
    "training.augmentation": "none",
    "training.warmup_epochs": 1,
    "training.joint_epochs": 2,
    "training.gradient_clip": 0.5,
}
"""Without noise, and clipped so hard that the norm of each network's gradient matters."""


def three_tasks(*, soft=False, weighted=False):
    """Parts of one source that differ in size, within what a batch leaves over."""
    random = np.random.default_rng(0)
    inputs = random.normal(size=(120, 6)).astype(np.float32)
    labels = (inputs[:, 0] + inputs[:, 5] > 0).astype(np.int64)
    if soft:
        labels = np.stack([1.0 - 0.8 * labels, 0.8 * labels], axis=1)
    weights = random.uniform(0.5, 2.0, 120) if weighted else None
    blocks = Blocks.columns(6, [4, 5])
    target = blocks.hide(random.normal(0.5, 1.0, (90, 6)).astype(np.float32))
    whole = Sample(inputs, labels, weights)
    parts = [whole[random.permutation(120)[:size]] for size in (96, 100, 103)]
    return [Task(blocks, Classes.of(2), part, target, seed=3) for part in parts]


def learner(method="Adaptation-Imputation", **options):
    options = make_options(QUIET | options, preset("default", inputs="table"))
    return NetworksLearner(method_named(method), options)


@pytest.mark.parametrize("method", ["Adaptation-Imputation", "Source-ZeroImputation"])
@pytest.mark.parametrize("rows", [{}, {"soft": True}, {"weighted": True}])
def test_a_stack_gives_what_training_one_by_one_gives(method, rows):
    tasks = three_tasks(**rows)
    together = learner(method).fit_all(tasks)
    for task, member in zip(tasks, together, strict=True):
        alone = learner(method).fit(task)
        for name, tensor in alone.tensors().items():
            np.testing.assert_allclose(member.tensors()[name], tensor, rtol=1e-3, atol=1e-4)
    first, second = (member.tensors()["classifier.0.weight"] for member in together[:2])
    assert not np.allclose(first, second, atol=1e-3)


@pytest.mark.parametrize(
    "options",
    [
        {"objective.divergence": "transport"},
        {"networks.normalization": "batch"},
        {"objective.terms": {"averaged_teacher": {}}},
    ],
)
def test_what_is_not_row_by_row_is_trained_one_by_one(options):
    tasks = three_tasks()[:2]
    same = learner(**options)
    for task, member in zip(tasks, same.fit_all(tasks), strict=True):
        alone = same.fit(task)
        assert np.array_equal(
            member.log_probabilities(task.target), alone.log_probabilities(task.target)
        )


def test_a_stack_goes_on_from_its_checkpoint(tmp_path):
    tasks = [replace(task, checkpoint=tmp_path / "state.safetensors") for task in three_tasks()]
    whole = learner(**{"tables.dropout": 0.5}).fit_all(three_tasks())

    def stopping(title):
        class Stopping(type(tasks[0].progress(""))):
            def end_epoch(self, record):
                if (record["phase"], record["epoch"]) == ("joint", 2):
                    raise KeyboardInterrupt

        return Stopping()

    with pytest.raises(KeyboardInterrupt):
        learner(**{"tables.dropout": 0.5}).fit_all(
            [replace(task, progress=stopping) for task in tasks]
        )
    resumed = learner(**{"tables.dropout": 0.5}).fit_all(tasks)
    for one, other in zip(whole, resumed, strict=True):
        for name, tensor in one.tensors().items():
            assert np.array_equal(tensor, other.tensors()[name])


def test_adam_is_torchs():
    torch.manual_seed(0)
    ours, theirs = (torch.nn.Linear(3, 2) for _ in range(2))
    theirs.load_state_dict(ours.state_dict())
    adam = Adam([ParameterGroup(Part("", ours), 0.1, list(ours.parameters()))], (0.8, 0.9), 0.1)
    other = torch.optim.AdamW(theirs.parameters(), 0.1, (0.8, 0.9), weight_decay=0.1)
    for _ in range(3):
        rows = torch.randn(4, 3)
        for module, optimizer in ((ours, adam), (theirs, other)):
            module.zero_grad()
            module(rows).square().sum().backward()
            optimizer.step()
    torch.testing.assert_close(ours.weight, theirs.weight)
