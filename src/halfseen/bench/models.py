"""Fit one model on one pair of domains and measure it, with the choice of epoch stated."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.ensemble import HistGradientBoostingClassifier

from halfseen import nets
from halfseen.data import DomainPair
from halfseen.files import written_whole
from halfseen.methods import Method
from halfseen.objective import Objective
from halfseen.options import Options
from halfseen.training import LabelledRows, Rows
from halfseen.training.fitting import Problem, fit_objective

__all__ = ["TREES", "Record", "fit_and_measure", "measure_trees", "record"]

Record = dict[str, Any]
"""One measured result: model, divergence, refined, seed, epoch_choice, accuracy, ..."""

TREES = "Gradient-boosted trees"


def record(
    model: str,
    *,
    divergence: str | None,
    refined: bool,
    seed: int,
    epoch_choice: str,
    accuracy: float,
    **more: Any,
) -> Record:
    """Return one result under the keys that every benchmark shares."""
    return {
        "model": model,
        "divergence": divergence,
        "refined": refined,
        "seed": seed,
        "epoch_choice": epoch_choice,
        "accuracy": accuracy,
        **more,
    }


def fit_and_measure(
    pair: DomainPair,
    method: Method,
    options: Options,
    *,
    seed: int,
    latents: Path | None = None,
) -> tuple[list[Record], list[dict[str, Any]]]:
    """Train one model, with refinement where it adapts; return its records and its history.

    Accuracy on the target test set is noted after every epoch, by a hook that training does not
    see into. ``last`` is the final epoch of a phase, what a user gets; ``oracle`` is the best
    epoch in hindsight, chosen with the test labels, as published tables do.

    Parameters
    ----------
    latents
        Where to keep the latents of source and target test rows as a ``.npz`` file.
    """
    target_train, target_test = target_inputs(pair, method)
    truth = torch.from_numpy(pair.target_test_labels.open("evaluation"))
    test_rows = torch.from_numpy(target_test)

    def measure(objective: Objective, record: Mapping[str, Any]) -> Mapping[str, Any]:
        probability = nets.probabilities(
            objective.networks, test_rows, samples=options.prediction_samples, seed=seed
        )
        return {"target_test_accuracy": float((probability.argmax(1) == truth).float().mean())}

    objective, history = fit_objective(
        Problem(
            pair.blocks,
            LabelledRows(
                torch.from_numpy(pair.source_train.inputs),
                torch.from_numpy(pair.source_train.labels),
            ),
            Rows(torch.from_numpy(target_train)),
            len(pair.classes),
        ),
        method,
        options,
        seed=seed,
        refine=method.adapts,
        on_epoch=measure,
    )
    if latents is not None:
        save_latents(latents, objective, pair, test_rows)
    records = []
    for refined in (False, True) if method.adapts else (False,):
        phase = "refine" if refined else "joint"
        epochs = [r["target_test_accuracy"] for r in history if r["phase"] == phase]
        for choice, accuracy in (("last", epochs[-1]), ("oracle", max(epochs))):
            records.append(
                record(
                    method.name,
                    divergence=options.divergence if method.adapts else None,
                    refined=refined,
                    seed=seed,
                    epoch_choice=choice,
                    accuracy=accuracy,
                    seconds=sum(r["seconds"] for r in history),
                )
            )
    return records, history


def target_inputs(
    pair: DomainPair, method: Method
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return target train and test inputs: complete ones for the Full models alone."""
    if method.needs_complete_target and pair.complete_target is not None:
        return pair.complete_target.open("the Full models of a benchmark")
    return pair.target_train, pair.target_test


def measure_trees(pair: DomainPair, *, seed: int) -> list[Record]:
    """Measure what a user would pick instead: boosted trees on the observed inputs."""
    trees = HistGradientBoostingClassifier(max_iter=60, random_state=seed)
    trees.fit(pair.blocks.flat(pair.source_train.inputs, "observed"), pair.source_train.labels)
    truth = pair.target_test_labels.open("evaluation")
    accuracy = float(trees.score(pair.blocks.flat(pair.target_test, "observed"), truth))
    return [
        record(
            TREES, divergence=None, refined=False, seed=seed, epoch_choice="last", accuracy=accuracy
        )
    ]


def save_latents(
    path: Path, objective: Objective, pair: DomainPair, target_test: torch.Tensor
) -> None:
    """Keep the latents of both test sets for a picture; the objective is not used after it."""
    networks = objective.networks
    target = nets.latents(networks, target_test)
    if objective.options.prediction_statistics == "target" and networks.method.adapts:
        # In training each domain was normalised by its own statistics.
        networks.estimate_statistics(nets.chunks(torch.from_numpy(pair.source_train.inputs)))
    source = nets.latents(networks, torch.from_numpy(pair.source_test.inputs))
    with written_whole(path) as partial:
        np.savez(
            partial,
            source=source.numpy(),
            target=target.numpy(),
            source_labels=pair.source_test.labels,
            target_labels=pair.target_test_labels.open("picture"),
        )
