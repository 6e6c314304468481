"""What measuring missing columns on the target would bring, told from labelled source rows.

The source has both: what is said of a row from x1 alone, and from x1 and some columns of x2, each
by teachers that were not fitted on the row. The difference, with each row weighted by how much more
often its x1 occurs on the target, is what these columns would bring there, as far as p(x2 | x1) and
p(y | x1, x2) are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from halfseen.arrays import Floats
from halfseen.blocks import Blocks
from halfseen.data.schema import TableSchema
from halfseen.distillation import answered_out_of_fold
from halfseen.errors import InputError
from halfseen.evidence import effective_sample_size, overlap
from halfseen.fitting.held_out import held_out_weights
from halfseen.fitting.prepared_rows import Fold, PreparedRows
from halfseen.members import BoostedTreesLearner, Member, Sample, TrainingJob
from halfseen.parallel import run_parallel
from halfseen.splitting import folds, rarest_class
from halfseen.targets import RegressionTarget, TargetType

FOLDS = 5
FEWEST_ROWS, FEWEST_OF_A_CLASS = 50, 10
"""Labelled rows from which differences have an interval."""
MOST_ROWS = 5_000
"""Labelled rows that are compared, drawn from all."""
MOST_COLUMNS, MOST_PAIRED = 12, 4
"""Columns that are looked at one by one: of more, those that tell most of what x1 leaves; and the
best of these that are looked at in pairs."""
CLEAR = 1.64
"""Standard errors by which a pair must be ahead of the better of its two to be told."""
LEVEL = 0.9
GROUPS = 40
"""Of rows, each left out once for the standard error (the jackknife)."""
OTHER = {"cross_entropy": (0.5, 0.01), "auc": (0.3, 0.006), "accuracy": (0.4, 0.01)}
OTHER_AMOUNT = (0.4, 0.0)
"""What a gain differs by from what x1 lets expect, as standard deviations: a share of it, and so
much in any case; found by benchmarks/value_of_measuring.py on its development problems."""


class Measuring(NamedTuple):
    """What a model keeps: the gains of each set of columns, and what foretells them row by row."""

    facts: dict[str, Any]
    by_row: tuple[Member, ...]


def check_enough(labels: Any, kind: TargetType) -> None:
    """Refuse rows of which no interval can be told."""
    rarest = rarest_class(kind.strata(labels)) if len(labels) else 0
    if len(labels) < FEWEST_ROWS or rarest < FEWEST_OF_A_CLASS:
        raise InputError(
            f"{len(labels)} labelled rows, {rarest} of the rarest class, are too few for an "
            f"interval of what measuring would bring: label at least {FEWEST_ROWS}, and "
            f"{FEWEST_OF_A_CLASS} of each class, or fit without --value-of-missing."
        )


def value_of_measuring(rows: PreparedRows, schema: TableSchema, seed: int) -> Measuring:
    """Return what each missing column, pairs that help together and all would bring."""
    kind, whole = rows.target_type, rows.sample
    source = whole[np.random.default_rng(seed).permutation(len(whole))[:MOST_ROWS]]
    check_enough(source.labels, kind)
    job = TrainingJob(rows.blocks, kind, source, rows.target, seed)
    ends = np.cumsum([0, *(len(column.inputs) for column in schema.columns)])
    places = {
        column.name: range(*pair)
        for column, *pair in zip(schema.columns, ends[:-1], ends[1:], strict=True)
        if column.role == "missing"
    }
    known: dict[tuple[str, ...], Floats] = {}

    def answered(sets: Sequence[tuple[str, ...]]) -> None:
        calls = [partial(_answered, job, places, names) for names in sets]
        known.update(zip(sets, run_parallel(calls), strict=True))

    answered([()])
    plain, weights = known.pop(()), _weights(rows, source, seed)
    singles = [(name,) for name in _most_telling(source, plain, places, kind)]
    answered(singles)
    losses = {s: weights * kind.row_losses(p, source.labels) for s, p in known.items()}
    best = sorted(singles, key=lambda single: losses[single].sum())[:MOST_PAIRED]
    pairs: dict[tuple[str, ...], Floats] = {
        (*one, *other): losses[one] for one, other in combinations(best, 2)
    }
    whole_block = tuple(places)
    pairs.pop(whole_block, None)
    answered([*pairs, *([whole_block] if len(places) > 1 else [])])
    for pair, better in pairs.items():
        more = better - weights * kind.row_losses(known[pair], source.labels)
        if more.mean() <= CLEAR * more.std(ddof=1) / np.sqrt(len(more)):
            del known[pair]
    rows_there = len(rows.target)
    facts = {
        "rows": len(source),
        "effective_rows": effective_sample_size(weights),
        "overlap": overlap(weights),
        "left_out": [name for name in places if (name,) not in known],
        "sets": [
            {
                "columns": list(names),
                "gains": _gains(plain, answers, source.labels, weights, rows_there, kind),
            }
            for names, answers in known.items()
        ],
    }
    by_row = run_parallel([partial(_by_row, job, plain, answers) for answers in known.values()])
    return Measuring(facts, tuple(by_row))


def _answered(job: TrainingJob, places: dict[str, range], names: Sequence[str]) -> Floats:
    """Return what is said of each row by teachers that see x1 and some columns of x2."""
    seen = {place for name in names for place in places[name]}
    missing = tuple(place for place in job.blocks.missing if place not in seen)
    blocks = Blocks(job.blocks.shape, missing, job.blocks.names)
    return answered_out_of_fold(replace(job, blocks=blocks), FOLDS)


def _weights(rows: PreparedRows, source: Sample, seed: int) -> Floats:
    """Return how much each row counts: how much more often its x1 occurs on the target."""
    strata = rows.target_type.strata(source.labels)
    splits = list(folds(strata, FOLDS, seed).split(strata, strata))
    parts = [Fold(source[training], source[others]) for training, others in splits]
    weights = np.empty(len(source))
    weights[np.concatenate([others for _, others in splits])] = held_out_weights(
        replace(rows, folds=parts)
    )
    return weights if source.weights is None else np.multiply(weights, source.weights)


def _most_telling(
    source: Sample, plain: Floats, places: dict[str, range], kind: TargetType
) -> list[str]:
    """Return the columns whose inputs, or their squares, go along most with what x1 leaves."""
    left = kind.targets(source.labels) - plain

    def telling(name: str) -> float:
        own = source.inputs[:, list(places[name])].astype(np.float64)
        own = np.hstack([own, np.square(own)])
        own, other = own - own.mean(0), left - left.mean(0)
        scale = np.outer(np.linalg.norm(own, axis=0), np.linalg.norm(other, axis=0))
        return float((np.abs(own.T @ other) / np.maximum(scale, 1e-12)).max())

    chosen = sorted(places, key=telling, reverse=True)[:MOST_COLUMNS]
    return [name for name in places if name in chosen]


def _gains(
    plain: Floats, more: Floats, labels: Any, weights: Floats, target_rows: int, kind: TargetType
) -> dict[str, list[float]]:
    """Return by how much each measure gets better, with the ends of its interval."""
    group = np.random.default_rng(0).permutation(len(labels)) % GROUPS

    def gained(counted: Floats) -> Floats:
        before, after = (list(kind.risks(p, labels, counted).values()) for p in (plain, more))
        return np.subtract(before, after)

    names, value = list(kind.risks(plain, labels, weights)), gained(weights)
    left_out = np.stack([gained(np.where(group == g, 0.0, weights)) for g in range(GROUPS)])
    variance = (GROUPS - 1) / GROUPS * np.square(left_out - left_out.mean(0)).sum(0)
    # On the target as many rows are drawn as it has, and not as the source's are worth.
    variance *= 1.0 + effective_sample_size(weights) / target_rows
    reach = float(stats.norm.ppf(0.5 + LEVEL / 2.0))
    found = {}
    for name, gain, own in zip(names, value, variance, strict=True):
        share, least = OTHER.get(name, OTHER_AMOUNT)
        width = reach * float(np.sqrt(own + (share * gain) ** 2 + least**2))
        found[name] = [float(gain), float(gain - width), float(gain + width)]
    return found


def _by_row(job: TrainingJob, plain: Floats, more: Floats) -> Member:
    """Return what foretells from x1 by how much columns make a row's answer surer.

    The expected fall of entropy over what the columns may be is the mean of how far the answer with
    them is from the one without, KL(p(y | x1, x2) || p(y | x1)), over source rows of like x1: trees
    take that mean. Of amounts it is the fall of the variance, the mean squared difference.
    """
    moved = job.target_type.moved(plain, more)
    inputs = job.blocks.hide(job.source.inputs)
    task = replace(
        job, target_type=RegressionTarget(), source=Sample(inputs, moved, job.source.weights)
    )
    return BoostedTreesLearner(rounds=60, rate=0.06).fit(task)
