"""What measuring is promised to bring beside what it brings, where the target's x2 is known.

Each problem is fitted with its missing columns missing, which gives promises (`halfseen measure`),
and again with each of them, some pairs and all measured on the target too. What the label then says
is the truth. Source and target are drawn to 3,000 rows each. Finished problems are kept in the log.

    HALFSEEN_DATA=... python benchmarks/value_of_measuring.py --output log.jsonl
    HALFSEEN_DATA=... python benchmarks/value_of_measuring.py --output log.jsonl --evaluation
    HALFSEEN_DATA=... python benchmarks/value_of_measuring.py --output log.jsonl --table
    HALFSEEN_DATA=... python benchmarks/value_of_measuring.py --output log.jsonl --picture n.png
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from many_tables import problems as public_tables
from scipy.stats import spearmanr

import halfseen
from halfseen.api import Model
from halfseen.errors import HalfseenError
from halfseen.evidence.density_ratio import ENOUGH_OVERLAP
from halfseen_bench.data.catalog import data_folder
from halfseen_bench.data.nhanes import MISSING, load_adults
from halfseen_bench.panel.problems import (
    DEVELOPMENT,
    EVALUATION,
    SHOP_UNKNOWN,
    PanelProblem,
    cut,
)

MOST_ROWS, MOST_TRUE, OPEN = 3_000, 8, 25
"""Rows of each domain; missing columns whose truth is found; open public tables that are used."""
LARGE, CLEAR = 0.01, 2.0
"""A gain that matters; standard errors by which measuring everything must gain."""
LABEL = "the label"


def nhanes() -> PanelProblem:
    adults = load_adults()
    hidden = adults.target.drop(columns=list(MISSING.values()))
    return PanelProblem(adults.source, adults.labels, hidden, adults.truth, complete=adults.target)


def shoppers() -> PanelProblem:
    """Take the analytics of new visitors, which the file has, for missing."""
    table = pd.read_csv(data_folder() / "shoppers/online_shoppers_intention.csv")
    for name in ("OperatingSystems", "Browser", "Region", "TrafficType", "Weekend"):
        table[name] = "v" + table[name].astype(str)
    labels, kind = table.pop("Revenue").astype(int), table.pop("VisitorType")
    here, there = kind == "Returning_Visitor", kind == "New_Visitor"
    return cut(table.drop(columns="SpecialDay"), labels, here, there, SHOP_UNKNOWN)


def problems(evaluation: bool) -> Iterator[tuple[str, PanelProblem]]:
    """Go through the problems whose target is known completely, in two classes."""
    known = {"NHANES": lambda seed: nhanes()} | DEVELOPMENT
    if evaluation:
        known = {**EVALUATION, "shoppers": lambda seed: shoppers()}
    found = ((name, load(0)) for name, load in known.items() if not name.startswith("reviews"))
    tables = () if evaluation else islice(public_tables(closed=False), OPEN)
    for name, problem in (*found, *tables):
        if problem.complete is not None and len(np.unique(problem.labels)) == 2:
            yield name, drawn(problem)


def drawn(problem: PanelProblem) -> PanelProblem:
    """Return a draw of so many rows of each domain."""
    random = np.random.default_rng(0)
    here = np.sort(random.permutation(len(problem.source))[:MOST_ROWS])
    there = np.sort(random.permutation(len(problem.target))[:MOST_ROWS])
    assert problem.complete is not None
    source, target, complete = (
        table.iloc[rows].reset_index(drop=True)
        for table, rows in (
            (problem.source, here), (problem.target, there), (problem.complete, there),
        )
    )  # fmt: skip
    return PanelProblem(
        source, problem.labels[here], target, problem.truth[there], complete=complete
    )


def fitted(problem: PanelProblem, measured: list[str], **settings: Any) -> tuple[Model, Any]:
    """Fit with some missing columns measured; return the model and the target it was fitted for."""
    assert problem.complete is not None
    target = problem.complete[[*problem.target.columns, *measured]]
    source = problem.source.assign(**{LABEL: problem.labels})
    rest = [name for name in problem.source if name not in target]
    if not rest:  # a column of no meaning stays missing
        source["noise"] = np.random.default_rng(0).normal(size=len(source))
    settings |= {"missing": rest, "keep": list(target.columns), "report": False}
    model = halfseen.fit(source, target, LABEL, **settings)
    assert isinstance(model, Model)
    return model, target


def asked(problem: PanelProblem, measured: list[str]) -> tuple[dict[str, float], Any, Any]:
    """Return the risks with some columns measured, what each row costs, and which are right."""
    model, target = fitted(problem, measured, effort="quick")
    kind, shown = model.target_type, model.predict_proba(target)
    truth = kind.read(problem.truth)
    risks = kind.risks(shown, truth, np.ones(len(truth)))
    return risks, kind.row_losses(shown, truth), (shown.argmax(1) == truth).astype(float)


def run(name: str, problem: PanelProblem) -> dict[str, Any]:
    """Return promises and truths of a problem."""
    started = time.perf_counter()
    model, target = fitted(problem, [], value_of_missing=True, effort="quick")
    seconds = time.perf_counter() - started
    before, costs, right = asked(problem, [])
    facts = model.metrics["value_of_measuring"]
    missing = [column.name for column in model.schema.missing]
    sets, tenth = [], {}
    for each in model.value_of_measuring():
        columns = each["columns"]
        if len(columns) == 1 and len(missing) > MOST_TRUE:
            continue
        after, fallen, now_right = asked(problem, columns)
        true = {measure: before[measure] - after[measure] for measure in before}
        sets.append({"columns": columns, "promised": each["gains"], "true": true})
        if len(columns) == len(missing):
            promised = model.value_by_row_of(target)
            best = np.argsort(-promised)[: max(1, len(target) // 10)]
            for measure, gain in (("nats", costs - fallen), ("right", now_right - right)):
                error = float(gain.std() / np.sqrt(len(gain)))
                tenth[measure] = [float(gain[best].mean()), float(gain.mean()), error]
    return {
        "name": name,
        "seconds": round(seconds, 1),
        "rows": facts["rows"],
        "overlap": facts["overlap"],
        "tenth": tenth,
        "sets": sets,
    }


def lines(output: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.read_text().splitlines()] if output.exists() else []


def table(found: list[dict[str, Any]]) -> str:
    """Return how promises and truths go together, measure by measure."""
    rows = [
        "| | sets | rank correlation | of gains above 0.01 | intervals hold |",
        "|---" * 5 + "|",
    ]
    for measure in ("cross_entropy", "auc", "accuracy"):
        pairs = [(s["promised"][measure], s["true"][measure]) for f in found for s in f["sets"]]
        promised, true = (np.array(each) for each in zip(*pairs, strict=True))
        held = (promised[:, 1] <= true) & (true <= promised[:, 2])
        large = (np.abs(promised[:, 0]) > LARGE) | (np.abs(true) > LARGE)
        ranks = [spearmanr(promised[some, 0], true[some]).statistic for some in (true < 9, large)]
        cells = [len(true), *(f"{rank:.2f}" for rank in ranks), f"{held.mean():.0%}"]
        rows.append(f"| {measure} | " + " | ".join(map(str, cells)) + " |")
    for measure, words in (("nats", "nats"), ("right", "answers put right")):
        own = [each["tenth"][measure] for each in found if each["tenth"]]
        clear = [named / every for named, every, error in own if every > CLEAR * error]
        if not clear:
            continue
        rows += [
            "",
            f"In {words}, the tenth of rows that is named gains {np.mean(clear):.1f} times what a "
            f"random tenth gains, in the median problem {np.median(clear):.1f} times ({len(clear)} "
            "problems in which measuring everything gains clearly).",
        ]
    return "\n".join(rows)


def draw(line: dict[str, Any], path: Path) -> None:
    """Draw what measuring each column is promised to bring, with its interval, and the truth."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    sets = sorted(line["sets"], key=lambda each: each["promised"]["auc"][0])
    names = [", ".join(s["columns"]) if len(s["columns"]) < 3 else "all" for s in sets]
    promised = 100.0 * np.array([each["promised"]["auc"] for each in sets])
    true = 100.0 * np.array([each["true"]["auc"] for each in sets])
    figure, axes = pyplot.subplots(figsize=(6.4, 3.4), layout="constrained")
    places, (value, low, high) = np.arange(len(sets)), promised.T
    axes.axvline(0.0, color="0.8")
    axes.errorbar(value, places, xerr=(value - low, high - value), fmt="o", label="promised, 90 %")
    axes.plot(true, places, "kx", label="true")
    axes.set_yticks(places, names)
    axes.set_xlabel("points of AUC that measuring it on the target brings")
    axes.legend(loc="lower right")
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, help="log, a problem on a line")
    parser.add_argument("--evaluation", action="store_true", help="the problems looked at once")
    parser.add_argument("--problems", nargs="+", help="some of them")
    parser.add_argument("--table", action="store_true", help="print what is there")
    parser.add_argument("--picture", type=Path, help="draw NHANES, which the log must hold")
    given = parser.parse_args()
    if given.picture:
        draw(next(each for each in lines(given.output) if each["name"] == "NHANES"), given.picture)
        return
    if given.table:
        for name, chosen in (("development", False), ("evaluation", True)):
            own = [line for line in lines(given.output) if line["evaluation"] == chosen]
            covered = [line for line in own if line["overlap"] >= ENOUGH_OVERLAP]
            for words, some in (("all", own), ("where source rows cover the target", covered)):
                if some:
                    print(f"{name}, {words}: {len(some)} problems\n\n{table(some)}\n")
        return
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    done = {line["name"] for line in lines(given.output)}
    for name, problem in problems(given.evaluation):
        if name in done or (given.problems and name not in given.problems):
            continue
        try:
            line = run(name, problem) | {"evaluation": given.evaluation}
        except HalfseenError as error:
            print(name, error, flush=True)
            continue
        with given.output.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(name, line["seconds"], line["tenth"], flush=True)


if __name__ == "__main__":
    main()
