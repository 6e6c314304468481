"""Who has diabetes? Blood was drawn here and not elsewhere, and only a hundred charts were read.

python examples/diabetes.py                    # NHANES 2017-18, which is in the public domain
python examples/diabetes.py default diabetes/  # also as tables for `halfseen fit`, and the truth
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

from halfseen import HalfSeenClassifier
from halfseen_bench.data.nhanes import load_adults

CHARTS = 100


def main(effort: str = "default", folder: str = "") -> None:
    people = load_adults()
    source, target = people.source, people.observed
    missing = [name for name in source if name not in target]
    print(f"{len(source):,} + {len(target):,} people; no blood was drawn in the second: {missing}")
    read = np.random.default_rng(0).permutation(len(source))[:CHARTS]
    diabetes = np.full(len(source), None)
    diabetes[read] = people.labels[read]
    if folder:
        out = Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        source.assign(diabetes=diabetes).to_csv(out / "source.csv", index=False)
        target.to_csv(out / "target.csv", index=False)
        target.assign(diabetes=people.truth).to_csv(out / "truth.csv", index=False)

    few = HalfSeenClassifier(effort=effort, random_state=0).fit(source, diabetes, X_target=target)
    alone = HalfSeenClassifier(effort=effort, random_state=0)
    alone.fit(source.iloc[read], people.labels[read], X_target=target)
    every = HalfSeenClassifier(effort=effort, random_state=0)
    every.fit(source, people.labels, X_target=target)
    numbers = list(target.select_dtypes("number"))
    forest = make_pipeline(SimpleImputer(), RandomForestClassifier(random_state=0))
    forest.fit(source.iloc[read][numbers], people.labels[read])

    # The truth was kept aside: nothing above has seen it. In your case there is none.
    for name, scores in {
        f"random forest, {CHARTS} charts": forest.predict_proba(target[numbers]),
        f"halfseen, {CHARTS} charts alone": alone.predict_proba(target),
        f"halfseen, {CHARTS} charts and everybody's blood": few.predict_proba(target),
        f"halfseen, all {len(source):,} charts": every.predict_proba(target),
    }.items():
        print(f"{name:45} AUC {roc_auc_score(people.truth, scores[:, 1]):.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
