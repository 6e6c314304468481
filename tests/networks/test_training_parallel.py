"""Two processes that train one model: what they compute together, and what apart."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from test_training_loop import fit, problem
from torch import distributed

from halfseen import OptionError, preset
from halfseen.networks.objective import build_objective
from halfseen.networks.terms.term import Batch
from halfseen.networks.training.batches import LabelledRows, ResidentBatches
from halfseen.networks.training.loop import Trainer
from halfseen.networks.training.phases import Phase
from halfseen.networks.variants import variant_named
from halfseen.options import make_options
from halfseen.parallel import ALONE, Ranks, present_ranks

PLAIN = make_options(
    {
        "tables.widths": (16,),
        "tables.latent_size": 8,
        "generator.widths": (16,),
        "networks.classifier_widths": (16,),
        "networks.critic_widths": (16,),
        "training.learning_rate": 1e-2,
        "training.batch_size": 15,
        "training.warmup_batch_size": 16,
        "training.warmup_epochs": 1,
        "training.joint_epochs": 3,
        "refinement.threshold": 0.5697,
    },
    preset("paper", inputs="table"),
)
WHOLE = {
    "joint": ("joint", {}),
    "an uneven batch": ("joint", {"training.batch_size": 15}),
    "warm-up": ("warm-up", {}),
    "clipped": ("joint", {"training.gradient_clip": 1e-3}),
    "conditional alignment": (
        "joint",
        {"objective.terms": {"conditional_alignment": {"entropy": False}}},
    ),
    "averaged teacher": (
        "joint",
        {"objective.terms": {"averaged_teacher": {"threshold": 0.0, "balance_weight": 0.0}}},
    ),
}
"""Two ranks give the gradient of one with the whole batch."""
APART = {
    "transport": ("joint", {"objective.divergence": "transport"}),
    "batch norm": ("joint", {"networks.normalization": "batch"}),
    "norm of the batch": ("joint", {"objective.reconstruction": "norm"}),
    "refinement": ("refine", {}),
}
"""Two ranks give the mean of what the halves of the batch give by themselves."""
CASES = {name: (phase, {"training.batch_size": 16} | changed) for name, (phase, changed) in
         (WHOLE | APART).items()}  # fmt: skip


class OneBatch:
    """An epoch of one given batch."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch

    def steps(self, batch_size):
        return 1

    def epoch(self, batch_size, seed, ranks=ALONE):
        yield Batch(*(rows[ranks.rows(batch_size)] for rows in self.batch[:3]))


def batch_of(rows: int) -> Batch:
    small = problem(rows=rows)
    return Batch(small.source.inputs, small.source.labels, small.target)


def gradients(case: str, batch: Batch, ranks: Ranks = ALONE) -> dict[str, torch.Tensor]:
    """The gradients of a step of the loop, in the middle of the ramp and at the first weights."""
    name, changed = CASES[case]
    options = make_options(changed, PLAIN)
    torch.manual_seed(3)
    method = variant_named("Adaptation-Imputation")
    objective = build_objective(problem().blocks, method, 2, options)
    size = len(batch.source)
    trainer = Trainer(objective, OneBatch(batch), 0, ranks=ranks)
    trainer.train([Phase(name, 2, size, 0.0)])
    return {
        name: parameter.grad
        for name, parameter in objective.named_parameters()
        if parameter.grad is not None
    }


def halves(batch: Batch) -> list[Batch]:
    parts = [Ranks(rank, 2).rows(len(batch.source)) for rank in range(2)]
    return [Batch(*(rows[part] for rows in batch[:3])) for part in parts]


def whole_fit(checkpoint=None, kept=None):
    """A fit whose every step is one of the whole batch.

    `kept` gets a copy of the checkpoint as it is in the middle of the second joint epoch.
    """
    seen = []

    def hook(objective, record):
        assert present_ranks().is_first
        seen.append(record["epoch"])
        if kept is not None and len(seen) == 3:
            shutil.copy(checkpoint, kept)

    objective, history = fit(
        PLAIN,
        refine=False,
        checkpoint=checkpoint,
        on_epoch=hook,
    )
    return objective.state_dict(), history, seen


