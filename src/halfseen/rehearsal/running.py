"""Train every model on the rest, measure it on the slice, and ask every score beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from halfseen.arrays import Floats
from halfseen.errors import OptionError
from halfseen.evidence.carving import carve_pseudo_target, rank_correlation
from halfseen.evidence.scores import agreement
from halfseen.front.inference import Understanding
from halfseen.front.streaming import RowStream
from halfseen.members import Sample
from halfseen.metrics import metrics_of
from halfseen.model.fitting import Hooks
from halfseen.model.settings import FitSettings, needs_complete_target
from halfseen.networks.training import NoProgress, Progress
from halfseen.rehearsal.results import Rehearsal, RehearsedChoice, RehearsedRun
from halfseen.rehearsal.stage import BASELINES, ObservedBaseline, RehearsalStage
from halfseen.selection import ONE_FIT_SCORES, SCORES, Observed
from halfseen.selection.scoring import score_of

__all__ = ["MODELS", "rehearse"]

MODELS = ("Adaptation-Imputation", "Adaptation-IgnoreComponent", "Source-IgnoreComponent")
"""The models of a rehearsal, unless others are named."""
MOST_ROWS = 10_000
"""Rows of each table that a rehearsal reads, unless told otherwise."""
_METRICS = ("cross_entropy", "auc", "accuracy", "balanced_accuracy")


def rehearse(
    found: Understanding,
    settings: FitSettings,
    *,
    seeds: int = 3,
    share: float = 1 / 3,
    rows: int = MOST_ROWS,
    progress: Callable[[str], Progress] = lambda title: NoProgress(),
    say: Callable[[str], None] = lambda sentence: None,
) -> Rehearsal:
    """Rehearse on two tables: carve a slice, train every model, measure models and scores.

    Parameters
    ----------
    found, settings
        As for :func:`halfseen.model.fitting.fit_tables`; `settings.models` are trained beside
        the baselines.
    seeds
        Trainings of each model. The slice is the same for all.
    share
        Of the source rows that play the target.
    rows
        The most rows of each table to read.
    progress, say
        Make the display of a training, and are told what is going on.
    """
    if needs_complete_target(settings.models):
        raise OptionError(
            "A rehearsal hides the missing block from the models, and Full models need it; name "
            "others."
        )
    source, target = _read(found, rows)
    observed = list(found.schema.blocks.observed)
    carving = carve_pseudo_target(
        source.inputs[:, observed], target[:, observed], share=share, random_state=settings.seed
    )
    stage = RehearsalStage.of(found.schema, source, carving.chosen, settings.seed)
    say(
        f"{len(stage.slice):,} source rows play the target, {len(stage.fold.training):,} are "
        f"trained on and {len(stage.fold.held_out):,} held out. A domain classifier tells the "
        f"slice from the rest with an AUC of {carving.obtained.auc:.3f}, and the target from the "
        f"source with {carving.wanted.auc:.3f}."
    )
    runs: list[RehearsedRun] = []
    predicted: dict[str, list[Floats]] = {}
    for seed in range(settings.seed, settings.seed + seeds):
        for name in settings.models:
            bar = partial(_bar, progress, f"{name}, seed {seed}")
            model = stage.fit(replace(settings, models=(name,), seed=seed), Hooks(bar))
            shown = stage.observed(model)
            runs.append(_measured(name, seed, shown, stage, say))
            predicted.setdefault(name, []).append(shown.target_probabilities)
        runs += [_measured(n, seed, stage.baseline(n, seed), stage, say) for n in BASELINES]
    return Rehearsal(carving, tuple(runs), _choices(runs, predicted))


def _bar(progress: Callable[[str], Progress], title: str, _: str) -> Progress:
    """Return the display of a training under the title that the rehearsal gives it."""
    return progress(title)


def _measured(
    name: str,
    seed: int,
    shown: Observed | ObservedBaseline,
    stage: RehearsalStage,
    say: Callable[[str], None],
) -> RehearsedRun:
    """Ask the scores about a model, then the labels of the slice."""
    scores = {score: score_of(score, shown) for score in ONE_FIT_SCORES}
    measured = metrics_of(shown.target_probabilities, stage.slice.labels)
    say(f"{name}, seed {seed}: cross-entropy {measured['cross_entropy']:.4f} on the slice.")
    return RehearsedRun(name, seed, {metric: measured[metric] for metric in _METRICS}, scores)


def _read(found: Understanding, rows: int) -> tuple[Sample, npt.NDArray[np.float32]]:
    """Return prepared rows of both tables, a random part of a long one."""
    source = RowStream(found.source.table, found.schema, is_source=True)
    target = RowStream(found.target.table, found.schema, is_source=False)
    return (
        Sample(*source.at_most(rows, found.source.rows)),
        target.at_most(rows, found.target.rows)[0],
    )


def _choices(
    runs: Sequence[RehearsedRun], predicted: dict[str, list[Floats]]
) -> tuple[RehearsedChoice, ...]:
    """Return what each score chooses among the models, the least loss first.

    `predicted` holds the networks' predictions: only they differ from seed to seed, so that only
    they can agree.
    """
    names = list(dict.fromkeys(run.model for run in runs))
    loss = np.array([_mean(runs, n, lambda run: run.measured["cross_entropy"]) for n in names])
    by_score = {
        score: [_mean(runs, name, lambda run, s=score: run.scores[s]) for name in names]
        for score in ONE_FIT_SCORES
    }
    if predicted and all(len(several) > 1 for several in predicted.values()):
        by_score["agreement"] = [
            agreement(np.stack(predicted[name])) if name in predicted else float("nan")
            for name in names
        ]
    found = []
    for score, values in by_score.items():
        best = SCORES[score].best(values)
        compared = np.isfinite(values)
        rank = rank_correlation(
            np.array(values)[compared],
            loss[compared],
            higher_is_better=SCORES[score].better == "higher",
        )
        found.append(RehearsedChoice(score, names[best], float(loss[best] - loss.min()), rank))
    return tuple(sorted(found, key=lambda c: (c.lost, -float(np.nan_to_num(c.rank_correlation)))))


def _mean(runs: Sequence[RehearsedRun], model: str, value: Callable[..., Any]) -> float:
    return float(np.mean([value(run) for run in runs if run.model == model]))
