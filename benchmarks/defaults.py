"""Compare settings without any target label: rehearsals made of one labelled domain.

Each rehearsal splits scikit-learn's digits in two, shifts one part by a synthetic change (the
labels are known because the part comes from the source) and hides its lower half. A setting
that does well on all of them is a candidate for a default. The digits are those of the demo,
under other shifts, so the demo does not test a default independently.

    python benchmarks/defaults.py --output defaults.jsonl --seeds 2
    python benchmarks/defaults.py --output defaults.jsonl --table

``--network digits`` rehearses with images and networks of the size of the digit results.
Finished runs are kept in the output file and not repeated.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch
from joblib import Parallel, delayed
from sklearn.datasets import load_digits
from torch.nn.functional import affine_grid, grid_sample, interpolate

from halfseen import AdaptationImputationClassifier, Blocks
from halfseen_bench.budgets import BUDGETS
from halfseen_bench.suites import DEMO_NETWORK

NETWORKS = {
    "demo": (16, DEMO_NETWORK),
    "digits": (32, {"images.channels": BUDGETS["cpu"].training["image"]["images.channels"]}),
}
"""The side of the images, and how their networks differ from the default."""
EPOCHS = {"training.warmup_epochs": 5, "training.joint_epochs": 20}
MODELS = {"imputation": "Adaptation-Imputation", "ignore": "Adaptation-IgnoreComponent"}


def clutter(digits: torch.Tensor) -> torch.Tensor:
    """Blend onto smooth random colours, darker than the ink."""
    field = 0.6 * torch.rand(len(digits), 3, 4, 4)
    return (interpolate(field, size=digits.shape[2:], mode="bicubic").clamp(0, 1) - digits).abs()


def frame(digits: torch.Tensor) -> torch.Tensor:
    """Show the digits smaller, as one camera frames them differently from another."""
    turn = torch.eye(2, 3).repeat(len(digits), 1, 1) * 1.4
    turn[:, :, 2] = torch.empty(len(digits), 2).uniform_(-0.2, 0.2)
    return grid_sample(digits, affine_grid(turn, list(digits.shape), False), align_corners=False)


def faint(digits: torch.Tensor) -> torch.Tensor:
    """Lower the contrast on a grey ground and add noise."""
    return (0.5 + 0.35 * digits + 0.1 * torch.randn_like(digits)).clamp(0, 1)


PAPER = {
    "training.learning_rate": 1e-2,
    "training.batch_size": 128,
    "objective.classifier_latent": "imputed",
    "objective.detach_true_latent": False,
    "networks.prediction_statistics": "running",
    "training.gradient_clip": None,
}
SETTINGS = {
    "default": {},
    "paper's objective": PAPER,
    "paper's, target statistics": PAPER | {"networks.prediction_statistics": "target"},
    "paper's, target statistics, small batches": PAPER
    | {"networks.prediction_statistics": "target", "training.batch_size": "auto"},
    "default, z_S2 not detached": {"objective.detach_true_latent": False},
    "default, f sees the imputed latent": {"objective.classifier_latent": "imputed"},
    "default, f sees the true latent": {"objective.classifier_latent": "true"},
    "default, reconstruction 10": {"objective.reconstruction_weight": 10.0},
    "default, reconstruction 0.1": {"objective.reconstruction_weight": 0.1},
    "default, reconstruction 0.01": {"objective.reconstruction_weight": 0.01},
    "default, r's input detached": {"objective.detach_generator_input": True},
    "default, λ1 3": {"objective.adaptation_weight": 3.0},
    "default, no divergence in L2": {"objective.imputation_weight": 0.0},
    "default, running statistics": {"networks.prediction_statistics": "running"},
    "default, learning rate 0.003": {"training.learning_rate": 3e-3},
}
"""Each is a change of the default preset for images."""

OF_IMPUTATION = {
    "objective.detach_true_latent",
    "objective.detach_generator_input",
    "objective.classifier_latent",
    "objective.reconstruction_weight",
    "objective.imputation_weight",
}
"""Options that a model without imputation does not read: changing them alone changes nothing."""

SHIFTS = {"clutter": clutter, "frame": frame, "faint": faint}


def rehearsal(
    shift: str, seed: int, blocks: Blocks
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    digits = load_digits()
    grey = torch.tensor(digits.images / 16.0, dtype=torch.float32)[:, None]
    images = interpolate(grey, size=blocks.shape[1:], mode="bilinear").repeat(1, 3, 1, 1)
    order = np.random.default_rng(seed).permutation(len(images))
    source, target = order[:700], order[700:1400]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        shifted = SHIFTS[shift](images[target])
    labels = digits.target
    hidden = blocks.hide(shifted.numpy() * 2 - 1)
    return images[source].numpy() * 2 - 1, labels[source], hidden, labels[target]


def run(name: str, settings: dict, shift: str, model: str, seed: int, network: str) -> dict:
    torch.set_num_threads(1)
    size, networks = NETWORKS[network]
    blocks = Blocks.rows((3, size, size), fraction=0.5, side="bottom")
    source, labels, target, truth = rehearsal(shift, seed, blocks)
    options = {**networks, **EPOCHS, **settings}
    estimator = AdaptationImputationClassifier(
        model=MODELS[model], missing=blocks, random_state=seed, options=options
    )
    estimator.fit(source, labels, X_target=target)
    accuracy = estimator.score(target, truth)
    seconds = sum(record["seconds"] for record in estimator.history_)
    return {
        "setting": name,
        "shift": shift,
        "model": model,
        "seed": seed,
        "network": network,
        "accuracy": accuracy,
        "seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--shifts", nargs="+", choices=SHIFTS, default=list(SHIFTS))
    parser.add_argument(
        "--network", choices=NETWORKS, default="demo", help="size of images and networks"
    )
    parser.add_argument("--table", action="store_true", help="only print what is there")
    arguments = parser.parse_args()
    records = []
    if arguments.output.exists():
        records = [json.loads(line) for line in arguments.output.read_text().splitlines()]
        records = [r for r in records if r.get("network", "demo") == arguments.network]
    if not arguments.table:
        done = {(r["setting"], r["shift"], r["model"], r["seed"]) for r in records}
        todo = [
            (name, options, shift, model, seed, arguments.network)
            for name, options in SETTINGS.items()
            if name in arguments.settings
            for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds)
            for shift in arguments.shifts
            for model in arguments.models
            if (name, shift, model, seed) not in done
            and not (model == "ignore" and options and set(options) <= OF_IMPUTATION)
        ]
        results = Parallel(arguments.jobs, return_as="generator_unordered")(
            delayed(run)(*item) for item in todo
        )
        with arguments.output.open("a") as file:
            for record in results:
                records.append(record)
                file.write(json.dumps(record) + "\n")
                file.flush()
    print_table(records)
    print_differences(records)


def print_table(records: list[dict]) -> None:
    cells = defaultdict(list)
    for record in records:
        cells[record["setting"], record["model"], record["shift"]].append(record["accuracy"])
    columns = [(model, shift) for model in MODELS for shift in SHIFTS]
    print("| setting | " + " | ".join(f"{m} {s}" for m, s in columns) + " | imputation | ignore |")
    print("|---" * (len(columns) + 3) + "|")
    for setting in dict.fromkeys(record["setting"] for record in records):
        means = {c: 100 * np.mean(cells[setting, *c]) for c in columns if cells[setting, *c]}
        row = [f"{means[c]:.1f}" if c in means else "-" for c in columns]
        for model in MODELS:
            of_model = [value for (name, _), value in means.items() if name == model]
            row.append(f"**{np.mean(of_model):.1f}**" if of_model else "-")
        print(f"| {setting} | " + " | ".join(row) + " |")


def print_differences(records: list[dict]) -> None:
    """Print what each setting gains over the default, paired by model, shift and seed."""
    found = {(r["setting"], r["model"], r["shift"], r["seed"]): r["accuracy"] for r in records}
    print()
    for setting in dict.fromkeys(record["setting"] for record in records):
        for model in MODELS:
            gains = [
                100 * (accuracy - found["default", *rest])
                for (name, *rest), accuracy in found.items()
                if name == setting != "default" and rest[0] == model and ("default", *rest) in found
            ]
            if len(gains) > 1:
                error = np.std(gains, ddof=1) / np.sqrt(len(gains))
                print(
                    f"{setting}, {model}: {np.mean(gains):+.1f} ± {error:.1f} ({len(gains)} runs)"
                )


if __name__ == "__main__":
    main()
