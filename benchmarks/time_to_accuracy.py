"""Seconds of training until the target test accuracy first reaches a level, on USPS to MNIST.

``HALFSEEN_DATA=data python benchmarks/time_to_accuracy.py --output times.jsonl`` trains
Adaptation-Imputation with the lower half missing: plainly (`straightforward.py`) at the paper's
settings, and with the library at its defaults, both on the authors' network with a latent of 128.
After every epoch, accuracy on the target test set is noted with the seconds of training so far;
measuring is not counted. A side ends at the level, or at its last epoch. Test labels decide when
to stop looking: that is a clock, not a way to choose a model.

Each epoch is a line of the output and leaves a checkpoint beside it, so a killed run goes on where
it was. ``--table`` prints what is there, without training.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import straightforward as plain
import torch

from halfseen import preset
from halfseen.networks.loop import annealed_rate, derived_seed, ramp
from halfseen.networks.modules import Predictor
from halfseen.networks.objective import Objective
from halfseen.networks.train import LabelledRows, TrainingProblem, fit_objective
from halfseen.networks.variants import variant_named
from halfseen.outputs import atomic_write
from halfseen_bench.data import DomainPair
from halfseen_bench.data.digits import load_pair

Line = dict[str, Any]
SIDES = ("ours", "plainly")
# Section 6 and appendix E of the paper, for adversarial imputation on digits.
RATE, WARM_UP_EPOCHS, JOINT_EPOCHS, WARM_UP_BATCH, JOINT_BATCH = 1e-2, 10, 90, 32, 128


class Reached(Exception):  # noqa: N818 - an end, not an error
    """Accuracy has reached the level."""


def lines_of(output: Path, side: str, seed: int) -> list[Line]:
    """Return one line per epoch: the last, where a killed run had to repeat an epoch."""
    if not output.is_file():
        return []
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    own = [line for line in lines if (line["side"], line["seed"]) == (side, seed)]
    return list({(line["phase"], line["epoch"]): line for line in own}.values())


def note(output: Path, line: Line) -> None:
    with output.open("a") as file:
        file.write(json.dumps(line) + "\n")
    print(json.dumps(line), flush=True)


def plain_phases() -> Iterator[tuple[str, int, int]]:
    """Yield phase, epoch in the phase and batch size."""
    yield from (("warm-up", epoch, WARM_UP_BATCH) for epoch in range(WARM_UP_EPOCHS))
    yield from (("joint", epoch, JOINT_BATCH) for epoch in range(JOINT_EPOCHS))


def train_plainly(pair: DomainPair, seed: int, level: float, output: Path) -> None:
    inputs = torch.from_numpy(pair.source_train.inputs)
    labels = torch.from_numpy(pair.source_train.labels)
    target = torch.from_numpy(pair.target_train)
    test = torch.from_numpy(pair.target_test)
    truth = torch.from_numpy(pair.target_test_labels.open("a clock"))
    torch.manual_seed(seed)
    model = plain.DigitNetworks(inputs.shape[1])
    optimizers = plain.make_optimizers(model, RATE)
    checkpoint = output.with_suffix(f".plainly-{seed}.pt")
    done: list[Line] = []
    if checkpoint.is_file():
        saved = torch.load(checkpoint, weights_only=True)
        done = lines_of(output, "plainly", seed)[: saved["epochs"]]
        model.load_state_dict(saved["model"])
        for optimizer, state in zip(optimizers, saved["optimizers"], strict=True):
            optimizer.load_state_dict(state)
    trained = done[-1]["seconds"] if done else 0.0
    for number, (phase, epoch, batch_size) in enumerate(plain_phases()):
        if number < len(done):
            continue
        if phase == "joint" and epoch == 0:
            optimizers = plain.make_optimizers(model, RATE)
        torch.manual_seed(derived_seed(seed, number))
        source = plain.source_loader(inputs, labels, batch_size, balanced=True)
        started = time.perf_counter()
        model.train()
        pairs = plain.pairs(source, plain.target_loader(target, batch_size))
        for step, (x_source, y, x_target) in enumerate(pairs):
            if phase == "warm-up":
                loss = plain.warm_up_losses(model, x_source, y)
            else:
                progress = (epoch + step / len(source)) / JOINT_EPOCHS
                plain.set_rates(optimizers, annealed_rate(RATE, progress, 10.0))
                loss = plain.adversarial_losses(model, x_source, y, x_target, ramp(progress), 1.0)
            plain.descend(optimizers, loss)
        trained += time.perf_counter() - started
        accuracy = float((plain.predict(model, test).argmax(1) == truth).float().mean())
        line = {"side": "plainly", "seed": seed, "phase": phase, "epoch": epoch + 1}
        note(output, line | {"seconds": trained, "accuracy": accuracy})
        state = {
            "epochs": number + 1,
            "model": model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in optimizers],
        }
        with atomic_write(checkpoint) as partial:
            torch.save(state, partial)
        if accuracy >= level:
            return


def train_ours(pair: DomainPair, seed: int, level: float, output: Path) -> None:
    truth = pair.target_test_labels.open("a clock")
    seconds = {
        (line["phase"], line["epoch"]): line["epoch_seconds"]
        for line in lines_of(output, "ours", seed)
    }

    def look(objective: Objective, record: Mapping[str, Any]) -> None:
        seconds[record["phase"], record["epoch"]] = record["seconds"]
        predictor = Predictor(objective.networks, objective.options)
        predicted = predictor.raw_prediction(pair.target_test).argmax(1)
        accuracy = float((predicted == truth).mean())
        line = {"side": "ours", "seed": seed, "phase": record["phase"], "epoch": record["epoch"]}
        line |= {"seconds": sum(seconds.values()), "epoch_seconds": record["seconds"]}
        note(output, line | {"accuracy": accuracy})
        if accuracy >= level:
            raise Reached

    problem = TrainingProblem(
        pair.blocks,
        LabelledRows(
            torch.from_numpy(pair.source_train.inputs), torch.from_numpy(pair.source_train.labels)
        ),
        torch.from_numpy(pair.target_train),
        len(pair.classes),
    )
    try:
        fit_objective(
            problem,
            variant_named("Adaptation-Imputation"),
            preset("default"),
            seed=seed,
            on_epoch=look,
            checkpoint=output.with_suffix(f".ours-{seed}.safetensors"),
        )
    except Reached:
        return


def table(output: Path, level: float) -> str:
    rows = [f"| seed | plain seconds to {level:.0%} | our seconds | ratio |", "|---|---|---|---|"]
    seeds = sorted({json.loads(line)["seed"] for line in output.read_text().splitlines()})
    for seed in seeds:
        reached = {}
        for side in SIDES:
            lines = lines_of(output, side, seed)
            first = next((line for line in lines if line["accuracy"] >= level), None)
            last = lines[-1]["seconds"] if lines else 0.0
            best = max((line["accuracy"] for line in lines), default=0.0)
            reached[side] = (first or {}).get("seconds")
            reached[f"{side} shown"] = (
                f"{first['seconds']:.0f} ({first['phase']} epoch {first['epoch']})"
                if first
                else f"not in {last:.0f} (best {best:.1%})"
            )
        both = reached["ours"] and reached["plainly"]
        ratio = f"{reached['plainly'] / reached['ours']:.1f}" if both else ""
        rows.append(f"| {seed} | {reached['plainly shown']} | {reached['ours shown']} | {ratio} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="a .jsonl file, appended to")
    parser.add_argument("--level", type=float, default=0.75)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=list(SIDES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", type=int, help="at most so many of each part, for a quick try")
    parser.add_argument("--table", action="store_true", help="print what is there")
    given = parser.parse_args()
    if not given.table:
        torch.set_num_threads(given.threads)
        root = Path(os.environ["HALFSEEN_DATA"])
        pair = load_pair(root, "usps", "mnist", max_train=given.rows, max_test=given.rows)
        train = {"ours": train_ours, "plainly": train_plainly}
        for seed in given.seeds:
            for side in given.sides:
                lines = lines_of(given.output, side, seed)
                if not any(line["accuracy"] >= given.level for line in lines):
                    train[side](pair, seed, given.level, given.output)
    print(table(given.output, given.level))


if __name__ == "__main__":
    main()
