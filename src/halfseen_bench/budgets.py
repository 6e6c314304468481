"""How much a sweep may spend, as data: epochs, seeds and rows."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from halfseen_bench.problems import BenchProblem, Kind

T = TypeVar("T")


class Budget(BaseModel):
    """How much is spent."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    what: str
    training: dict[Kind, dict[str, Any]]
    """Options of the models: lengths of the phases, sizes of networks."""
    seeds: dict[Kind, int]
    """Runs of each model."""
    reader: dict[str, dict[str, Any]] = {}
    """Options of the readers, by family: subsets, and sizes of what is simulated."""
    score_rows: int = 1000
    """Rows of each domain on which label-free scores are taken; 0 takes none."""
    evaluations: int = 100
    """The most epochs of a phase after which they are, and the target is measured."""

    def problem(self, problem: BenchProblem) -> BenchProblem:
        """Return the problem at this budget's size; what the problem itself says stays."""
        options = {**self.reader.get(problem.family, {}), **problem.reader}
        most = min((options[name] for name in _SIZES if options.get(name)), default=float("inf"))
        rows = tuple(n for n in problem.source_rows if n is None or n < most)
        return problem.model_copy(update={"reader": options, "source_rows": rows})


_SIZES = ("max_train", "max_rows", "rows")
"""Options of the readers that bound how many source rows there are."""


def _epochs(warmup: int, joint: int | str, refine: int, steps: int | None = None) -> dict[str, Any]:
    """Return the epochs of each phase: passes over the source, or so many steps each."""
    return {
        "training.warmup_epochs": warmup,
        "training.joint_epochs": joint,
        "training.epoch_steps": steps,
        "refinement.epochs": refine,
    }


def _kinds(image: T, curve: T, table: T, demo: T) -> dict[Kind, T]:
    return {"image": image, "curve": curve, "table": table, "demo": demo}


_DEMO = _epochs(0, 30, 0)
"""300 steps instead of the default's 2,000; the averaged teacher stands in for refinement."""
_PAPER = {**_epochs(10, 90, 10), "images.channels": (64, 64, 128)}
_NARROW: dict[str, Any] = {"images.channels": (32, 32, 128)}
"""Half of the paper's filters before the last layer, which makes the latent."""

BUDGETS: dict[str, Budget] = {
    budget.name: budget
    for budget in (
        Budget(
            name="paper",
            what="the paper's epochs and five runs on all rows",
            training=_kinds(_PAPER, _PAPER, _epochs(5, 45, 10), _DEMO),
            seeds=_kinds(5, 5, 5, 5),
            score_rows=2000,
        ),
        Budget(
            name="cpu",
            what="hours on two cores: subsets of the digits, narrower encoders, fewer epochs",
            training=_kinds(
                {**_epochs(4, 16, 4), **_NARROW, "training.batch_size": 64},
                {**_epochs(10, "auto", 4), **_NARROW},
                _epochs(5, "auto", 10),
                _DEMO,
            ),
            seeds=_kinds(3, 3, 5, 3),
            reader={
                "digits": {"max_train": 3_000, "max_test": 3_000},
                "criteo": {"max_rows": 100_000},
                "ads-sim": {"rows": 20_000, "test_rows": 10_000},
            },
            evaluations=8,
        ),
        Budget(
            name="steps",
            what="all rows, 16 epochs of 100 steps on images: five to ten minutes of one thread "
            "for each run; tables as cpu",
            training=_kinds(
                {**_epochs(0, 16, 0, 100), "training.batch_size": 64},
                _epochs(0, 16, 0, 100),
                _epochs(5, "auto", 10),
                _DEMO,
            ),
            seeds=_kinds(1, 1, 5, 3),
            reader={"criteo": {"max_rows": 100_000}},
            score_rows=0,
            evaluations=3,
        ),
        Budget(
            name="quick",
            what="a minute or so: to try the command, not the method",
            training=_kinds(*3 * (_epochs(1, 2, 1),), _epochs(1, 1, 1)),
            seeds=_kinds(1, 1, 2, 1),
            reader={
                "digits": {"max_train": 300, "max_test": 200},
                "criteo": {"max_rows": 300},
                "ads-sim": {"rows": 400, "test_rows": 400},
                "amazon": {"vocabulary": 500, "dimensions": 40},
            },
            score_rows=200,
        ),
    )
}

DEMO_BUDGET = BUDGETS["cpu"].model_copy(
    update={"name": "demo", "score_rows": 0, "evaluations": BUDGETS["paper"].evaluations}
)
"""That of ``halfseen demo``: the target is measured after every epoch."""
