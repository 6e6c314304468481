"""halfseen's model as a step of a skada pipeline, judged by skada's scorers.

skada knows many ways to align domains, and none for inputs that the target never has. It stacks
both domains, with `sample_domain` positive for source rows: the form that halfseen takes too.

    pip install 'halfseen-bench[baselines]'
    python examples/with_skada.py
"""

import sys

import numpy as np
import sklearn
from skada import CORALAdapter, make_da_pipeline, source_target_split
from skada.metrics import PredictionEntropyScorer, SoftNeighborhoodDensity
from skada.model_selection import SourceTargetShuffleSplit
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.preprocessing import StandardScaler

from halfseen import HalfSeenClassifier

MISSING = list(range(20, 30))


def main(effort: str = "default") -> None:
    sklearn.set_config(enable_metadata_routing=True)  # importing skada does so as well
    X, y = load_breast_cancer(return_X_y=True)
    domain = np.where(np.random.default_rng(0).random(len(X)) < 0.5, 1, -2)
    X[domain < 0] *= 1.1  # a scanner that reads high
    X[np.ix_(domain < 0, MISSING)] = 0.0  # what the target never measured

    model = HalfSeenClassifier(missing=MISSING, effort=effort, random_state=0)
    model.set_fit_request(sample_domain=True)
    pipelines = {
        "skada: CORAL": make_da_pipeline(StandardScaler(), CORALAdapter(), LogisticRegression()),
        "halfseen": make_da_pipeline(StandardScaler(), model),
    }
    scorers = {
        "entropy": PredictionEntropyScorer(),
        "neighbourhood density": SoftNeighborhoodDensity(),
    }
    _, X_target, _, y_target = source_target_split(X, y, sample_domain=domain)
    for name, pipeline in pipelines.items():
        found = cross_validate(
            pipeline,
            X,
            y,  # skada hides the target's labels from the pipelines
            params={"sample_domain": domain},
            cv=SourceTargetShuffleSplit(n_splits=2, random_state=0),
            scoring=scorers,
            error_score="raise",
        )
        shown = (f"{score} {found[f'test_{score}'].mean():.3f}" for score in scorers)
        right = pipeline.fit(X, y, sample_domain=domain).score(X_target, y_target)
        print(f"{name}: {', '.join(shown)}; {right:.1%} of the target right")


if __name__ == "__main__":
    main(*sys.argv[1:])
