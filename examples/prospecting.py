"""Ads: users known to a shop are the source, new ones the target, beside the best possible model.

The simulator knows the probability of a click given what is observed of a new user.

    python examples/prospecting.py
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from halfseen import HalfSeenClassifier
from halfseen_bench.data import simulator
from halfseen_bench.data.export import simulated_tables, write_tables


def write_parquet(folder: Path, rows: int) -> None:
    """Do what `halfseen data export ads-sim retargeting:prospecting -o FOLDER` does."""
    scenario = simulator.Scenario(rows=rows, test_rows=5_000)
    tables, card = simulated_tables(scenario), simulator.card(scenario)
    write_tables(folder, tables, card, classes=simulator.CLASSES)


def main(epochs: int | str = "auto", rows: int = 2_000) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_parquet(folder, rows)
        source = pd.read_parquet(folder / "source.parquet")[:rows]
        target = pd.read_parquet(folder / "target.parquet")
        truth = pd.read_parquet(folder / "target_labels.parquet")[rows:]

    label = source.pop("label")
    train, test = target[:rows], target[rows:]  # adapt to some users, predict others
    unknown = sorted(set(source) - set(target))
    print(f"{len(source):,} known users, {len(train):,} new ones without {len(unknown)} columns")

    settings = {"options": {"training.joint_epochs": epochs}, "random_state": 0}
    names = ("Adaptation-Imputation", "Adaptation-IgnoreComponent")
    models = {name: HalfSeenClassifier(model=name, **settings) for name in names}
    for model in models.values():
        model.fit(source, label, X_target=train)
    observed = source[target.columns]
    logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    models["Logistic regression"] = logistic.fit(observed, label)
    models["Gradient-boosted trees"] = HistGradientBoostingClassifier().fit(observed, label)

    clicks = {name: model.predict_proba(test)[:, 1] for name, model in models.items()}
    clicks["always the source's rate"] = np.full(len(test), label.mean())
    clicks["best possible"] = truth["best_given_observed"].to_numpy()
    clicks["best possible with all columns"] = truth["best_given_all"].to_numpy()

    # The excess over the best is a mean of Kullback-Leibler divergences: no label noise in it.
    best = np.clip(truth["best_given_observed"].to_numpy(), 1e-12, 1 - 1e-12)
    print(f"{'':32}cross-entropy  above the best")
    for name, p in clicks.items():
        p = np.clip(p, 1e-12, 1 - 1e-12)
        excess = best * np.log(best / p) + (1 - best) * np.log((1 - best) / (1 - p))
        shown = f"{excess.mean():14.4f}" if "all" not in name else f"{'–':>14}"
        print(f"{name:32}{log_loss(truth['label'], p):13.4f} {shown}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
