"""What is compared on the table panel: baselines that people would use, and ways to fit ours."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from unittest import mock

import lightgbm
import numpy as np
import pandas as pd
import sklearn
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from halfseen import HalfSeenClassifier
from halfseen.arrays import Floats
from halfseen.fitting import drift
from halfseen.settings import FitSettings
from halfseen.targets import ClassTarget
from halfseen_bench.data.pairs import Labels

Predict = Callable[[pd.DataFrame, Labels, pd.DataFrame, int], Floats]
"""From source, labels and target, with a seed, to the target's class probabilities."""


def prepared(scaled: bool) -> Any:
    """Return how baselines prepare columns: medians and scales for numbers, codes for texts."""
    numbers = make_pipeline(
        SimpleImputer(strategy="median", keep_empty_features=True),
        *([StandardScaler()] if scaled else []),
    )
    texts = OneHotEncoder(handle_unknown="ignore", min_frequency=5)
    return make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (texts, make_column_selector(dtype_exclude="number")),
        sparse_threshold=0.0,
    )


def plain(make: Callable[[int], Any], *, scaled: bool = False, own: bool = False) -> Predict:
    """Return a classifier on the shared columns; `own` scales each domain by itself."""

    def predict(source: pd.DataFrame, y: Labels, target: pd.DataFrame, seed: int) -> Floats:
        shared = prepared(scaled).fit(source[target.columns])
        model = make(seed).fit(shared.transform(source[target.columns]), y)
        seen = prepared(scaled).fit(target) if own else shared
        rows = shared.transform(target)
        if own:  # numbers stand first, on each domain's own scale
            numbers = target.select_dtypes("number").shape[1]
            rows[:, :numbers] = seen.transform(target)[:, :numbers]
        return in_all_classes(model, rows, y)

    return predict


def boosted(seed: int) -> Any:
    """Return LightGBM as it comes."""
    return lightgbm.LGBMClassifier(random_state=seed, verbose=-1, n_jobs=1)


def forest(seed: int) -> Any:
    """Return a forest of 300 trees, leaves of three rows."""
    return RandomForestClassifier(300, min_samples_leaf=3, random_state=seed)


def logistic(seed: int) -> Any:
    """Return logistic regression as it comes."""
    return LogisticRegression(max_iter=1000)


def tuned_logistic(seed: int) -> Any:
    """Choose the penalty by folds of the source, as our own regression does."""
    search = {"C": (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)}
    return GridSearchCV(LogisticRegression(max_iter=300), search, scoring="neg_log_loss", cv=3)


def imputed_by(make: Callable[[int], Any]) -> Predict:
    """Predict the other columns from the shared ones, then LightGBM on both."""

    def predict(source: pd.DataFrame, y: Labels, target: pd.DataFrame, seed: int) -> Floats:
        absent = source.columns.difference(target.columns)
        shared, other = prepared(True).fit(source[target.columns]), prepared(True)
        x1, x2 = shared.transform(source[target.columns]), other.fit_transform(source[absent])
        rows, known = shared.transform(target), y >= 0
        filled = make(seed).fit(x1, x2).predict(rows).reshape(len(rows), -1)
        model = boosted(seed).fit(np.hstack([x1, x2])[known], y[known])
        return in_all_classes(model, np.hstack([rows, filled]), y)

    return predict


def weighted(source: pd.DataFrame, y: Labels, target: pd.DataFrame, seed: int) -> Floats:
    """LightGBM, each source row by the odds that a regression takes it for the target's."""
    shared = prepared(True).fit(source[target.columns])
    x, rows = shared.transform(source[target.columns]), shared.transform(target)
    domain = LogisticRegression(max_iter=1000).fit(
        np.vstack([x, rows]), np.repeat([0, 1], [len(x), len(rows)])
    )
    odds = np.exp(np.clip(domain.decision_function(x), -5.0, 5.0))
    return in_all_classes(boosted(seed).fit(x, y, sample_weight=odds / odds.mean()), rows, y)


def adapted(make: str) -> Predict:
    """Return an adapter of skada before logistic regression."""

    def predict(source: pd.DataFrame, y: Labels, target: pd.DataFrame, seed: int) -> Floats:
        shared = prepared(True).fit(source[target.columns])
        x, rows = shared.transform(source[target.columns]), shared.transform(target)
        with sklearn.config_context(enable_metadata_routing=True):
            import skada  # which switches routing on for all

            base = LogisticRegression(max_iter=1000).set_fit_request(sample_weight=True)
            model = skada.make_da_pipeline(getattr(skada, make)(), base)
            domain = np.repeat([1, -2], [len(x), len(rows)])
            labels = np.concatenate([y, np.full(len(rows), -1)])
            model.fit(np.vstack([x, rows]), labels, sample_domain=domain)
            found = np.zeros((len(rows), int(y.max()) + 1))
            at_hand = np.unique(y)
            found[:, at_hand] = model.predict_proba(rows, sample_domain=np.full(len(rows), -2))
        return found

    return predict


def in_all_classes(model: Any, rows: Floats, y: Labels) -> Floats:
    """Return probabilities with a column for each class, also where the model saw fewer."""
    found = np.zeros((len(rows), int(y.max()) + 1))
    found[:, model.classes_] = model.predict_proba(rows)
    untold = np.isnan(found).any(axis=1)  # rows that no label has spread to
    found[untold] = np.bincount(y[y >= 0]) / (y >= 0).sum()
    return found


def ours(*without: Callable[[], Any], **settings: Any) -> Predict:
    """Return our estimator with some settings, and without parts that no setting switches off."""

    def predict(source: pd.DataFrame, y: Labels, target: pd.DataFrame, seed: int) -> Floats:
        model = HalfSeenClassifier(random_state=seed, **settings)
        with contextlib.ExitStack() as changed:
            for part in without:
                changed.enter_context(part())
            model.fit(source, y, X_target=target)
        return model.predict_proba(target)

    return predict


BASELINES: dict[str, Predict] = {
    "logistic regression": plain(logistic, scaled=True),
    "logistic regression, own scale": plain(logistic, scaled=True, own=True),
    "logistic regression, tuned": plain(tuned_logistic, scaled=True),
    "logistic regression, tuned, own scale": plain(tuned_logistic, scaled=True, own=True),
    "LightGBM": plain(boosted),
    "random forest": plain(forest),
    "ridge to the missing columns, LightGBM": imputed_by(lambda seed: Ridge(10.0)),
    "LightGBM, importance weights": weighted,
    "skada, CORAL": adapted("CORALAdapter"),
    "skada, subspace alignment": adapted("SubspaceAlignmentAdapter"),
}


def _equal(kind: Any, answers: Sequence[Floats], *others: Any) -> tuple[float, ...]:
    return (1.0 / len(answers),) * len(answers)


WITH_NETWORKS = ["networks", "boosted_trees", "forest", "regression"]
NO_TEACHERS = partial(mock.patch.object, FitSettings, "distils", return_value=False)
NO_SELF_TRAINING = partial(mock.patch.object, drift, "self_trained", return_value=None)
EQUAL_WEIGHTS = partial(mock.patch.object, ClassTarget, "fit_shares", _equal)
OURS: dict[str, Predict] = {
    "default": ours(),
    "quick": ours(effort="quick"),
    "with networks": ours(members=WITH_NETWORKS),
    "no trees": ours(members=["regression"]),
    "no teachers": ours(NO_TEACHERS),
    "no alignment": ours(align=False),
    "no self-training": ours(NO_SELF_TRAINING),
    "equal weights": ours(EQUAL_WEIGHTS),
    "networks": ours(members=["networks"]),
}
