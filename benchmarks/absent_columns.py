"""One column, or three, gone after the fit: the model that was fitted with them beside a fresh fit.

Columns are drawn at random from the observed ones of the panel's development problems. `cells` are
a fifth of all cells of the target emptied at random, filled or left to medians. Finished problems
are kept in the log.

    HALFSEEN_DATA=... python benchmarks/absent_columns.py --output log.jsonl
    HALFSEEN_DATA=... python benchmarks/absent_columns.py --output log.jsonl --table
"""

from __future__ import annotations

import argparse
import json
import warnings
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from halfseen import HalfSeenClassifier
from halfseen.metrics import accuracy, auc, row_losses
from halfseen_bench.panel.problems import DEVELOPMENT, PanelProblem, metric_of

EMPTIED = 0.2


def scored(name: str, shown: Any, truth: Any) -> list[float]:
    """Return the AUC or accuracy in points, and the cross-entropy."""
    right = accuracy(shown, truth) if metric_of(name) == "accuracy" else auc(shown, truth) or 0.0
    return [100.0 * right, float(row_losses(shown, truth).mean())]


def run(name: str, problem: PanelProblem) -> dict[str, Any]:
    random = np.random.default_rng(zlib.crc32(name.encode()))
    target, order = problem.target, random.permutation(problem.target.columns)
    truth = np.searchsorted(np.unique(problem.labels), problem.truth)

    def fitted(rows: pd.DataFrame) -> Any:
        model = HalfSeenClassifier(random_state=0)
        return model.fit(problem.source, problem.labels, X_target=rows).model_

    model = fitted(target)
    line: dict[str, Any] = {"name": name, "all": scored(name, model.predict_proba(target), truth)}
    for count in (1, 3):
        rows = target.drop(columns=list(order[:count]))
        if rows.shape[1] > 1:
            answers = {
                "filled": model.predict_proba(rows),
                "fresh": fitted(rows).predict_proba(rows),
            }
            line[f"{count}"] = {n: scored(name, shown, truth) for n, shown in answers.items()}
    emptied = target.mask(random.random(target.shape) < EMPTIED)
    line["cells"] = {"filled": scored(name, model.predict_proba(emptied), truth)}
    model.preprocessor = replace(model.preprocessor, gaps=None)
    line["cells"]["fresh"] = scored(name, model.predict_proba(emptied), truth)
    return line


def table(found: list[dict[str, Any]]) -> str:
    rows = ["| gone | problems | AUC or accuracy | cross-entropy | worst |", "|---" * 5 + "|"]
    for key, words in (
        ("1", "one column, less a fresh fit"),
        ("3", "three columns, less a fresh fit"),
        ("cells", "a fifth of the cells, less medians"),
    ):
        each = [line[key] for line in found if key in line]
        gap = np.array([np.subtract(one["filled"], one["fresh"]) for one in each])
        cells = (f"{gap[:, 0].mean():+.2f}", f"{gap[:, 1].mean():+.3f}", f"{gap[:, 0].min():+.2f}")
        rows.append(f"| {words} | {len(each)} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, help="log, a problem on a line")
    parser.add_argument("--problems", nargs="+", default=list(DEVELOPMENT))
    parser.add_argument("--table", action="store_true", help="print what is there")
    given = parser.parse_args()
    known = given.output.read_text().splitlines() if given.output.exists() else []
    done = [json.loads(line) for line in known]
    if given.table:
        print(table(done))
        return
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for name in given.problems:
        if name not in {line["name"] for line in done}:
            line = run(name, DEVELOPMENT[name](0))
            with given.output.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
