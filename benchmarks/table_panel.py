"""The model of tables beside what people would use instead, on real problems.

Results are appended to a file of JSON lines as they come; what is there already is not run again.

    HALFSEEN_DATA=... python benchmarks/table_panel.py --output panel.jsonl --efforts quick
    python benchmarks/table_panel.py --output panel.jsonl --table

*Development* problems may be looked at while the model is built. *Evaluation* problems are run
once a version is finished (``--evaluation``), and every look is counted in docs/results/tables.md.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import lightgbm
import numpy as np
import pandas as pd
import sklearn
import torch
from scipy.stats import rankdata
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from table_problems import DEVELOPMENT, EVALUATION, metric_of

from halfseen import AdaptationImputationClassifier
from halfseen.metrics import accuracy, auc, expected_calibration_error, row_losses
from halfseen.model.settings import FitSettings

Predict = Callable[[pd.DataFrame, np.ndarray, pd.DataFrame, int], np.ndarray]


def prepared(scaled: bool) -> Any:
    numbers = make_pipeline(
        SimpleImputer(strategy="median"), *([StandardScaler()] if scaled else [])
    )
    texts = OneHotEncoder(handle_unknown="ignore", min_frequency=5)
    return make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (texts, make_column_selector(dtype_exclude="number")),
        sparse_threshold=0.0,
    )


def plain(make: Callable[[int], Any], *, scaled: bool = False, own: bool = False) -> Predict:
    """Return a classifier on the shared columns; `own` scales each domain by itself."""

    def predict(source: pd.DataFrame, y: Any, target: pd.DataFrame, seed: int) -> np.ndarray:
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
    return lightgbm.LGBMClassifier(random_state=seed, verbose=-1, n_jobs=1)


def forest(seed: int) -> Any:
    return RandomForestClassifier(300, min_samples_leaf=3, random_state=seed)


def logistic(seed: int) -> Any:
    return LogisticRegression(max_iter=1000)


def tuned_logistic(seed: int) -> Any:
    """Choose the penalty by folds of the source, as our own regression does."""
    search = {"C": (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)}
    return GridSearchCV(LogisticRegression(max_iter=300), search, scoring="neg_log_loss", cv=3)


def imputed(source: pd.DataFrame, y: Any, target: pd.DataFrame, seed: int) -> np.ndarray:
    """Ridge regression from the shared columns to the others, then LightGBM on both."""
    absent = source.columns.difference(target.columns)
    shared, other = prepared(True).fit(source[target.columns]), prepared(True).fit(source[absent])
    x1, x2 = shared.transform(source[target.columns]), other.transform(source[absent])
    rows = shared.transform(target)
    ridge = Ridge(10.0).fit(x1, x2)
    model = boosted(seed).fit(np.hstack([x1, x2]), y)
    return in_all_classes(model, np.hstack([rows, ridge.predict(rows)]), y)


def weighted(source: pd.DataFrame, y: Any, target: pd.DataFrame, seed: int) -> np.ndarray:
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

    def predict(source: pd.DataFrame, y: Any, target: pd.DataFrame, seed: int) -> np.ndarray:
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


def in_all_classes(model: Any, rows: np.ndarray, y: Any) -> np.ndarray:
    found = np.zeros((len(rows), int(y.max()) + 1))
    found[:, model.classes_] = model.predict_proba(rows)
    return found


def ours(*, teaches: bool = True, **settings: Any) -> Predict:
    def predict(source: pd.DataFrame, y: Any, target: pd.DataFrame, seed: int) -> np.ndarray:
        model = AdaptationImputationClassifier(random_state=seed, **settings)
        with contextlib.ExitStack() as changed:
            if not teaches:
                changed.enter_context(mock.patch.object(FitSettings, "teaches", return_value=False))
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
    "ridge to the missing columns, LightGBM": imputed,
    "LightGBM, importance weights": weighted,
    "skada, CORAL": adapted("CORALAdapter"),
    "skada, subspace alignment": adapted("SubspaceAlignmentAdapter"),
}
NO_NETWORKS = ["boosted_trees", "forest", "regression"]
OURS: dict[str, Predict] = {
    "default": ours(),
    "quick": ours(effort="quick"),
    "no networks": ours(members=NO_NETWORKS),
    "no trees": ours(members=["networks", "regression"]),
    "no teachers": ours(teaches=False),
    "no alignment": ours(align=False),
    "networks": ours(members=["networks"]),
}


def main() -> None:
    """Run what is asked for and not there yet, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--problems", nargs="*")
    parser.add_argument("--efforts", nargs="*", default=list(OURS), help="rows of ours")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--evaluation", action="store_true")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    done = (
        [json.loads(line) for line in given.output.read_text().splitlines()]
        if (given.output.exists())
        else []
    )
    if given.table:
        print_table(done)
        return
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))
    known = {(r["problem"], r["method"], r["seed"]) for r in done}
    methods = BASELINES | {f"halfseen, {name}": OURS[name] for name in given.efforts}
    problems = EVALUATION if given.evaluation else DEVELOPMENT
    for seed in range(given.seeds):
        for problem in given.problems or problems:
            wanted = [m for m in methods if (problem, m, seed) not in known]
            if not wanted:
                continue
            data = problems[problem](seed)
            for method in wanted:
                record = measured(methods[method], data, seed)
                line = {"problem": problem, "method": method, "seed": seed, **record}
                with given.output.open("a") as file:
                    file.write(json.dumps(line) + "\n")
                print(json.dumps(line), flush=True)


