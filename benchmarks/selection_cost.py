"""What a score costs beside the epoch that it follows: ``python benchmarks/selection_cost.py``.

Processor seconds on one thread; random rows, the default settings.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import torch

from halfseen import Blocks, preset
from halfseen.networks.methods import method_named
from halfseen.networks.predictor import Predictor
from halfseen.networks.training import LabelledRows, Rows
from halfseen.networks.training.fitting import TrainingProblem, fit_objective
from halfseen.options import make_options
from halfseen.selection import ONE_FIT_SCORES, Evidence, evaluate

REPEATS = 3


def problem(blocks: Blocks, rows: int) -> tuple[TrainingProblem, Evidence]:
    generator = torch.Generator().manual_seed(0)

    def drawn(count: int) -> torch.Tensor:
        return torch.randn(count, *blocks.shape, generator=generator)

    source = LabelledRows(drawn(rows), torch.arange(rows) % 2)
    held_out, labels = drawn(rows // 4), torch.arange(rows // 4) % 2
    target = Rows(blocks.hide(drawn(rows) + 0.3))
    given = TrainingProblem.resident(blocks, source, target, 2)
    parts = (held_out, labels, target.inputs, source.inputs)
    return given, Evidence(*(part.numpy() for part in parts))


def seconds(function: Callable[[], object]) -> float:
    function()
    started = time.process_time()
    for _ in range(REPEATS):
        function()
    return (time.process_time() - started) / REPEATS


def row(kind: str, blocks: Blocks, rows: int) -> str:
    given, evidence = problem(blocks, rows)
    options = preset("default", inputs="table" if blocks.is_table else "image")
    options = make_options({"training.warmup_epochs": 0, "training.joint_epochs": 1}, options)

    def epoch() -> Predictor:
        method = method_named("Adaptation-Imputation")
        objective, _ = fit_objective(given, method, options, seed=0, device="cpu")
        return Predictor(objective.networks, options)

    model = epoch()
    times = [seconds(epoch)]
    for name in ONE_FIT_SCORES:
        times.append(seconds(partial(evaluate, model, evidence, (name,))))
    return f"| {kind} | {rows} | " + " | ".join(f"{time:.2f} s" for time in times) + " |"


def main() -> None:
    torch.set_num_threads(1)
    print("| inputs | source rows | one epoch |", " | ".join(ONE_FIT_SCORES), "|")
    print("|---" * (3 + len(ONE_FIT_SCORES)) + "|")
    table = Blocks.columns(20, [17, 18, 19])
    print(row("20 columns", table, 250))
    print(row("20 columns", table, 10_000))
    print(row("32 x 32 images", Blocks.rows((1, 32, 32)), 2_000))


if __name__ == "__main__":
    main()
