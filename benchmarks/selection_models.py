"""Which label-free score finds the good models? Many trained settings, on real pairs.

    HALFSEEN_DATA=data python benchmarks/selection_models.py --output docs/results/selection.jsonl
    python benchmarks/selection_models.py --output docs/results/selection.jsonl --table

Settings are drawn at random around the defaults: the model, its divergence, learning rate, λ1 and
λ_MSE. Each is fitted on the source's training part and the unlabelled target; its scores come
from the source's held-out part and the target's inputs; its accuracy comes from target labels,
which nothing else reads. Agreement takes a second fit with another seed, reverse validation a fit
there and one back. Finished runs are kept in the output file and not repeated.

Pairs: `digits` is USPS to MNIST, the bottom half missing, 2,000 rows of each part, a network of a
quarter of the usual filters, 2 + 10 epochs; `amazon` is DVDs to electronics with half of the words
missing, 5 + 20 epochs; `heart` is Cleveland to Hungarian, trained as by default.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr

from halfseen.evidence.registry import SCORES, Score
from halfseen.evidence.scores import agreement
from halfseen.networks import nets
from halfseen.networks.methods import method_named
from halfseen.networks.predictor import Predictor
from halfseen.networks.training import LabelledRows, Rows
from halfseen.networks.training.fitting import TrainingProblem, fit_objective
from halfseen.options import Options, make_options, preset
from halfseen.selection import Evidence, evaluate
from halfseen_bench.data import DomainPair, amazon, digits, heart
from halfseen_bench.reverse import reverse_validation
from halfseen_bench.runner import Task, run_tasks

PAIRS = ("heart", "amazon", "digits")
SETTINGS = 24
MODELS = (
    "Adaptation-Imputation",
    "Adaptation-IgnoreComponent",
    "Adaptation-Imputation",
    "Source-IgnoreComponent",
    "Adaptation-Imputation",
    "Adaptation-ZeroImputation",
)
SHORTER: dict[str, dict[str, Any]] = {
    "digits": {
        "images.channels": (16, 16, 32),
        "generator.widths": (128,),
        "networks.classifier_widths": (64,),
        "networks.critic_widths": (128,),
        "training.warmup_epochs": 2,
        "training.joint_epochs": 10,
    },
    "amazon": {"training.joint_epochs": 20},
}
"""What is smaller than by default, so that four fits of each setting end in hours."""
COMPARED = SCORES | {"reverse": Score("reverse", "lower", (), reverse_validation)}


def load(name: str) -> DomainPair:
    root = Path(os.environ["HALFSEEN_DATA"])
    if name == "digits":
        return digits.load_pair(root, "usps", "mnist", max_train=2000, max_test=2000)
    if name == "amazon":
        return amazon.load_pair(root, "dvd", "electronics")
    return heart.load_pair(root, "cleveland", "hungarian")


def setting(name: str, number: int) -> tuple[str, Options]:
    """Draw one setting: the number alone decides it."""
    random = np.random.default_rng(number)
    model = MODELS[number % len(MODELS)]
    divergence = str(random.choice(["adversarial", "transport"]))
    inputs = "image" if name == "digits" else "table"
    method = method_named(model)
    base = preset(
        "default",
        inputs=inputs,
        divergence=divergence,
        imputes=method.imputes,
        adapts=method.adapts,
    )
    drawn = {
        "training.learning_rate": base.training.learning_rate * 10 ** random.uniform(-1.0, 0.5),
        "objective.adaptation_weight": base.objective.adaptation_weight
        * 10 ** random.uniform(-1.5, 0.5),
        "objective.reconstruction_weight": base.objective.reconstruction_weight
        * 10 ** random.uniform(-2.0, 1.0),
    }
    return model, make_options(drawn | SHORTER.get(name, {}), base)


def run(name: str, number: int) -> dict[str, Any]:
    pair = load(name)
    model, options = setting(name, number)
    method = method_named(model)
    source, held_out = pair.source_train, pair.source_test
    target = np.ascontiguousarray(pair.target_train)
    test = np.ascontiguousarray(pair.target_test)

    def fit(x: Any, y: Any, there: Any, *, seed: int = 0, model: str = model) -> nets.Networks:
        tensors = (torch.from_numpy(np.ascontiguousarray(a)) for a in (x, y, there))
        rows, labels, unlabelled = tensors
        problem = TrainingProblem.resident(
            pair.blocks, LabelledRows(rows, labels), Rows(unlabelled), len(pair.classes)
        )
        return fit_objective(problem, method_named(model), options, seed=seed)[0].networks

    def predictor(networks: nets.Networks) -> Any:
        def predict(x: Any) -> Any:
            return log_probabilities(networks, np.ascontiguousarray(x)).argmax(1)

        return predict

    def log_probabilities(networks: nets.Networks, x: Any) -> Any:
        return Predictor(networks, options).log_probabilities(x)

    first = fit(source.inputs, source.labels, target)
    second = fit(source.inputs, source.labels, target, seed=1)
    evidence = Evidence(held_out.inputs, held_out.labels, target, source.inputs)
    scores = evaluate(Predictor(first, options), evidence)
    runs = [np.exp(log_probabilities(networks, target)) for networks in (first, second)]
    scores["agreement"] = agreement(np.stack(runs))
    # The way back learns from target rows, which lack the missing block: it ignores it.
    back = "Adaptation-IgnoreComponent" if method.adapts else "Source-IgnoreComponent"
    scores["reverse"] = reverse_validation(
        lambda x, y, t: predictor(fit(x, y, t)),
        source.inputs,
        source.labels,
        target,
        fit_back=lambda x, y, t: predictor(fit(x, y, t, model=back)),
    )
    truth = pair.target_test_labels.open("evaluation")
    accuracy = float((log_probabilities(first, test).argmax(1) == truth).mean())
    objective = options.objective
    settings = {
        "divergence": objective.divergence,
        "learning_rate": options.training.learning_rate,
        "adaptation_weight": objective.adaptation_weight,
        "reconstruction_weight": objective.reconstruction_weight,
    }
    return {"pair": name, "model": model, **settings, "accuracy": accuracy, "scores": scores}


def table(path: Path) -> None:
    """Print rank correlation with accuracy, and accuracy lost, of every score."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in path.read_text().splitlines():
        result = json.loads(line)["result"]
        found[result["pair"]].append(result)
    names = [name for name in PAIRS if name in found]
    print(f"| score | {' | '.join(f'{n}: rank correlation | points lost' for n in names)} |")
    print(f"|---|{'---|---|' * len(names)}")
    best = {n: max(r["accuracy"] for r in found[n]) for n in names}
    for score in COMPARED:
        cells = []
        for name in names:
            runs = found[name]
            values = np.array([r["scores"][score] for r in runs])
            accuracy = np.array([r["accuracy"] for r in runs])
            sign = -1.0 if COMPARED[score].better == "lower" else 1.0
            rank = float(spearmanr(sign * values, accuracy).statistic)
            lost = 100 * (best[name] - accuracy[COMPARED[score].best(values)])
            cells += [f"{rank:+.2f}", f"{lost:.1f}"]
        print(f"| {score} | {' | '.join(cells)} |")
    mean = {n: np.mean([r["accuracy"] for r in found[n]]) for n in names}
    cells = [f"– | {100 * (best[n] - mean[n]):.1f}" for n in names]
    print(f"| a setting at random | {' | '.join(cells)} |")
    for name in names:
        spread = [100 * r["accuracy"] for r in found[name]]
        print(
            f"\n{name}: {len(spread)} settings, {min(spread):.1f} to {max(spread):.1f} % accurate."
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--pairs", nargs="+", choices=PAIRS, default=list(PAIRS))
    parser.add_argument("--settings", type=int, default=SETTINGS)
    parser.add_argument("--first", type=int, default=0, help="to share the work between machines")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--table", action="store_true", help="only print what is there")
    given = parser.parse_args()
    if not given.table:
        tasks = [
            Task(f"{name}/{number}", {"name": name, "number": number})
            for name in given.pairs
            for number in range(given.first, given.settings)
        ]
        _, failures = run_tasks(tasks, run, given.output, jobs=given.jobs, title="settings")
        print("\n".join(failures))
    table(given.output)


if __name__ == "__main__":
    main()
