"""Settings of the table networks, compared without any target label: rehearsals on sources.

``HALFSEEN_DATA=... python benchmarks/table_settings.py --output settings.jsonl`` takes labelled
sources (reviews, hospitals, simulated ads), lets the third of each that looks most like a target
play it, without x2, and trains networks on the rest under each setting, with logistic regression
on x1 beside them. A stopped run continues; ``--table`` prints what is there.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch

from halfseen.evidence.carving import carve_pseudo_target
from halfseen.members import Sample
from halfseen.members.linear import fit_regression
from halfseen.networks.methods import method_named
from halfseen.networks.predictor import Predictor
from halfseen.networks.training import LabelledRows, Rows
from halfseen.networks.training.fitting import TrainingProblem, fit_objective
from halfseen.options import make_options, preset
from halfseen_bench.data import DomainPair
from halfseen_bench.metrics import measured
from halfseen_bench.problems import load_problem
from halfseen_bench.scaling import standardized
from halfseen_bench.suites import FORMER_TABLE_NETWORK, SUITES

MODELS = ("Source-IgnoreComponent", "Adaptation-IgnoreComponent", "Adaptation-Imputation")
REGRESSION = "Logistic regression"
MOST_ROWS = 3000
BEFORE: dict[str, Any] = FORMER_TABLE_NETWORK | {
    "tables.widths": (128,),
    "training.weight_decay": 0.1,
    "objective.reconstruction_weight": 10.0,
}
"""What the first comparison started from; it led to the defaults of today."""
FORMER: dict[str, dict[str, Any]] = {
    "before": {},
    "before, weight decay 1": {"training.weight_decay": 1.0},
    "before, latent 32, linear f": {"tables.latent_size": 32, "networks.classifier_widths": ()},
    "before, mask noise": {"training.augmentation": "mask"},
    "before, mask noise, weight decay 1": {
        "training.augmentation": "mask",
        "training.weight_decay": 1.0,
    },
    "before, mask noise, latent 32, linear f": {
        "training.augmentation": "mask",
        "tables.latent_size": 32,
        "networks.classifier_widths": (),
    },
    "before, not balanced": {"training.balanced": False},
    "before, not balanced, mask noise": {
        "training.balanced": False,
        "training.augmentation": "mask",
    },
    "before, not balanced, latent 32, linear f": {
        "training.balanced": False,
        "tables.latent_size": 32,
        "networks.classifier_widths": (),
    },
    "not balanced, mask noise, latent 32, linear f": {
        "training.balanced": False,
        "training.augmentation": "mask",
        "tables.latent_size": 32,
        "networks.classifier_widths": (),
    },
}
CHANGES: dict[str, dict[str, Any]] = {
    "these, dropout 0.6": {"tables.dropout": 0.6},
    "these, λ_MSE 1": {"objective.reconstruction_weight": 1.0},
    "these, λ_MSE 1, dropout 0.6": {"objective.reconstruction_weight": 1.0, "tables.dropout": 0.6},
}
"""Changes of the last of those."""
SETTINGS = {name: BEFORE | change for name, change in FORMER.items()}
SETTINGS |= {name: list(SETTINGS.values())[-1] | change for name, change in CHANGES.items()}
METRICS = ("cross_entropy", "accuracy")
Line = dict[str, Any]


def pairs(seed: int) -> dict[str, DomainPair]:
    folder = Path(os.environ["HALFSEEN_DATA"])
    problems = [p for s in ("amazon", "heart") for p in SUITES[s].problems]
    problems += [p.having(rows=MOST_ROWS, test_rows=10) for p in SUITES["ads-sim"].problems]
    return {
        f"{p.family} {p.name}": load_problem(p, seed=seed, data_dir=folder).pair for p in problems
    }


def staged(pair: DomainPair, seed: int) -> tuple[LabelledRows, torch.Tensor, np.ndarray]:
    """Return the rest with its labels, and the slice without x2, its labels apart."""
    rows = np.concatenate([pair.source_train.inputs, pair.source_test.inputs])[:MOST_ROWS]
    labels = np.concatenate([pair.source_train.labels, pair.source_test.labels])[:MOST_ROWS]
    observed = pair.blocks.flat(rows, "observed")
    there = pair.blocks.flat(pair.target_train, "observed")[:MOST_ROWS]
    chosen = carve_pseudo_target(observed, there, random_state=seed).chosen
    rest = LabelledRows(torch.from_numpy(rows[~chosen]), torch.from_numpy(labels[~chosen]))
    return rest, torch.from_numpy(pair.blocks.hide(rows[chosen])), labels[chosen]


def run(pair: DomainPair, model: str, settings: dict[str, Any], seed: int) -> dict[str, float]:
    rest, played, truth = staged(standardized(pair), seed)
    classes = len(pair.classes)
    if model == REGRESSION:
        known = Sample(rest.inputs.numpy(), rest.labels.numpy())
        regression = fit_regression(known, pair.blocks, classes)
        found = np.exp(regression.log_probabilities(played.numpy()))
        return {m: measured(found, truth)[m] for m in METRICS}
    method = method_named(model)
    base = preset("default", inputs="table", imputes=method.imputes)
    options = make_options(settings, base)
    problem = TrainingProblem.resident(pair.blocks, rest, Rows(played), classes)
    objective, _ = fit_objective(problem, method, options, seed=seed)
    predictor = Predictor(objective.networks, options, seed)
    probability = np.exp(predictor.log_probabilities(played.numpy()))
    return {m: measured(probability, truth)[m] for m in METRICS}


def lines(output: Path) -> list[Line]:
    if not output.is_file():
        return []
    return [json.loads(line) for line in output.read_text().splitlines()]


def run_all(output: Path, seeds: int, settings: list[str]) -> None:
    done = lines(output)
    for seed in range(seeds):
        for name, pair in pairs(seed).items():
            asked = [(m, s) for s in settings for m in MODELS] + [(REGRESSION, "-")]
            for model, setting in asked:
                key = {"pair": name, "model": model, "setting": setting, "seed": seed}
                if any(key.items() <= line.items() for line in done):
                    continue
                line = key | run(pair, model, SETTINGS.get(setting, {}), seed)
                with output.open("a") as file:
                    file.write(json.dumps(line) + "\n")


def table(found: list[Line]) -> str:
    """Return means by kind of data."""
    kinds = list(dict.fromkeys(line["pair"].split()[0] for line in found))
    heads = [f"{kind}, {metric}" for kind in kinds for metric in METRICS]
    shown = ["| model | setting | " + " | ".join(heads) + " |", "|---" * (len(heads) + 2) + "|"]
    for model, setting in dict.fromkeys((x["model"], x["setting"]) for x in found):
        cells = []
        for kind in kinds:
            own = [
                x
                for x in found
                if (x["model"], x["setting"]) == (model, setting) and x["pair"].startswith(kind)
            ]
            for metric in METRICS:
                mean = np.mean([x[metric] for x in own]) if own else np.nan
                cells.append(f"{100 * mean:.1f}" if metric == "accuracy" else f"{mean:.3f}")
        shown.append(f"| {model} | {setting} | {' | '.join(cells)} |")
    return "\n".join(shown)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--table", action="store_true", help="print, without training")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if not given.table:
        run_all(given.output, given.seeds, given.settings)
    print(table(lines(given.output)))


if __name__ == "__main__":
    main()
