"""Instruments that have drifted: sensors that aged, half of which are gone.

python examples/drift.py                      # made up of scikit-learn's tumours
HALFSEEN_DATA=data python examples/drift.py   # six gases by 16 sensors, months apart,
# after: halfseen data get gas
"""

import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from halfseen import HalfSeenClassifier


def tumours() -> tuple[pd.DataFrame, pd.Series, pd.DataFrame, pd.Series]:
    """Deal 569 patients to two scanners; the second has gains of its own and 20 columns of 30."""
    patients = load_breast_cancer(as_frame=True).frame
    source = patients.sample(300, random_state=1)
    target = patients.drop(source.index)
    readings = target.loc[:, :"fractal dimension error"]
    random, columns = np.random.default_rng(1), readings.shape[1]
    readings = readings * np.exp(random.normal(0.0, 0.3, columns))
    readings += random.normal(0.0, 0.5, columns) * readings.std()
    return source.drop(columns="target"), source["target"], readings, target["target"]


def gases(root: Path) -> tuple[pd.DataFrame, pd.Series, pd.DataFrame, pd.Series]:
    """Read two periods of UCI's gas sensor array; the later one has sensors 1 to 8 alone."""
    from halfseen_bench.data import gas

    pair = gas.load_pair(root, "batches1-2", "batch3")
    source = pd.DataFrame(pair.source_train.inputs, columns=gas.COLUMNS)
    target = pd.DataFrame(pair.target_test, columns=gas.COLUMNS).drop(columns=list(gas.MISSING))
    truth = pair.target_test_labels.open("to see how well it went")
    return source, pd.Series(pair.source_train.labels), target, pd.Series(truth)


def main(effort: str = "default") -> None:
    root = Path(os.environ.get("HALFSEEN_DATA", ""))
    there = (root / "gas").is_dir() and "HALFSEEN_DATA" in os.environ
    source, label, target, truth = gases(root) if there else tumours()
    print(f"{len(source):,} + {len(target):,} rows; {target.shape[1]} of {source.shape[1]} columns")

    model = HalfSeenClassifier(effort=effort, random_state=0).fit(source, label, X_target=target)
    right = {"halfseen": model.score(target, truth)}

    # What one would try first: the shared columns, also with each table on its own scale.
    shared = source[target.columns]
    logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000))
    right["logistic regression"] = logistic.fit(shared, label).score(target, truth)
    own, others = (StandardScaler().fit_transform(table) for table in (shared, target))
    alone = LogisticRegression(max_iter=1_000).fit(own, label)
    right["logistic regression, own scales"] = alone.score(others, truth)
    trees = HistGradientBoostingClassifier(random_state=0).fit(shared, label)
    right["boosted trees"] = trees.score(target, truth)
    for name, score in right.items():
        print(f"{name:32}{score:.1%} right on the target")


if __name__ == "__main__":
    main(*sys.argv[1:])