def work(rank: int, folder: str) -> None:
    """Run by each of two processes; writes what came out."""
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2
    )
    ranks = present_ranks()
    assert ranks == Ranks(rank, 2)
    stepped = {
        case: gradients(case, batch_of(changed["training.batch_size"]), ranks)
        for case, (_, changed) in CASES.items()
    }
    checkpoint, kept = (Path(folder) / f"{name}.safetensors" for name in ("checkpoint", "kept"))
    state, history, seen = whole_fit(checkpoint, kept)
    resumed, _, seen_again = whole_fit(kept)
    normed, _ = fit()  # with dropout, batch normalisation, noise and refinement
    found = {"stepped": stepped, "state": state, "history": history, "seen": seen}
    found |= {"resumed": resumed, "seen_again": seen_again, "normed": normed.state_dict()}
    torch.save(found, f"{folder}/{rank}.pt")


@pytest.fixture(scope="module")
def alone():
    """What one process finds."""
    return whole_fit()


@pytest.fixture(scope="module")
def ranks(alone, tmp_path_factory):
    """What two processes found."""
    folder = tmp_path_factory.mktemp("ranks")
    # Forked after a fit, they need not import everything again.
    torch.multiprocessing.start_processes(work, (str(folder),), nprocs=2, start_method="fork")
    return [torch.load(folder / f"{rank}.pt") for rank in range(2)]


def test_both_hold_the_same_weights_and_statistics(ranks):
    first, second = ranks
    for name in ("state", "resumed", "normed"):
        assert all(torch.equal(tensor, second[name][key]) for key, tensor in first[name].items())
    assert any("running_var" in key for key in first["normed"])


@pytest.mark.parametrize("case", CASES)
def test_a_step_of_two_is_the_step_of_one_where_losses_are_means(case, ranks):
    batch = batch_of(CASES[case][1]["training.batch_size"])
    whole = gradients(case, batch)
    found = ranks[0]["stepped"][case]
    assert set(found) == set(whole)

    def distance(other):
        return max(float((found[k] - other[k]).norm() / other[k].norm()) for k in other)

    if case in WHOLE:
        assert distance(whole) < 1e-4
    else:
        shares = [len(half.source) / len(batch.source) for half in halves(batch)]
        parts = [gradients(case, half) for half in halves(batch)]
        mean = {k: sum(s * p[k] for s, p in zip(shares, parts, strict=True)) for k in whole}
        assert distance(mean) < 1e-4
        assert distance(whole) > 1e-2


def test_a_fit_of_two_is_the_fit_of_one(alone, ranks):
    state, history, seen = alone
    for name, tensor in state.items():
        torch.testing.assert_close(ranks[0]["state"][name], tensor, rtol=1e-3, atol=1e-5)
    for record, other in zip(history, ranks[0]["history"], strict=True):
        assert set(other) == set(record)
        for name in ("classification", "adaptation"):
            if name in record:
                assert other[name] == pytest.approx(record[name], rel=1e-3)
    assert ranks[0]["seen"] == seen == [1, 1, 2, 3]
    assert ranks[1]["seen"] == [], "hooks are called by the first process alone"


def test_two_go_on_from_a_checkpoint_to_the_same_weights(ranks):
    state, resumed = ranks[0]["state"], ranks[0]["resumed"]
    assert all(torch.equal(tensor, resumed[name]) for name, tensor in state.items())
    assert ranks[0]["seen_again"] == [2, 3]


def test_the_parts_of_every_batch_make_up_the_whole():
    rows = torch.arange(50.0)[:, None]
    batches = ResidentBatches(LabelledRows(rows, rows[:, 0].long() % 2), rows, balanced=False)
    whole = list(batches.epoch(7, seed=1))
    parts = [list(batches.epoch(7, 1, Ranks(rank, 3))) for rank in range(3)]
    assert {len(part) for part in parts} == {len(whole)} == {7}
    for step, batch in enumerate(whole):
        for field in range(3):
            together = torch.cat([part[step][field] for part in parts])
            assert torch.equal(together, batch[field])
    assert sum(Ranks(rank, 3).weight(7) for rank in range(3)) == pytest.approx(3.0)


def test_more_processes_than_a_batch_has_rows_for_are_refused():
    with pytest.raises(OptionError, match=r"batch_size=15 .* 8 processes.* at most 7"):
        gradients("joint", batch_of(15), Ranks(0, 8))
