"""Settings for images, compared on development pairs; then the default on all pairs of digits.

Adaptation between digits whose lower half is missing on the target: all rows, the accuracy of the
last step on all target test rows. Labels of the development pairs are opened while training too;
those of an evaluation pair once, when a run has ended; but with the authors' settings after every
epoch, because the paper reports the best one (``oracle``, a quarter of the test rows). Of a model
that imputes also the squared
error of imputed latents, on source rows that it learned from and on others, beside the variance
of the true ones. Finished runs are kept in the output file and not repeated; one that was stopped
goes on at its last epoch, from the folder of answers.

    export HALFSEEN_DATA=data
    python benchmarks/image_settings.py --output log.jsonl --answers answers/
    python benchmarks/image_settings.py --output log.jsonl --answers answers/ --together
    python benchmarks/image_settings.py --output log.jsonl --table
    python benchmarks/image_settings.py --output log.jsonl --figure accuracy.png
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.datasets import load_digits

from halfseen.networks.modules import Predictor
from halfseen.networks.objective import Objective
from halfseen.networks.train import LabelledRows, TrainingProblem, fit_objective
from halfseen.networks.variants import variant_named
from halfseen.options import Options, make_options
from halfseen.presets import Preset, preset
from halfseen_bench.data import DomainPair
from halfseen_bench.data.digits import load_pair, to_canvas
from halfseen_bench.data.pairs import Sealed
from halfseen_bench.models import target_inputs

IGNORE, IMPUTE = MODELS = "Adaptation-IgnoreComponent", "Adaptation-Imputation"
OPTDIGITS = "mnist:optdigits"
"""To the 1,797 digits of 8x8 pixels that scikit-learn has: blurred, narrow, large."""
DEALT = "usps:mnist-dealt"
"""To MNIST with four times as many nines as zeros, and other digits in between."""
DEVELOPMENT = ("usps:mnist", "mnist:mnistm", "svhn:mnistm", OPTDIGITS, DEALT)
EPOCH, LOOKS, LOOK_EVERY, SHOWN = 100, 4, 4, 1_000
STEPS = 4_000
"""Those of the default."""
LOSSES = ("adaptation", "classification")


REFERENCE: dict[str, Any] = {
    "training.epoch_steps": EPOCH,
    "training.warmup_epochs": 2,
    "training.batch_size": 128,
}
"""What differs from the preset of that name: as many steps as asked for, 200 of warm-up."""
WHOLE = "reference, its own epochs"
"""The preset as it is."""
AS_LONG = "reference, as long"
"""The preset with as many steps as it has on USPS, and the learning rates of the authors' code."""
FULL_STEPS = 89 * 93
"""Those of the joint phase on USPS, which has 93 steps an epoch."""
NAMES = {
    "threshold 0.8": ("#1f77b4", "default, believed from 0.8 on"),
    WHOLE: ("#d62728", "the authors' settings"),
}
"""Of curves in the figure, with their colours: runs of one machine, whose minutes compare."""
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "no change of the target": {"training.target_augmentation": "none"},
    "no change of the source": {"training.augmentation": "none"},
    "no teacher": {"objective.terms.averaged_teacher": None},
    "no critic": {"objective.adaptation_weight": 0.0},
    "steady critic": {"objective.fading_adaptation": False},
    "running statistics": {"networks.prediction_statistics": "running"},
    "threshold 0.8": {"objective.terms.averaged_teacher.threshold": 0.8},
    "transport": {},
    "refinement": {},
    "reference": REFERENCE,
    WHOLE: {},
    AS_LONG: {
        "training.epoch_steps": 93,
        "training.warmup_epochs": 44,
        "training.joint_epochs": 89,
        "training.batch_size": 128,
    },
}
"""What differs from the default."""
AUTHORS: dict[tuple[str, str | None], dict[str, Any]] = {
    ("svhn:mnist", None): {"training.warmup_epochs": 0},
    ("usps:mnist", IMPUTE): {"training.learning_rate": 10**-1.5},
    ("mnist:usps", IGNORE): {"training.learning_rate": 0.002},
}
"""What the authors' code has for single pairs, or one model of a pair."""


