"""A scikit-learn pipeline with a grid search that sees no target label.

Both domains are stacked into one table; `sample_domain` says which row is which. scikit-learn
routes it to the estimator and to the scorer.

    python examples/grid_search.py
"""

import sys

import numpy as np
import pandas as pd
from sklearn import config_context
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer

from halfseen import HalfSeenClassifier
from halfseen.selection import make_scorer


def main(effort: str = "default") -> None:
    patients = load_breast_cancer(as_frame=True).frame
    source = patients.sample(300, random_state=0)
    target = patients.drop(source.index)
    truth = target["target"]
    target = target.loc[:, :"fractal dimension error"] * 1.1

    X = pd.concat([source.drop(columns="target"), target])  # ten columns are empty on the target
    y = np.r_[source["target"], np.full(len(target), -1)]  # labels of target rows are not read
    sample_domain = np.r_[np.ones(len(source), int), -np.ones(len(target), int)]

    with config_context(enable_metadata_routing=True):
        model = HalfSeenClassifier(effort=effort, random_state=0)
        pipeline = make_pipeline(
            QuantileTransformer(n_quantiles=50, output_distribution="normal"),
            model.set_fit_request(sample_domain=True),
        )
        search = GridSearchCV(
            pipeline,
            {"halfseenclassifier__members": [["regression"], ["boosted_trees", "regression"]]},
            scoring=make_scorer("dev"),  # a risk on the target, estimated without its labels
            cv=2,
        ).fit(X, y, sample_domain=sample_domain)

    results = search.cv_results_
    for settings, score in zip(results["params"], results["mean_test_score"], strict=True):
        named = {name.split("__")[1]: value for name, value in settings.items()}
        print(f"{named}: estimated risk {-score:.3f}")
    best = search.best_estimator_
    print(f"The chosen one is right on {best.score(X[-len(target) :], truth):.1%} of the target.")


if __name__ == "__main__":
    main(*sys.argv[1:])
