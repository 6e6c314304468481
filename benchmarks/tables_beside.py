"""`halfseen fit` beside what a person would pick instead, over several sizes of the source.

``HALFSEEN_DATA=... python benchmarks/tables_beside.py heart cleveland:hungarian --sizes 60 303``
exports the pair as tables, takes random parts of the source (several seeds each), fits the models
as ``halfseen fit`` does, and on the observed columns, prepared the same way, logistic regression
(its penalty chosen by five-fold likelihood) and gradient-boosted trees. All are scored on the
target's labels, which nothing else reads; the table is Markdown.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split

from halfseen.front.files import open_table
from halfseen.front.inference import Understanding, understand
from halfseen.front.roles import Roles
from halfseen.front.streaming import RowStream
from halfseen.metrics import metrics_of
from halfseen.model.fitting import fit_tables
from halfseen.model.settings import FitSettings

CATEGORICAL = {"heart": ("cp", "restecg", "slope", "thal")}
"""Columns of numbers that are names of categories, by data set."""
PENALTIES = [1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0]
METRICS = ("accuracy", "balanced_accuracy", "auc", "cross_entropy")
Scores = dict[str, dict[str, float]]


def export(name: str, pair: str, folder: Path) -> None:
    arguments = ["data", "export", name, pair, "-o", str(folder)]
    arguments += ["--data-dir", os.environ["HALFSEEN_DATA"]]
    run = [sys.executable, "-m", "halfseen", *arguments]
    subprocess.run(run, check=True, stdout=subprocess.DEVNULL)


def part_of(folder: Path, rows: int, seed: int) -> Path:
    """Write a random part of the source, with its class shares, and return the file."""
    source = pd.read_parquet(folder / "source.parquet")
    if rows < len(source):
        labels = source[source.columns[-1]]
        source, _ = train_test_split(source, train_size=rows, stratify=labels, random_state=seed)
    path = folder / "part.parquet"
    source.to_parquet(path, index=False)
    return path


def scores(
    source: Path, target: Path, labels: pd.Series, roles: Roles, models: list[str], seed: int
) -> Scores:
    found = understand(open_table(source), open_table(target), roles)
    assert isinstance(found, Understanding), found
    rows, classes = RowStream(found.source.table, found.schema, is_source=True).all()
    there, _ = RowStream(found.target.table, found.schema, is_source=False).all()
    observed = list(found.schema.blocks.observed)
    result: Scores = {}
    for name, baseline in {
        "logistic regression": GridSearchCV(
            LogisticRegression(max_iter=1000), {"C": PENALTIES}, scoring="neg_log_loss"
        ),
        "gradient-boosted trees": HistGradientBoostingClassifier(random_state=seed),
    }.items():
        baseline.fit(rows[:, observed], classes)
        result[name] = metrics_of(baseline.predict_proba(there[:, observed]), labels.to_numpy())
    for name in models:
        model = fit_tables(found, FitSettings((name,), seed=seed)).model
        result[name] = metrics_of(model.score(there), labels.to_numpy())
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?", default="heart")
    parser.add_argument("pair", nargs="?", default="cleveland:hungarian")
    parser.add_argument("--sizes", type=int, nargs="+", default=[60, 120, 240, 303])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--models", nargs="+", default=["Adaptation-Imputation"])
    given = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        export(given.name, given.pair, folder)
        labels = pd.read_parquet(folder / "target_labels.parquet").iloc[:, 0]
        roles = Roles(str(labels.name), categorical=CATEGORICAL.get(given.name, ()))
        print(f"| source rows | model | {' | '.join(METRICS)} |")
        print(f"|---|---|{'---|' * len(METRICS)}")
        for size in given.sizes:
            found: dict[str, list[dict[str, float]]] = defaultdict(list)
            for seed in range(given.seeds):
                source = part_of(folder, size, seed)
                target = folder / "target.parquet"
                measured = scores(source, target, labels, roles, given.models, seed)
                for name, metrics in measured.items():
                    found[name].append(metrics)
            for name, runs in found.items():
                cells = []
                for metric in METRICS:
                    values = np.array([run[metric] for run in runs])
                    cells.append(f"{values.mean():.3f} ± {values.std(ddof=1):.3f}")
                print(f"| {size} | {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