class Run(NamedTuple):
    """One training."""

    setting: str
    steps: int
    pair: str
    model: str
    seed: int = 0
    side: str = "bottom"
    """The half that is missing; or another share of the rows, as in ``bottom:0.3``."""

    @property
    def name(self) -> str:
        """A file name."""
        return "-".join(map(str, self)).replace(" ", "_").replace(":", "_").replace(",", "")


PAIRS = ("usps:mnist", "mnist:mnistm", "svhn:mnist", "mnist:usps")
PARTS = (
    "no critic",
    "steady critic",
    "no teacher",
    "no change of the source",
    "no change of the target",
    "running statistics",
    "refinement",
)
"""What the ablation leaves out, or adds."""
THRESHOLDS = ("default", "threshold 0.8")
FEW = 1_200
"""Steps of the ablation and of models beside the default."""
AS_REFINED = 2_200
"""As many steps as the ablation has with refinement: its control."""
OTHERS = (
    ("default", "Adaptation-Full"),
    ("transport", IMPUTE),
    ("transport", IGNORE),
    ("default", "Adaptation-ZeroImputation"),
    ("transport", "Adaptation-Full"),
    ("transport", "Adaptation-ZeroImputation"),
    ("default", "Source-Full"),
    ("default", "Source-IgnoreComponent"),
    ("default", "Source-ZeroImputation"),
)
"""The rest of the paper's table."""

PATCHES = ("bottom:0.3", "bottom:0.4", "bottom", "bottom:0.6", "bottom:0.7")
SHOWING = ("Source-IgnoreComponent", IGNORE, IMPUTE)
"""Models of the figure on the size of the patch."""

RUNS = [
    *(Run("default", STEPS, pair, IGNORE, seed) for seed in range(3) for pair in PAIRS),
    *(Run("default", STEPS, "svhn:mnistm", IGNORE, seed) for seed in range(3)),
    Run("default", 2 * STEPS, "svhn:mnistm", IGNORE),
    *(Run("default", STEPS, pair, IMPUTE, seed) for seed in range(3) for pair in PAIRS),
    *(Run("default", STEPS, "svhn:mnistm", IMPUTE, seed) for seed in range(2)),
    *(Run("default", STEPS, pair, model) for pair in (DEALT, OPTDIGITS) for model in MODELS),
    *(Run("default", STEPS, pair, model, 0, "top") for model in MODELS for pair in PAIRS),
    *(Run(setting, FEW, pair, model) for setting, model in OTHERS for pair in PAIRS),
    *(
        Run(part, FEW, pair, IGNORE)
        for pair in ("svhn:mnistm", "mnist:mnistm")
        for part in ("default", "no critic", "steady critic")
    ),
    *(
        Run(part, FEW, "usps:mnist", IGNORE, seed)
        for seed in range(3)
        for part in ("default", *PARTS)
    ),
    *(Run("default", AS_REFINED, "usps:mnist", IGNORE, seed) for seed in range(3)),
    *(
        Run(setting, FEW, pair, IGNORE, seed)
        for pair, seeds in ((OPTDIGITS, 4), (DEALT, 2))
        for seed in range(seeds)
        for setting in THRESHOLDS
    ),
    *(Run("threshold 0.8", STEPS, pair, IGNORE) for pair in DEVELOPMENT[:3]),
    Run("threshold 0.8", STEPS, "svhn:mnistm", IGNORE, 1),
    Run("transport", FEW, OPTDIGITS, IGNORE),
    Run("transport", FEW, "svhn:mnistm", IGNORE),
    *(Run("default", FEW, "svhn:mnist", model, 0, patch) for patch in PATCHES for model in SHOWING),
    Run(WHOLE, FULL_STEPS, "usps:mnist", IMPUTE),
    *(Run(AS_LONG, FULL_STEPS, pair, model) for pair in PAIRS[::-1] for model in MODELS[::-1]),
    *(Run("reference", STEPS, pair, IMPUTE) for pair in PAIRS),
]


