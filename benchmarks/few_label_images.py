"""Few labels on images: what complete images without a label bring, by the default fit.

A draw of labelled source images holds two of each class at least; the rest of the source has no
label. Methods: `labels alone`, the default on labelled images; `self-training`, whose teacher sees
what the target shows; `halfseen`, whose teacher sees whole images; `all labels`. Accuracy on the
target's test images, labels opened once a run has ended. Settings were chosen on USPS -> MNIST;
MNIST -> USPS is for evaluation. Finished runs are kept in the output file and not repeated; one
that was stopped goes on at its last epoch.

    export HALFSEEN_DATA=data
    python benchmarks/few_label_images.py --output log.jsonl --methods halfseen --labels 30 100
    python benchmarks/few_label_images.py --output log.jsonl --steps 1200 --draws 1
    python benchmarks/few_label_images.py --output log.jsonl --table
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from tempfile import gettempdir
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from image_settings import STEPS, Run, lines, load, share

from halfseen.api import ImageDomains, fit_domains
from halfseen.data.preprocessors import ImagePreprocessor
from halfseen.fitting import image_teachers
from halfseen.fitting.member_training import Hooks
from halfseen.members import Sample
from halfseen.settings import FitSettings
from halfseen_bench.data import DomainPair

METHODS = ("labels alone", "self-training", "halfseen", "all labels")
KEYS = ("pair", "labels", "draw", "method", "steps")
LEAST = 2
"""Labelled images of each class."""


def drawn(labels: Any, count: int, draw: int) -> Any:
    """Return so many rows with at least two of each class, the first such permutation's."""
    random = np.random.default_rng([draw, count])
    while True:
        rows = np.sort(random.permutation(len(labels))[:count])
        if np.bincount(labels[rows], minlength=labels.max() + 1).min() >= LEAST:
            return rows


def measured(pair: DomainPair, known: Any, method: str, steps: int, place: Path) -> dict[str, Any]:
    """Fit the default on a draw, and return what was found."""
    images, labels = pair.source_train.inputs, pair.source_train.labels
    every = method == "all labels"
    rest = np.delete(images, known, axis=0)
    domains = ImageDomains(
        ImagePreprocessor(pair.blocks, pair.classes, "unit"),
        Sample(images, labels) if every else Sample(images[known], labels[known]),
        pair.target_train,
        unlabelled=None if every or method == "labels alone" else rest,
    )
    settings = FitSettings(options={"training.joint_steps": steps})
    control = patch.object(image_teachers, "TEACHER", image_teachers.CONTROL)
    with control if method == "self-training" else nullcontext():
        model = fit_domains(domains, settings, Hooks(checkpoints=place))
    test, truth = pair.target_test, pair.target_test_labels.open("evaluation")
    return {
        "accuracy": share(model.predict_proba(test).argmax(axis=1), truth),
        "members": [share(m.raw_prediction(test).argmax(axis=1), truth) for m in model.members],
        **{name: round(fact, 3) for name, fact in model.metrics.get("few_images", {}).items()},
    }


def run(arguments: argparse.Namespace) -> None:
    """Measure what the log does not hold yet, a draw after the other."""
    for key in wanted(arguments):
        pair = load(Run("default", key["steps"], key["pair"], ""))
        known = drawn(pair.source_train.labels, key["labels"], key["draw"])
        place = arguments.states / "-".join(map(str, key.values())).replace(" ", "_")
        place.mkdir(parents=True, exist_ok=True)
        began = time.process_time()
        line = key | measured(pair, known, key["method"], key["steps"], place)
        line["cpu_seconds"] = round(time.process_time() - began)
        print(json.dumps(line), flush=True)
        with arguments.output.open("a") as file:
            file.write(json.dumps(line) + "\n")
        for state in place.iterdir():
            state.unlink()
        place.rmdir()


def wanted(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for draw in range(arguments.draws):
        for pair in arguments.pairs:
            for labels in arguments.labels:
                for method in arguments.methods:
                    values = (pair, labels, draw, method, arguments.steps)
                    key = dict(zip(KEYS, values, strict=True))
                    if not any(key.items() <= line.items() for line in lines(arguments.output)):
                        yield key


def table(output: Path) -> str:
    """Return the mean accuracy of each method over its draws, and each draw's."""
    found: dict[tuple[Any, ...], list[float]] = {}
    for line in lines(output):
        key = tuple(line[name] for name in ("pair", "labels", "steps", "method"))
        found.setdefault(key, []).append(line["accuracy"])
    rows = ["| pair | labels | steps | method | accuracy | draws |", "|---" * 6 + "|"]
    for key, values in sorted(found.items(), key=str):
        each = ", ".join(f"{value:.1f}" for value in values)
        rows.append(f"| {' | '.join(map(str, key))} | {np.mean(values):.1f} | {each} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, help="log, one run on a line")
    parser.add_argument("--pairs", nargs="+", default=["usps:mnist"])
    parser.add_argument("--labels", nargs="+", type=int, default=[100])
    parser.add_argument("--methods", nargs="+", default=[*METHODS], choices=METHODS)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument(
        "--states", type=Path, default=Path(gettempdir(), "few_label_images"),
        help="folder that keeps the state of a run that is stopped",
    )  # fmt: skip
    parser.add_argument("--table", action="store_true", help="print what is there")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.table:
        print(table(arguments.output))
    else:
        run(arguments)


if __name__ == "__main__":
    main()
