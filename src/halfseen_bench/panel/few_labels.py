"""Few labels, many complete rows: what the missing columns teach, beside what others would do.

Of a problem's complete source rows some are drawn whose labels are known; the others are there
without one, as -1. *Development* problems chose the algorithm; *evaluation* problems are looked at
once per version.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import Ridge
from sklearn.multioutput import MultiOutputRegressor
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from halfseen.arrays import Floats
from halfseen_bench.data.nhanes import load_adults
from halfseen_bench.data.pairs import Labels
from halfseen_bench.panel.methods import Predict, boosted, forest, imputed_by, logistic, ours, plain
from halfseen_bench.panel.problems import DEVELOPMENT, EVALUATION, PanelProblem
from halfseen_bench.panel.public_tables import read_table
from halfseen_bench.panel.running import Record, measured_run, named_in, read_records

COUNTS = (20, 50, 100, 200, 500, 1_000, 0)
"""Labelled rows; 0 stands for all."""
LEAST = 2
"""Labelled rows of each class in every draw."""


def nhanes(seed: int) -> PanelProblem:
    """Who was told of diabetes: white adults to others, whose blood was not drawn."""
    adults = load_adults()
    return PanelProblem(adults.source, adults.labels, adults.observed, adults.truth)


def pbc(seed: int) -> PanelProblem:
    """Who died of primary biliary cirrhosis: patients of a trial to those outside it."""
    table = read_table("survival", "pbc")
    unknown = ["ascites", "hepato", "spiders", "chol", "copper", "alk.phos", "ast", "trig"]
    in_trial, died = table["trt"].notna().to_numpy(), (table["status"] == 2).to_numpy().astype(int)
    rows = table[["age", "sex", "edema", "bili", "albumin", "platelet", "protime", "stage"]]
    rows = rows.assign(sex=rows["sex"].astype(str).astype(object))
    source = pd.concat([rows, table[unknown]], axis=1)[in_trial].reset_index(drop=True)
    target = rows[~in_trial].reset_index(drop=True)
    return PanelProblem(source, died[in_trial], target, died[~in_trial])


OPEN: dict[str, Callable[[int], PanelProblem]] = {"NHANES": nhanes, "bank": DEVELOPMENT["bank"]}
CLOSED: dict[str, Callable[[int], PanelProblem]] = {
    "shoppers": EVALUATION["shoppers"],
    "heart": EVALUATION["heart, VA"],
    "PBC": pbc,
    "reviews": EVALUATION["reviews, films to electronics"],
}


def labelled(predict: Predict) -> Predict:
    """Learn from the labelled rows, as if there were no others."""

    def alone(source: pd.DataFrame, y: Labels, target: pd.DataFrame, seed: int) -> Floats:
        known = y >= 0
        return predict(source[known].reset_index(drop=True), y[known], target, seed)

    return alone


def without_missing(predict: Predict) -> Predict:
    """Learn from all rows, with noise in the place of what the target lacks."""

    def alone(source: pd.DataFrame, y: Labels, target: pd.DataFrame, seed: int) -> Floats:
        noise = np.random.default_rng(seed).normal(size=len(source))
        return predict(source[target.columns].assign(noise=noise), y, target, seed)

    return alone


def spreading(seed: int) -> Any:
    return LabelSpreading(kernel="knn", max_iter=200)


def trees_of_each(seed: int) -> Any:
    from lightgbm import LGBMRegressor

    return MultiOutputRegressor(LGBMRegressor(random_state=seed, verbose=-1, n_jobs=1))


METHODS: dict[str, Predict] = {
    "logistic regression": labelled(plain(logistic, scaled=True)),
    "LightGBM": labelled(plain(boosted)),
    "random forest": labelled(plain(forest)),
    "SelfTrainingClassifier": plain(lambda seed: SelfTrainingClassifier(forest(seed))),
    "LabelSpreading": plain(spreading, scaled=True),
    "ridge to x2, LightGBM": imputed_by(lambda seed: Ridge(10.0)),
    "boosted trees to x2, LightGBM": imputed_by(trees_of_each),
    "halfseen, labels alone": labelled(ours()),
    "halfseen, self-training": without_missing(ours()),
    "halfseen": ours(),
}
"""The last three have the same learners: what is between them is what x2 brings."""


def drawn(labels: Labels, count: int, draw: int) -> Labels | None:
    """Return labels of which so many are known, two of each class among them; None if too few."""
    if not count:
        return labels
    random = np.random.default_rng([draw, count])
    for _ in range(1_000):
        rows = random.permutation(len(labels))[:count]
        if count < len(labels) and np.bincount(labels[rows], minlength=2).min() >= LEAST:
            return np.where(np.isin(np.arange(len(labels)), rows), labels, -1)
    return None


def run_few(
    log: Path,
    problems: Mapping[str, Callable[[int], PanelProblem]],
    *,
    methods: Sequence[str] = (),
    labels: Sequence[int] = COUNTS,
    draws: int = 5,
) -> Iterator[Record]:
    """Run what the log does not hold yet, and yield each new result; a line of JSON each."""
    keys = ("problem", "labels", "seed", "method")
    chosen = named_in(METHODS, methods, "--methods")
    done = {tuple(record[key] for key in keys) for record in read_records(log)}
    for name, load in problems.items():
        data = load(0)
        for seed in range(draws):
            for count in labels:
                known = drawn(data.labels, count, seed)
                for method, predict in chosen.items() if known is not None else ():
                    key = (name, count, seed, method)
                    if key in done:
                        continue
                    assert known is not None
                    found = measured_run(predict, data._replace(labels=known), seed)
                    record = dict(zip(keys, key, strict=True)) | found
                    with log.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(record) + "\n")
                    yield record


# --- tables and curves ----------------------------------------------------------------------


def mean_scores(records: Sequence[Record]) -> dict[str, pd.DataFrame]:
    """Return, for each problem, means over draws in percent: a row per method, a column per count.

    They are of AUC, or of accuracy where there are more classes.
    """
    frame = pd.DataFrame(records)
    frame["score"] = 100.0 * frame["auc"].astype(float).fillna(frame["accuracy"])
    return {
        name: part.pivot_table("score", "method", "labels").reindex(METHODS, columns=COUNTS)
        for name, part in frame.groupby("problem", sort=False)
    }


def few_table(records: Sequence[Record]) -> str:
    """Return a table of each problem; public tables, whose names have a /, together."""
    scores = mean_scores(records)
    parts = [_curve_table(name, scores[name]) for name in scores if "/" not in name]
    public = {name: score for name, score in scores.items() if "/" in name}
    return "\n\n".join(parts + ([_public_table(public)] if public else []))


def _curve_table(name: str, score: pd.DataFrame) -> str:
    found = score.dropna(how="all").dropna(how="all", axis=1).round(1)
    found = found.rename(columns={0: "all"}).rename_axis(name)
    return str(found.astype(object).fillna("-").to_markdown())


def _public_table(scores: Mapping[str, pd.DataFrame]) -> str:
    """Return means over tables, and how each method stands to both controls."""
    controls = ["halfseen, labels alone", "halfseen, self-training"]
    rows = {}
    for count in COUNTS:
        every = pd.DataFrame({name: score[count] for name, score in scores.items()})
        for method in METHODS:
            found = every.loc[[method, *controls]].dropna(axis=1).to_numpy()
            if found.size:
                lead = found[0] - found[1:]
                means = found[0].mean(), *lead.mean(axis=1), lead.min()
                rows[count or "all", method] = [found.shape[1], *means]
    columns = ["tables", "mean", "against labels alone", "self-training", "worst"]
    return str(pd.DataFrame.from_dict(rows, "index", columns=columns).round(2).to_markdown())


def figure(records: Sequence[Record], output: Path) -> None:
    """Draw learning curves, a problem beside the other."""
    from matplotlib.figure import Figure

    scores = {name: s for name, s in mean_scores(records).items() if "/" not in name}
    picture = Figure(figsize=(4.5 * len(scores), 3.5), layout="tight")
    axes = picture.subplots(1, len(scores), squeeze=False)[0]
    shown = ("halfseen", "halfseen, self-training", "halfseen, labels alone", "LightGBM")
    for (name, score), axis in zip(scores.items(), axes, strict=True):
        for method in shown:
            axis.plot(score.loc[method].drop(0).dropna(), marker="o", label=method)
        if not np.isnan(whole := score.loc["halfseen", 0]):
            axis.axhline(whole, color="grey", linestyle=":", label="halfseen, all labels")
        axis.set(title=name, xscale="log", xlabel="labelled rows", ylabel="AUC on the target, %")
    axes[0].legend(fontsize=7)
    picture.savefig(output, dpi=150)