def measured(predict: Predict, data: Any, seed: int) -> dict[str, float | None]:
    source, labels, target, truth = data
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        probability = predict(source, labels, target, seed)
    return {
        "accuracy": accuracy(probability, truth),
        "auc": auc(probability, truth),
        "cross_entropy": float(row_losses(probability, truth).mean()),
        "calibration_error": expected_calibration_error(probability, truth),
        "seconds": round(time.perf_counter() - started, 1),
    }


def print_table(records: list[dict[str, Any]]) -> None:
    """Print the score that counts, cross-entropy, and how each method stands among the others."""
    problems = list(dict.fromkeys(r["problem"] for r in records))
    methods = list(dict.fromkeys(r["method"] for r in records))

    def mean(problem: str, method: str, key: str) -> float:
        found = [r[key] for r in records if (r["problem"], r["method"]) == (problem, method)]
        return float(np.mean(found)) if found else np.nan

    scores = np.array([[100 * mean(p, m, metric_of(p)) for p in problems] for m in methods])
    losses = np.array([[mean(p, m, "cross_entropy") for p in problems] for m in methods])
    baselines = [number for number, method in enumerate(methods) if method in BASELINES]
    print("| problem | " + " | ".join(methods) + " |")
    print("|---|" + "---|" * len(methods))
    for column, problem in enumerate(problems):
        pairs = zip(scores[:, column], losses[:, column], strict=True)
        cells = ["–" if np.isnan(s) else f"{s:.1f} ({loss:.3f})" for s, loss in pairs]
        print(f"| {problem} | " + " | ".join(cells) + " |")
    behind = scores - scores[baselines].max(axis=0)
    # Methods that were not run on every problem stand outside of the means.
    ranks = np.full_like(scores, np.nan)
    whole = ~np.isnan(scores).any(axis=1)
    ranks[whole] = rankdata(-scores[whole], axis=0)
    for title, values in (
        ("mean rank", ranks.mean(axis=1)),
        ("mean score", scores.mean(axis=1)),
        ("below the best baseline of each problem, mean", behind.mean(axis=1)),
        ("the same, worst", behind.min(axis=1)),
        ("mean cross-entropy", losses.mean(axis=1)),
    ):
        digits = 3 if "entropy" in title else 1
        cells = ["–" if np.isnan(v) else f"{v:.{digits}f}" for v in values]
        print(f"| {title} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
