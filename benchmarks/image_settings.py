"""Settings for images, compared on the two development pairs, whose labels may be opened.

Adaptation on USPS -> MNIST and MNIST -> MNIST-M, lower half missing: at most 20,000 training rows
of each domain, the accuracy of the last step on 2,000 target test rows. Of a model that imputes
also the squared error of imputed latents, on source rows that it learned from and on others,
beside the variance of the true ones. Finished runs are kept in the output file and not repeated.

    HALFSEEN_DATA=data python benchmarks/image_settings.py --output image_settings.jsonl
    python benchmarks/image_settings.py --output image_settings.jsonl --table
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from halfseen.networks.methods import method_named
from halfseen.networks.predictor import Predictor
from halfseen.networks.training import LabelledRows, Rows
from halfseen.networks.training.fitting import TrainingProblem, fit_objective
from halfseen.options import make_options, preset
from halfseen_bench.data import DomainPair
from halfseen_bench.data.digits import load_pair

IGNORE, IMPUTATION = "Adaptation-IgnoreComponent", "Adaptation-Imputation"
PAIRS = ("usps:mnist", "mnist:mnistm")
EPOCH, ROWS, TEST_ROWS, SHOWN = 100, 20_000, 2_000, 1_000
START: dict[str, Any] = {
    "images.channels": (32, 32, 128),
    "training.batch_size": 64,
    "training.warmup_epochs": 0,
    "training.epoch_steps": EPOCH,
    "training.learning_rate": 0.003,
    "training.augmentation": "auto",
    "training.target_augmentation": "auto",
    "objective.adaptation_latent": "both",
}
"""What all runs share unless they change it, with the teacher of `teacher()`."""


def teacher(**settings: Any) -> dict[str, Any]:
    """Return the averaged teacher as it was before it was compared, with some changes."""
    before = {"start": 0.3, "form": "squared", "threshold": 0.9}
    return {"objective.terms": {"averaged_teacher": before | settings}}


OBSERVED = {"objective.adaptation_latent": "observed"}
LABELS = teacher(form="labels", threshold=0.8)
SETTINGS: dict[str, dict[str, Any]] = {
    "start": {},
    "rate 0.01": {"training.learning_rate": 0.01},
    "labels from 0.9": teacher(form="labels"),
    "labels from 0.7, earlier": teacher(form="labels", threshold=0.7, start=0.2),
    "labels from 0.8": LABELS,
    "consistency 5, earlier": teacher(weight=5.0, start=0.2),
    "class balance 1, earlier": teacher(balance_weight=1.0, start=0.2),
    "dropout 0.1": {"networks.classifier_dropout": 0.1},
    "conditional alignment": {
        "objective.terms": teacher()["objective.terms"] | {"conditional_alignment": {}}
    },
    "L1 on z1": OBSERVED,
    "L1 on z1, f sees the imputed latent": OBSERVED | {"objective.classifier_latent": "imputed"},
    "L1 on z1, r's input detached": OBSERVED | {"objective.detach_generator_input": True},
    "no augmentation": {
        "training.augmentation": "none",
        "training.target_augmentation": "none",
    },
}
BOTH = {IGNORE: PAIRS, IMPUTATION: PAIRS}
RUNS: list[tuple[str, int, dict[str, tuple[str, ...]]]] = [
    ("start", 600, BOTH),
    ("rate 0.01", 600, {IGNORE: PAIRS[:1]}),
    ("labels from 0.9", 600, {IGNORE: PAIRS}),
    ("labels from 0.7, earlier", 600, {IGNORE: PAIRS}),
    ("consistency 5, earlier", 600, {IGNORE: PAIRS}),
    ("class balance 1, earlier", 600, {IGNORE: PAIRS[:1]}),
    ("dropout 0.1", 600, {IGNORE: PAIRS}),
    ("conditional alignment", 600, {IGNORE: PAIRS[:1]}),
    ("L1 on z1", 600, {IMPUTATION: PAIRS}),
    ("L1 on z1, f sees the imputed latent", 600, {IMPUTATION: PAIRS[1:]}),
    ("L1 on z1, r's input detached", 600, {IMPUTATION: PAIRS}),
    ("start", 1200, {IGNORE: PAIRS}),
    ("labels from 0.8", 1200, {IGNORE: PAIRS}),
    ("no augmentation", 600, {IGNORE: PAIRS[1:], IMPUTATION: PAIRS[1:]}),
]
"""Setting, steps, and the pairs on which each model was tried."""


def load(name: str) -> DomainPair:
    source, target = name.split(":")
    folder = Path(os.environ["HALFSEEN_DATA"])
    return load_pair(folder, source, target, max_train=ROWS, max_test=TEST_ROWS, seed=0)


def run(pair: DomainPair, model: str, setting: str, steps: int, seed: int) -> dict[str, Any]:
    changed = {"training.joint_epochs": steps // EPOCH, **teacher(), **SETTINGS[setting]}
    options = make_options(START | changed, preset("default"))
    inputs = torch.from_numpy(np.ascontiguousarray(pair.source_train.inputs))
    source = LabelledRows(inputs, torch.from_numpy(pair.source_train.labels))
    target = Rows(torch.from_numpy(np.ascontiguousarray(pair.target_train)))
    problem = TrainingProblem.resident(pair.blocks, source, target, len(pair.classes))
    started = time.process_time()
    objective, history = fit_objective(problem, method_named(model), options, seed=seed)
    predictor = Predictor(objective.networks, options, seed)
    truth = pair.target_test_labels.open("development")
    guess = predictor.log_probabilities(np.ascontiguousarray(pair.target_test)).argmax(1)
    found: dict[str, Any] = {
        "accuracy": round(100 * float((guess == truth).mean()), 1),
        "critic": round(history[-1]["adaptation"], 3),
        "cpu_seconds": round(time.process_time() - started),
    }
    if model == IMPUTATION:
        learned, others = inputs[:SHOWN].numpy(), pair.source_test.inputs[:SHOWN]
        with predictor.source_statistics(inputs[: 2 * SHOWN].numpy()):
            for name, rows in (("learned", learned), ("others", np.ascontiguousarray(others))):
                size = objective.networks.missing_size
                true = predictor.complete_latents(rows)[:, -size:]
                imputed = predictor.latents(pair.blocks.hide(rows))[:, -size:]
                found[f"error_{name}"] = round(float(((true - imputed) ** 2).sum(1).mean()), 3)
                found[f"variance_{name}"] = round(float(true.var(0).sum()), 3)
    return found


def lines(output: Path) -> list[dict[str, Any]]:
    if not output.is_file():
        return []
    return [json.loads(line) for line in output.read_text().splitlines()]


def run_all(output: Path, seeds: int) -> None:
    done = lines(output)
    for name in PAIRS:
        pair = None
        for setting, steps, models in RUNS:
            for model in (m for m, pairs in models.items() if name in pairs):
                for seed in range(seeds):
                    key = {"setting": setting, "steps": steps, "pair": name, "model": model}
                    key |= {"seed": seed}
                    if any(key.items() <= line.items() for line in done):
                        continue
                    pair = pair or load(name)
                    line = key | run(pair, model, setting, steps, seed)
                    print(json.dumps(line), flush=True)
                    with output.open("a") as file:
                        file.write(json.dumps(line) + "\n")


def table(output: Path) -> str:
    found = ["| setting | steps | model | " + " | ".join(PAIRS) + " |", "|---|---|---|---|---|"]
    done = lines(output)
    for setting, steps, models in RUNS:
        for model in models:
            asked = {"setting": setting, "steps": steps, "model": model}
            cells = []
            for pair in PAIRS:
                key = asked | {"pair": pair}
                values = [line["accuracy"] for line in done if key.items() <= line.items()]
                cells.append(f"{np.mean(values):.1f}" if values else "-")
            found.append(f"| {setting} | {steps} | {model} | {' | '.join(cells)} |")
    return "\n".join(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--table", action="store_true", help="print what is there")
    arguments = parser.parse_args()
    if arguments.table:
        print(table(arguments.output))
    else:
        torch.set_num_threads(1)
        run_all(arguments.output, arguments.seeds)


if __name__ == "__main__":
    main()
