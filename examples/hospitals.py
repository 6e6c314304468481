"""Two hospitals: the second never ran some of the tests, and its patients are others.

python examples/hospitals.py          # scikit-learn's tumours, dealt to two hospitals
HALFSEEN_DATA=data python examples/hospitals.py   # heart disease, Cleveland and Hungary,
# after: halfseen data get heart
"""

import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from halfseen import HalfSeenClassifier
from halfseen.evidence import domain_separation, feature_shift


def tumours() -> tuple[pd.DataFrame, pd.Series, pd.DataFrame, pd.Series]:
    """Deal 569 patients to two hospitals; the second sees larger tumours and 20 columns of 30."""
    patients = load_breast_cancer(as_frame=True).frame
    larger = patients["mean radius"].rank(pct=True)
    second = np.random.default_rng(0).random(len(patients)) < 0.2 + 0.6 * larger
    target = patients[second].drop(columns="target").loc[:, :"fractal dimension error"]
    source = patients[~second]
    return source.drop(columns="target"), source["target"], target, patients[second]["target"]


def hearts(root: Path) -> tuple[pd.DataFrame, pd.Series, pd.DataFrame, pd.Series]:
    """Read the tables that Cleveland and Hungary published."""
    from halfseen_bench.data import heart

    (source, label), (target, truth) = (
        heart.read_hospital(root, name) for name in ("cleveland", "hungarian")
    )
    source, target = (pd.DataFrame(rows, columns=heart.COLUMNS) for rows in (source, target))
    source, target = source.fillna(source.median()), target.drop(columns=["slope", "ca", "thal"])
    return source, pd.Series(label), target.fillna(source.median()), pd.Series(truth)


def main(effort: str = "default") -> None:
    root = Path(os.environ.get("HALFSEEN_DATA", ""))
    there = (root / "heart").is_dir() and "HALFSEEN_DATA" in os.environ
    source, label, target, truth = hearts(root) if there else tumours()
    observed, missing = list(target), [name for name in source if name not in target]
    print(f"{len(source)} + {len(target)} patients; never measured in the second: {missing}")

    # Before training: what differs, and how far does the source cover the target?
    shift = feature_shift(source[observed].to_numpy(), target.to_numpy(), observed)
    largest = max(shift, key=lambda row: row.population_stability)
    print(f"Largest shift: {largest.name}, stability index {largest.population_stability:.2f}")
    overlap = domain_separation(source[observed], target).overlap
    print(f"On the target, source rows are worth {overlap:.1%} of their number")

    # The model, and what you would try first.
    X, X_held, y, y_held = train_test_split(source, label, stratify=label, random_state=0)
    halfseen = HalfSeenClassifier(effort=effort, random_state=0).fit(X, y, X_target=target)
    logistic = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[observed], y)

    # The truth was kept aside: nothing above has seen it. In your case there is none.
    for name, model in [("halfseen", halfseen), ("logistic", logistic)]:
        held, new = model.score(X_held[observed], y_held), model.score(target, truth)
        print(f"{name}: {held:.1%} right on held-out source rows, {new:.1%} on the target")


if __name__ == "__main__":
    main(*sys.argv[1:])