def options_of(run: Run) -> Options:
    """Return the preset that a run has, and what it changes."""
    method = variant_named(run.model)
    divergence = "transport" if run.setting == "transport" else "adversarial"
    name: Preset = "reference" if run.setting.startswith("reference") else "default"
    base = preset(name, divergence=divergence, imputes=method.imputes, adapts=method.adapts)
    if run.setting == WHOLE:
        return base
    if run.setting == AS_LONG:
        own = AUTHORS.get((run.pair, None), {}) | AUTHORS.get((run.pair, run.model), {})
        return make_options(SETTINGS[AS_LONG] | own, base)
    settings = {"training.joint_epochs": run.steps // EPOCH, "training.batch_size": 64}
    return make_options(settings | SETTINGS[run.setting], base)


def load(run: Run) -> DomainPair:
    source, target = run.pair.split(":")
    side, _, fraction = run.side.partition(":")
    data = Path(os.environ["HALFSEEN_DATA"])
    known, change = MADE_FROM.get(run.pair, (target, None))
    pair = load_pair(data, source, known, side=side, fraction=float(fraction or 0.5), seed=0)
    return change(pair) if change else pair


def with_optdigits(pair: DomainPair) -> DomainPair:
    """Return the pair with scikit-learn's digits as its target: few, so all are also predicted."""
    digits = load_digits()
    images = pair.blocks.hide(to_canvas((digits.images / 16).astype(np.float32)[:, None]))
    return replace(
        pair,
        name="mnist->optdigits",
        target_train=images,
        target_test=images,
        target_test_labels=Sealed(digits.target.astype(np.int64)),
        complete_target=None,
        target_train_labels=None,
    )


def dealt(pair: DomainPair) -> DomainPair:
    """Return the pair with fewer rows of the first classes on its target."""
    assert pair.target_train_labels is not None
    learned = pair.target_train_labels.open("making a development pair")
    labels = pair.target_test_labels.open("making a development pair")
    shares = np.linspace(0.25, 1.0, len(pair.classes))
    random = np.random.default_rng(0)
    train, test = (random.random(len(y)) < shares[y] for y in (learned, labels))
    return replace(
        pair,
        name="usps->mnist-dealt",
        target_train=pair.target_train[train],
        target_test=pair.target_test[test],
        target_test_labels=Sealed(labels[test]),
        complete_target=None,
        target_train_labels=None,
    )


MADE_FROM = {OPTDIGITS: ("usps", with_optdigits), DEALT: ("mnist", dealt)}
"""Targets that are made here: of which data set, and how."""


def train(pair: DomainPair, run: Run, answers: Path | None) -> dict[str, Any]:
    """Train, and return what was found."""
    method, options = variant_named(run.model), options_of(run)
    imputes = method.imputes
    inputs = torch.from_numpy(np.ascontiguousarray(pair.source_train.inputs))
    source = LabelledRows(inputs, torch.from_numpy(pair.source_train.labels))
    shown, test = map(np.ascontiguousarray, target_inputs(pair, method))
    target = torch.from_numpy(shown)
    problem = TrainingProblem(pair.blocks, source, target, len(pair.classes))
    curve: list[dict[str, float]] = []
    epochs = options.training.joint_epochs
    assert epochs != "auto"
    oracle = run.setting == AS_LONG
    clock = [time.process_time()]

    def look(objective: Objective, record: Mapping[str, Any]) -> dict[str, float]:
        if record["phase"] != "joint":
            return {}
        predictor = Predictor(objective.networks, options)
        truth = pair.target_test_labels.open("oracle" if oracle else "development")[::LOOK_EVERY]
        guess = predictor.raw_prediction(test[::LOOK_EVERY]).argmax(1)
        return {"accuracy": share(guess, truth)} | taken()

    def taken() -> dict[str, float]:
        """Return processor seconds since last asked; the history keeps them if the run stops."""
        clock.append(time.process_time())
        return {"cpu": clock[-1] - clock[-2]}

    checkpoint = None
    if answers is not None:
        answers.mkdir(parents=True, exist_ok=True)
        checkpoint = answers / f"{run.name}.checkpoint"
    objective, history = fit_objective(
        problem,
        method,
        options,
        seed=run.seed,
        refine=run.setting == "refinement",
        on_epoch=look if oracle or run.pair in DEVELOPMENT else lambda *_: taken(),
        evaluations=None if oracle else LOOKS,
        checkpoint=checkpoint,
    )
    past = 0.0
    for record in history:
        past += record.get("cpu", 0.0)
        if "accuracy" in record:
            step = round(run.steps * record["epoch"] / epochs)
            looked = {"step": step, "seconds": round(past), "accuracy": record["accuracy"]}
            curve.append(looked)
    seconds = round(past + taken()["cpu"])
    predictor = Predictor(objective.networks, options)
    answer = predictor.raw_prediction(test)
    if answers is not None:
        np.save(answers / f"{run.name}.npy", answer.astype(np.float32))
        torch.save(objective.networks.state_dict(), answers / f"{run.name}.pt")
    if checkpoint is not None:
        checkpoint.unlink(missing_ok=True)
    last = history[-1]
    found: dict[str, Any] = {
        "accuracy": share(answer.argmax(1), pair.target_test_labels.open("evaluation")),
        "cpu_seconds": seconds,
        **{f"{name}_loss": round(last[name], 3) for name in LOSSES if name in last},
    }
    if imputes and run.pair in DEVELOPMENT:
        found |= reliance(predictor, test, pair.target_test_labels.open("development"))
    with predictor.source_statistics(inputs[: 2 * SHOWN].numpy()):
        others = np.ascontiguousarray(pair.source_test.inputs[: 2 * SHOWN])
        labels = pair.source_test.labels[: 2 * SHOWN]
        seen = others if method.needs_complete_target else pair.blocks.hide(others)
        hidden = predictor.raw_prediction(seen)
        found["source_accuracy"] = share(hidden.argmax(1), labels)
        if imputes:
            complete = predictor.raw_prediction_complete(others)
            assert complete is not None
            found["source_accuracy_complete"] = share(complete.argmax(1), labels)
            for name, rows in (("learned", inputs[:SHOWN].numpy()), ("others", others[:SHOWN])):
                found |= imputation(predictor, pair, rows, name)
    if oracle:
        found["best_of_a_quarter"] = max(look["accuracy"] for look in curve)
    return found | ({"curve": curve} if curve else {})


@torch.no_grad()
def reliance(predictor: Predictor, test: Any, truth: Any) -> dict[str, float]:
    """Return the target's accuracy with either latent at its mean: what f makes of the other."""
    latents = torch.from_numpy(predictor.latents(test))
    observed = latents.shape[1] - predictor.networks.missing_size
    found = {}
    for name, part in (("z1", slice(observed, None)), ("imputed", slice(observed))):
        alone = latents.clone()
        alone[:, part] = latents[:, part].mean(0)
        guess = predictor.networks.classifier(alone).argmax(1).numpy()
        found[f"accuracy_by_{name}_alone"] = share(guess, truth)
    return found


def imputation(predictor: Predictor, pair: DomainPair, rows: Any, name: str) -> dict[str, float]:
    size = predictor.networks.missing_size
    true = predictor.complete_latents(rows)[:, -size:]
    imputed = predictor.latents(pair.blocks.hide(rows))[:, -size:]
    error, variance = ((true - imputed) ** 2).sum(1).mean(), true.var(0).sum()
    return {f"error_{name}": round(float(error), 3), f"variance_{name}": round(float(variance), 3)}


def share(guess: Any, truth: Any) -> float:
    return round(100 * float((guess == truth).mean()), 2)


def lines(output: Path) -> list[dict[str, Any]]:
    if not output.is_file():
        return []
    return [{"side": "bottom"} | json.loads(line) for line in output.read_text().splitlines()]


def run_all(
    output: Path, answers: Path | None, one: bool, pairs: Sequence[str], settings: Sequence[str]
) -> None:
    for run in RUNS:
        if run.pair not in pairs or (settings and run.setting not in settings):
            continue
        key = run._asdict() | {"rows": "all"}
        if any(key.items() <= line.items() for line in lines(output)):
            continue
        line = key | train(load(run), run, answers)
        print(json.dumps(line), flush=True)
        with output.open("a") as file:
            file.write(json.dumps(line) + "\n")
        if one:
            return


def table(output: Path) -> str:
    """Return the accuracy of each finished run, in percent."""
    names = (*Run._fields, "accuracy")
    found = ["| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
    for line in lines(output):
        if "rows" in line:
            cells = [line[name] for name in names]
            found.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(found)


def together(output: Path, answers: Path) -> str:
    """Return the accuracy of networks that answer as one model: both models, seeds, and all."""
    finished: dict[Run, list[Run]] = {}
    for line in lines(output):
        run = Run(*(line[name] for name in Run._fields))
        if "rows" in line and (answers / f"{run.name}.npy").is_file():
            finished.setdefault(run._replace(model="", seed=-1), []).append(run)
    found = ["| pair | missing | networks | accuracy |", "|---" * 4 + "|"]
    for problem, runs in finished.items():
        truth = load(problem).target_test_labels.open("evaluation")
        said = {run: np.exp(np.load(answers / f"{run.name}.npy")) for run in sorted(runs)}
        groups = {
            **{run.model: [r for r in said if r.model == run.model] for run in said},
            **{f"all of seed {run.seed}": [r for r in said if r.seed == run.seed] for run in said},
            "all": list(said),
        }
        for name, group in groups.items():
            joint = share(np.mean([said[run] for run in group], axis=0).argmax(1), truth)
            cells = (f"{problem.pair}, {problem.setting}, {problem.steps} steps", problem.side)
            found.append(f"| {' | '.join(cells)} | {name}, {len(group)} | {joint} |")
    return "\n".join(found)


def draw(output: Path, picture: Path) -> None:
    """Draw accuracy against minutes of a core on USPS -> MNIST, the authors' settings beside."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.6))
    for line in lines(output):
        run = line["pair"], line["seed"], line["side"]
        named = NAMES.get(line["setting"]) if line["steps"] != FEW else None
        if run != ("usps:mnist", 0, "bottom") or named is None or "curve" not in line:
            continue
        minutes = [look["seconds"] / 60 for look in line["curve"]]
        found = [look["accuracy"] for look in line["curve"]]
        imputes = line["model"] == IMPUTE
        colour, words = named
        label = f"{words}; {'imputing' if imputes else 'ignoring'}"
        style = "-" if imputes else ":"
        axes.plot(minutes, found, style, color=colour, marker="o", label=label)
    axes.set(xlabel="minutes of a core", ylabel="target test digits right, %", title="USPS → MNIST")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    figure.savefig(picture, dpi=80, bbox_inches="tight")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, help="log, one run on a line")
    parser.add_argument("--answers", type=Path, help="folder for log-probabilities of the target")
    parser.add_argument("--pairs", nargs="+", default=[*PAIRS, *DEVELOPMENT[2:]])
    parser.add_argument("--settings", nargs="+", default=[], help="of the runs; all if not given")
    parser.add_argument("--one", action="store_true", help="end after one run")
    parser.add_argument("--table", action="store_true", help="print what is there")
    parser.add_argument("--figure", type=Path, help="draw accuracy against minutes")
    parser.add_argument("--together", action="store_true", help="average what answers/ has")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.table:
        print(table(arguments.output))
    elif arguments.figure:
        draw(arguments.output, arguments.figure)
    elif arguments.together:
        print(together(arguments.output, arguments.answers))
    else:
        run_all(
            arguments.output, arguments.answers, arguments.one, arguments.pairs, arguments.settings
        )


if __name__ == "__main__":
    main()
