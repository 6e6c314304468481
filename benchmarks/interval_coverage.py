"""How often the intervals of a report hold the truth, on the panel's development problems.

Each problem is fitted with ``effort="quick"`` on a draw of its source and target rows. What the
intervals rest on is kept, so that the table needs no fit; runs that are there are not repeated:

    HALFSEEN_DATA=... python benchmarks/interval_coverage.py --output coverage/ --seeds 2
    python benchmarks/interval_coverage.py --output coverage/ --table
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from halfseen.data.frames import infer_frames, label_column, read_frame
from halfseen.evidence.risk import deep_embedded_validation
from halfseen.fitting.pipeline import fit_tables
from halfseen.fitting.report_facts import LEVEL, as_read, expectation, on_target
from halfseen.metrics import row_losses
from halfseen.settings import FitSettings
from halfseen.targets import ClassTarget
from halfseen_bench.panel.problems import DEVELOPMENT

SOURCE_ROWS, TARGET_ROWS = 1_200, 1_500
SHARE = 0.8
"""Of smaller tables, so that draws differ."""
GRID = np.arange(0.0, 0.3, 0.01)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--problems", nargs="*", default=list(DEVELOPMENT))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    if given.table:
        print_table([_read(path) for path in sorted(given.output.glob("*.npz"))])
        return
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    given.output.mkdir(parents=True, exist_ok=True)
    for seed in range(given.seeds):
        for number, problem in enumerate(DEVELOPMENT):
            if problem in given.problems:
                run(given.output, number, problem, seed)


def run(folder: Path, number: int, problem: str, seed: int) -> None:
    path = folder / f"{number:02d}-{seed}.npz"
    if path.exists():
        return
    data, random = DEVELOPMENT[problem](seed), np.random.default_rng(seed)
    rows = random.permutation(len(data.source))[: min(SOURCE_ROWS, int(SHARE * len(data.source)))]
    there = len(data.target)
    few = TARGET_ROWS if there >= TARGET_ROWS else int(SHARE * there)
    others = random.permutation(there)[:few]
    target = taken(data.target, others)
    found = fitted(
        taken(data.source, rows), data.labels[rows], target, data.truth[others], seed=seed
    )
    np.savez_compressed(path, problem=problem, **found)
    print(problem, seed, flush=True)


def taken(frame: pd.DataFrame, rows: Any) -> pd.DataFrame:
    return frame.iloc[rows].reset_index(drop=True)


def understood(source: pd.DataFrame, labels: Any, target: pd.DataFrame) -> Any:
    table = read_frame(source, "the source")
    _, column = label_column(labels, len(source))
    return infer_frames(table, column, read_frame(target, "the target"), keep=target.columns)


def fitted(source: Any, labels: Any, target: Any, truth: Any, *, seed: int) -> dict[str, Any]:
    """Fit, and return what intervals rest on, with what came true."""
    found = understood(source, labels, target)
    fit = fit_tables(found, FitSettings(effort="quick", seed=seed))
    held_out = fit.candidate.held_out
    assert held_out is not None
    probability, positions = fit.model.predict_proba(target), fit.model.positions(truth)
    return {
        "probability": held_out.to_predictions().astype(np.float32),
        "labels": held_out.labels,
        "weight": fit.weights,
        "target_rows": len(target),
        "accuracy": float((probability.argmax(1) == positions).mean()),
        "cross_entropy": float(row_losses(probability, positions).mean()),
    }


def _read(path: Path) -> dict[str, Any]:
    with np.load(path) as stored:
        found = {name: stored[name] for name in stored.files}
    probability, weight = found["probability"].astype(float), found["weight"]
    rows = int(found["target_rows"])
    found["probability"] = probability / probability.sum(1, keepdims=True)
    classes = ClassTarget.of(probability.shape[1])
    found["expected"] = expectation(found["probability"], found["labels"], weight, rows, classes)
    found["problem"] = str(found["problem"])
    return found


def covered(run: dict[str, Any], measure: str, other: float | None = None) -> bool:
    """Whether an interval holds the truth; with another term for what differs beyond x1."""
    estimate = run["expected"].target[measure]
    if other is not None:
        classes = ClassTarget.of(run["probability"].shape[1])
        found = classes.expected(run["probability"], run["labels"])[measure]
        risk = on_target(found.losses, run["weight"], int(run["target_rows"]), other)
        estimate = as_read(*risk, found.read)
    return bool(estimate.low <= run[measure] <= estimate.high)


def plainly(run: dict[str, Any], measure: str) -> bool:
    """Whether the interval of the sampling of source rows alone would have held it."""
    loss = (run["probability"].argmax(1) != run["labels"]).astype(float)
    truth = 1.0 - float(run["accuracy"])
    if measure == "cross_entropy":
        loss, truth = row_losses(run["probability"], run["labels"]), float(run[measure])
    low, high = deep_embedded_validation(loss, run["weight"], level=LEVEL).interval
    return low <= truth <= high


def left_out(runs: list[dict[str, Any]], measure: str) -> list[bool]:
    """Whether intervals hold whose term was found on the other problems alone."""
    found = []
    for problem in dict.fromkeys(run["problem"] for run in runs):
        others = [run for run in runs if run["problem"] != problem and run["kind"] == "real"]
        enough = [
            other
            for other in GRID
            if np.mean([covered(run, measure, other) for run in others]) >= LEVEL
        ]
        own = [run for run in runs if run["problem"] == problem]
        found += [covered(run, measure, min(enough, default=GRID[-1])) for run in own]
    return found


def print_table(runs: list[dict[str, Any]]) -> None:
    titles = ("measure", "told of", "DEV's interval alone", "as shown", "left out", "width")
    print("| " + " | ".join(titles) + " |")
    print("|---" * len(titles) + "|")
    for measure in ("accuracy", "cross_entropy"):
        told = [run for run in runs if run["expected"].tells]
        widths = [
            run["expected"].target[measure].high - run["expected"].target[measure].low
            for run in told
        ]
        cells = (
            measure.replace("_", "-"),
            f"{len(told)} of {len(runs)}",
            f"{np.mean([plainly(run, measure) for run in told]):.0%}",
            f"{np.mean([covered(run, measure) for run in told]):.0%}",
            f"{np.mean(left_out(told, measure)):.0%}",
            f"{np.median(widths):.2f}",
        )
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
