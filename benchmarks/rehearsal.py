"""Print the rehearsal tables of docs/selection.md: the slice beside the true target, simulated ads.

Run ``python benchmarks/rehearsal.py``; on one core it takes some ten minutes, most of them
training. Labels of the true target enter the last columns alone: they show what a user cannot see.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from halfseen.evidence.carving import carve_pseudo_target
from halfseen.front.files import open_table
from halfseen.front.inference import Understanding, understand
from halfseen.front.roles import Roles
from halfseen.front.streaming import RowStream
from halfseen.members import Sample
from halfseen.metrics import metrics_of
from halfseen.model.fitting import Hooks
from halfseen.model.settings import FitSettings
from halfseen.rehearsal import BASELINES, MODELS, rehearse
from halfseen.rehearsal.stage import RehearsalStage
from halfseen_bench.data.simulator import SimulatedRows, draw
from halfseen_bench.data.simulator_world import MISSING, OBSERVED, Dials, World

ROWS = 3000
SEEDS = 2


def line(cells: Iterable[object]) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def carvings() -> None:
    """How the slice's shift compares with the true one."""
    line(
        ("activity_shift", "AUC, target from source", "AUC, slice from rest", "overlap", "slice's")
    )
    line(["---"] * 5)
    for shift in (0.0, 0.3, 0.7, 1.5, 4.0):
        source, target = (
            draw(World(domain, Dials(activity_shift=shift)), 0, ROWS).observed
            for domain in ("retargeting", "prospecting")
        )
        found = carve_pseudo_target(source, target)
        wanted, obtained = found.wanted, found.obtained
        line(
            [shift]
            + [f"{v:.3f}" for v in (wanted.auc, obtained.auc, wanted.overlap, obtained.overlap)]
        )


def as_table(rows: SimulatedRows) -> pa.Table:
    values = np.hstack([rows.observed, rows.missing]).T
    return pa.table(dict(zip([*OBSERVED, *MISSING], values, strict=True)) | {"click": rows.labels})


def understood(source: SimulatedRows, target: SimulatedRows, folder: Path) -> Understanding:
    pq.write_table(as_table(source), folder / "source.parquet")
    hidden = as_table(target).drop_columns([*MISSING, "click"])
    pq.write_table(hidden, folder / "target.parquet")
    tables = (open_table(folder / f"{name}.parquet") for name in ("source", "target"))
    found = understand(*tables, Roles("click"))
    assert isinstance(found, Understanding)
    return found


def on_the_target(found: Understanding, truth: SimulatedRows, seed: int, name: str) -> float:
    """Return a model's cross-entropy on the true target, trained on the whole source for it."""
    source = Sample(*RowStream(found.source.table, found.schema, is_source=True).all())
    target, _ = RowStream(found.target.table, found.schema, is_source=False).all()
    inputs = np.concatenate([source.inputs, target])
    labels = np.concatenate([source.labels, truth.labels])
    is_target = np.arange(len(labels)) >= len(source)
    stage = RehearsalStage.of(found.schema, Sample(inputs, labels), is_target, 0)
    if name in BASELINES:
        shown = stage.baseline(name, seed)
    else:
        shown = stage.observed(stage.fit(FitSettings((name,), seed=seed), Hooks()))
    return float(metrics_of(shown.target_probabilities, stage.slice.labels)["cross_entropy"])


def main() -> None:
    carvings()
    source, target = (
        draw(World(domain, Dials()), 0, ROWS) for domain in ("retargeting", "prospecting")
    )
    with tempfile.TemporaryDirectory() as folder:
        found = understood(source, target, Path(folder))
        result = rehearse(found, FitSettings(models=MODELS), seeds=SEEDS)
        print()
        line(("model", "on the slice", "on the true target"))
        line(["---"] * 3)
        for name in result.models:
            true = [on_the_target(found, target, seed, name) for seed in range(SEEDS)]
            slice_loss = result.mean(name, "cross_entropy")
            line((name, f"{slice_loss:.4f}", f"{np.mean(true):.4f}"))
        print()
        line(("score", "would have chosen", "cross-entropy lost", "rank correlation"))
        line(["---"] * 4)
        for choice in result.choices:
            rank = f"{choice.rank_correlation:.2f}"
            line((choice.score, choice.model, f"{choice.lost:.4f}", rank))
        print(f"\n{result.verdict} {result.trust}")


if __name__ == "__main__":
    main()
