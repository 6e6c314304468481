"""Train every model on the rest, measure it on the slice, and ask every score beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from halfseen.arrays import Floats
from halfseen.errors import OptionError
from halfseen.evidence.carving import Carving, carve_pseudo_target, carving_of
from halfseen.evidence.scores import agreement
from halfseen.front.inference import Understanding
from halfseen.front.streaming import Chunk, RowStream
from halfseen.front.tables import PooledTable, Table, each_site
from halfseen.members import Sample
from halfseen.metrics import metrics_of
from halfseen.model.fitting import Hooks
from halfseen.model.settings import FitSettings, needs_complete_target
from halfseen.progress import Progress
from halfseen.rehearsal.results import Rehearsal, RehearsedChoice, RehearsedRun
from halfseen.rehearsal.stage import BASELINES, RehearsalStage
from halfseen.selection import ONE_FIT_SCORES, SCORES, Observed
from halfseen.selection.scoring import score_of

__all__ = ["MODELS", "rehearse", "rehearse_sites"]

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
    progress: Callable[[str], Progress] = lambda title: Progress(),
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
    _check(settings)
    source = Sample(*_rows(found.source.table, found, rows, is_source=True))
    target, _ = _rows(found.target.table, found, rows, is_source=False)
    observed = list(found.schema.blocks.observed)
    carving = carve_pseudo_target(
        source.inputs[:, observed], target[:, observed], share=share, random_state=settings.seed
    )
    return _rehearsed(found, source, carving, settings, seeds, progress, say)


def rehearse_sites(
    found: Understanding,
    settings: FitSettings,
    *,
    seeds: int = 3,
    rows: int = MOST_ROWS,
    progress: Callable[[str], Progress] = lambda title: Progress(),
    say: Callable[[str], None] = lambda sentence: None,
) -> dict[str, Rehearsal]:
    """Rehearse on several sources: each plays the target in turn, and the others are learned from.

    Its labels and its missing block are hidden from the models. As :func:`rehearse`, by site.
    """
    _check(settings)
    table = found.source.table
    assert isinstance(table, PooledTable)
    parts = [Sample(*_rows(site, found, rows, is_source=True)) for site in each_site(table)]
    source = Sample(
        np.concatenate([part.inputs for part in parts]),
        np.concatenate([part.labels for part in parts]),
    )
    owner = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    target, _ = _rows(found.target.table, found, rows, is_source=False)
    observed = list(found.schema.blocks.observed)
    results = {}
    for number, site in enumerate(table.sites):
        say(f"{site} plays the target:")
        carving = carving_of(
            source.inputs[:, observed], target[:, observed], owner == number, settings.seed
        )
        result = _rehearsed(found, source, carving, settings, seeds, progress, say)
        results[site] = replace(result, site=site)
    return results


def _check(settings: FitSettings) -> None:
    if needs_complete_target(settings.models):
        raise OptionError(
            "A rehearsal hides the missing block from the models, and Full models need it; name "
            "others."
        )


def _rows(table: Table, found: Understanding, most: int, *, is_source: bool) -> Chunk:
    """Return about so many prepared rows of a table, or of one of its sites."""
    summary = found.source if is_source else found.target
    return RowStream(table, found.schema, is_source=is_source).at_most(most, summary.rows)


def _rehearsed(
    found: Understanding,
    source: Sample,
    carving: Carving,
    settings: FitSettings,
    seeds: int,
    progress: Callable[[str], Progress],
    say: Callable[[str], None],
) -> Rehearsal:
    """Train every model on the rest, and measure models and scores on the slice."""
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
            hooks = Hooks(lambda _, title=f"{name}, seed {seed}": progress(title))  # type: ignore[misc]
            model = stage.fit(replace(settings, models=(name,), seed=seed), hooks)
            shown = stage.observed(model)
            runs.append(_measured(name, seed, shown, stage, say))
            predicted.setdefault(name, []).append(shown.target_probabilities)
        runs += [_measured(n, seed, stage.baseline(n, seed), stage, say) for n in BASELINES]
    return Rehearsal(carving, tuple(runs), _choices(runs, predicted))


def _measured(
    name: str, seed: int, shown: Observed, stage: RehearsalStage, say: Callable[[str], None]
) -> RehearsedRun:
    """Ask the scores about a model, then the labels of the slice."""
    scores = {score: score_of(score, shown) for score in ONE_FIT_SCORES}
    measured = metrics_of(shown.target_probabilities, stage.slice.labels)
    say(f"{name}, seed {seed}: cross-entropy {measured['cross_entropy']:.4f} on the slice.")
    return RehearsedRun(name, seed, {metric: measured[metric] for metric in _METRICS}, scores)


def _choices(
    runs: Sequence[RehearsedRun], predicted: dict[str, list[Floats]]
) -> tuple[RehearsedChoice, ...]:
    """Return what each score chooses among the models, the least loss first.

    `predicted` holds the networks' predictions: only they differ from seed to seed, so that only
    they can agree.
    """
    names = list(dict.fromkeys(run.model for run in runs))
    own = [[run for run in runs if run.model == name] for name in names]
    loss = np.array([np.mean([run.measured["cross_entropy"] for run in some]) for some in own])
    by_score = {
        score: [float(np.mean([run.scores[score] for run in some])) for some in own]
        for score in ONE_FIT_SCORES
    }
    if predicted and all(len(several) > 1 for several in predicted.values()):
        by_score["agreement"] = [
            agreement(np.stack(predicted[name])) if name in predicted else float("nan")
            for name in names
        ]
    best = {score: SCORES[score].best(values) for score, values in by_score.items()}
    found = [RehearsedChoice(s, names[b], float(loss[b] - loss.min())) for s, b in best.items()]
    return tuple(sorted(found, key=lambda choice: choice.lost))
