"""Fit one model on one pair of domains and measure it, with the choice of epoch stated."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from halfseen.arrays import normalized
from halfseen.errors import InputError
from halfseen.members import NetworksLearner, Sample, TrainingJob
from halfseen.networks.modules import Predictor
from halfseen.networks.objective import Objective
from halfseen.networks.variants import NetworkVariant
from halfseen.options import Options
from halfseen.outputs import atomic_write
from halfseen.selection import SCORES, Evidence, evaluate
from halfseen.targets import ClassTarget
from halfseen_bench.data import DomainPair
from halfseen_bench.metrics import METRICS, measured

Record = dict[str, Any]
"""One measured result: model, divergence, refined, seed, epoch_choice, accuracy, ..."""

PICTURED_ROWS = 500
"""Latents of at most so many rows of each domain are kept for a picture."""


EPOCH_SCORES = tuple(name for name in SCORES if name != "importance_weighted")
"""Names of the scores; DEV is importance weighting with less noise, so that one stands for both."""


def fit_and_measure(
    pair: DomainPair,
    method: NetworkVariant,
    options: Options,
    *,
    seed: int,
    scores: Sequence[str] = (),
    score_rows: int = 1000,
    evaluations: int | None = None,
    oracle: str = "accuracy",
    regret: Callable[[npt.ArrayLike], float] | None = None,
    latents: Path | None = None,
) -> tuple[list[Record], list[dict[str, Any]]]:
    """Train one model, with refinement where it adapts; return its records and its history.

    After every epoch of the joint phase and of the refinement, a hook that training does not see
    into measures the target test set. ``last`` is the final epoch of a phase, what a user gets;
    each label-free score adds a record of the epoch that it would have chosen; ``oracle`` is the
    best epoch in hindsight, chosen with the test labels, as published tables do.

    `score_rows` of each part are what label-free scores see; `evaluations`, if given, is the most
    epochs of a phase that are measured; `latents` is where those of both test sets are kept.
    """
    target_train, target_test = target_inputs(pair, method)
    truth = pair.target_test_labels.open("evaluation")
    evidence = evidence_of(pair, method, score_rows, seed)

    def measure(objective: Objective, record: Mapping[str, Any]) -> Mapping[str, Any]:
        if record["phase"] == "warm-up":
            return {}
        predictor = Predictor(objective.networks, options)
        probability = normalized(np.exp(predictor.raw_prediction(target_test)))
        found: dict[str, Any] = {"target_test": measured(probability, truth)}
        if regret is not None:
            found["target_test"]["regret"] = regret(probability)
        found["scores"] = evaluate(predictor, evidence, scores, rows=None)
        return found

    learner = NetworksLearner(
        method, options, method.adapts, on_epoch=measure, evaluations=evaluations
    )
    source = Sample(pair.source_train.inputs, pair.source_train.labels)
    member = learner.fit(
        TrainingJob(pair.blocks, ClassTarget.of(len(pair.classes)), source, target_train, seed)
    )
    history = member.history
    if latents is not None:
        assert member.objective is not None
        save_latents(latents, member.objective, pair, tensor(target_test))
    seconds = sum(r["seconds"] for r in history)
    divergence = options.objective.divergence if method.adapts else None
    records = []
    for phase, refined in (("joint", False), ("refine", True)):
        epochs = [r for r in history if r["phase"] == phase and "target_test" in r]
        for choice, number in chosen_epochs(epochs, scores, oracle).items():
            about = {"model": method.name, "divergence": divergence, "refined": refined}
            when = {"seed": seed, "epoch_choice": choice, "epoch": epochs[number]["epoch"]}
            records.append(about | when | epochs[number]["target_test"] | {"seconds": seconds})
    return records, history


def chosen_epochs(
    epochs: Sequence[Mapping[str, Any]], scores: Sequence[str], oracle: str
) -> dict[str, int]:
    """Return the position of the epoch that each rule chooses; nothing where there is none."""
    if not epochs:
        return {}
    values = [epoch["target_test"][oracle] for epoch in epochs]
    return {
        "last": len(epochs) - 1,
        **{name: SCORES[name].best([epoch["scores"][name] for epoch in epochs]) for name in scores},
        "oracle": values.index(METRICS[oracle].best(values)),
    }


def target_inputs(
    pair: DomainPair, method: NetworkVariant
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return target train and test inputs: complete ones for the Full models alone."""
    if not method.needs_complete_target:
        return pair.target_train, pair.target_test
    if pair.complete_target is None:
        raise InputError(
            f"{method.name} needs the target's missing inputs, and nobody measured those of "
            f"{pair.name}."
        )
    return pair.complete_target.open("the Full models of a benchmark")


def save_latents(
    path: Path, objective: Objective, pair: DomainPair, target_test: torch.Tensor
) -> None:
    """Keep the latents of both test sets for a picture; the objective is not used after it."""
    networks = objective.networks
    predictor = Predictor(networks, objective.options)
    target = predictor.latents(target_test[:PICTURED_ROWS].numpy())
    if objective.options.networks.prediction_statistics == "target" and networks.method.adapts:
        # In training each domain was normalised by its own statistics.
        networks.estimate_statistics(torch.split(tensor(pair.source_train.inputs), 1024))
    shown = np.ascontiguousarray(pair.source_test.inputs[:PICTURED_ROWS])
    arrays: dict[str, npt.NDArray[Any]] = {
        "source": predictor.latents(shown),
        "target": target,
        "source_labels": pair.source_test.labels[:PICTURED_ROWS],
        "target_labels": pair.target_test_labels.open("picture")[:PICTURED_ROWS],
    }
    with atomic_write(path) as partial:
        np.savez(partial, **arrays)  # type: ignore[arg-type]


def evidence_of(pair: DomainPair, method: NetworkVariant, rows: int, seed: int) -> Evidence:
    """Return at most so many rows of each part: what a choice of epoch may see."""
    held_out, (target, _) = pair.source_test, target_inputs(pair, method)
    whole = Evidence(held_out.inputs, held_out.labels, target, pair.source_train.inputs)
    return whole.sample(rows, seed=seed)


def tensor(array: npt.NDArray[np.generic]) -> torch.Tensor:
    """Return an array as a tensor that shares its memory; nothing here writes to one."""
    with warnings.catch_warnings():  # grey digits in three channels are read-only on purpose
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)
