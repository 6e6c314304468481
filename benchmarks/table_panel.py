"""The model of tables beside what people would use instead, on real problems.

Results are appended to a file of JSON lines as they come; what is there already is not run again.

    HALFSEEN_DATA=... python benchmarks/table_panel.py --output panel.jsonl --efforts quick
    python benchmarks/table_panel.py --output panel.jsonl --table

*Development* problems may be looked at while the model is built. *Evaluation* problems are run
once a version is finished (``--evaluation``), and every look is counted in docs/results/tables.md.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import torch
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from halfseen import AdaptationImputationClassifier
from halfseen.metrics import accuracy, auc, expected_calibration_error, row_losses
from halfseen_bench.data import DomainPair
from halfseen_bench.data.catalog import data_folder, family

DEVELOPMENT = {
    "gas 1+2 to 3": ("gas", "batches1-2", "batch3", {}),
    "gas 1+2 to 6": ("gas", "batches1-2", "batch6", {}),
    "bank": ("bank", "contacted", "never", {}),
    "heart, Hungarian": ("heart", "cleveland", "hungarian", {}),
    "reviews, kitchen to books": ("amazon", "kitchen", "books", {"weighting": "binary"}),
    "reviews, books to films": ("amazon", "books", "dvd", {"weighting": "binary"}),
}
EVALUATION = {
    "gas 1+2 to 4": ("gas", "batches1-2", "batch4", {}),
    "gas 1+2 to 5": ("gas", "batches1-2", "batch5", {}),
    "shoppers": ("shoppers", "returning", "new", {}),
    "heart, Switzerland": ("heart", "cleveland", "switzerland", {}),
    "heart, VA": ("heart", "cleveland", "va", {}),
    "reviews, films to electronics": ("amazon", "dvd", "electronics", {"weighting": "binary"}),
    "reviews, books to kitchen": ("amazon", "books", "kitchen", {"weighting": "binary"}),
    "reviews, kitchen to electronics": (
        "amazon",
        "kitchen",
        "electronics",
        {"weighting": "binary"},
    ),
    "reviews, films to books": ("amazon", "dvd", "books", {"weighting": "binary"}),
}

Predict = Callable[[pd.DataFrame, np.ndarray, pd.DataFrame, int], np.ndarray]


def frames(pair: DomainPair) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]:
    """Return source, labels, target without the missing block, and the target's labels."""
    names = list(pair.blocks.names or ())

    def frame(inputs: Any) -> pd.DataFrame:
        columns = {}
        for name, values in zip(names, inputs.T.astype(float), strict=True):
            known = pair.categories.get(name)
            if known is None:
                columns[name] = values
            else:
                codes = np.nan_to_num(values).astype(int)
                texts = np.array(known, dtype=object)[codes]
                columns[name] = np.where(np.isnan(values), None, texts)
        return pd.DataFrame(columns)

    parts = (pair.source_train, pair.source_test)
    source = frame(np.concatenate([part.inputs for part in parts]))
    labels = np.concatenate([part.labels for part in parts])
    missing = [names[position] for position in pair.blocks.missing]
    target = frame(pair.target_test).drop(columns=missing)
    return source, labels, target, pair.target_test_labels.open("the panel's evaluation")


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
        found = np.zeros((len(target), int(y.max()) + 1))
        seen = prepared(scaled).fit(target) if own else shared
        rows = shared.transform(target)
        if own:  # numbers stand first, on each domain's own scale
            numbers = target.select_dtypes("number").shape[1]
            rows[:, :numbers] = seen.transform(target)[:, :numbers]
        found[:, model.classes_] = model.predict_proba(rows)
        return found

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


def ours(**settings: Any) -> Predict:
    def predict(source: pd.DataFrame, y: Any, target: pd.DataFrame, seed: int) -> np.ndarray:
        model = AdaptationImputationClassifier(random_state=seed, **settings)
        return model.fit(source, y, X_target=target).predict_proba(target)

    return predict


BASELINES: dict[str, Predict] = {
    "logistic regression": plain(logistic, scaled=True),
    "logistic regression, own scale": plain(logistic, scaled=True, own=True),
    "logistic regression, tuned": plain(tuned_logistic, scaled=True),
    "logistic regression, tuned, own scale": plain(tuned_logistic, scaled=True, own=True),
    "LightGBM": plain(boosted),
    "random forest": plain(forest),
}
NO_NETWORKS = ["boosted_trees", "forest", "regression"]
OURS: dict[str, Predict] = {
    "quick": ours(effort="quick"),
    "quick, no alignment": ours(effort="quick", align=False),
    "no networks": ours(members=NO_NETWORKS),
    "no trees": ours(members=["networks", "regression"]),
    "default": ours(),
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
            name, source, target, options = problems[problem]
            wanted = [m for m in methods if (problem, m, seed) not in known]
            if not wanted:
                continue
            pair = family(name).reader.load_pair(
                data_folder(None), source, target, seed=seed, **options
            )
            data = frames(pair)
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
    """Print the score that counts (AUC; accuracy of gas) and cross-entropy, in Markdown."""
    problems = list(dict.fromkeys(r["problem"] for r in records))
    methods = list(dict.fromkeys(r["method"] for r in records))
    print("| method | " + " | ".join(problems) + " |")
    print("|---|" + "---|" * len(problems))
    for method in methods:
        cells = []
        for problem in problems:
            found = [r for r in records if (r["problem"], r["method"]) == (problem, method)]
            key = "accuracy" if problem.startswith("gas") else "auc"
            if not found:
                cells.append("–")
                continue
            score = 100 * np.mean([r[key] for r in found])
            loss = np.mean([r["cross_entropy"] for r in found])
            cells.append(f"{score:.1f} ({loss:.3f})")
        print(f"| {method} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
