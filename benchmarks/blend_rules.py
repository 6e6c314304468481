"""When may the networks speak beside logistic regression: rules for the blend, rehearsed.

``HALFSEEN_DATA=... python benchmarks/blend_rules.py --output rules.jsonl`` takes labelled sources
alone: the source rows that look most like a target play it, without label and missing block, and
the rest is fitted as ``halfseen fit`` does. One fit serves every rule, since a rule only sets the
two weights, from the same held-out rows. No target label is read. A stopped run
continues; ``--table`` prints what is there.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.model_selection import train_test_split
from tables_beside import CATEGORICAL, export

from halfseen.evidence.carving import carve_pseudo_target
from halfseen.front.files import open_table
from halfseen.front.inference import Understanding, understand
from halfseen.front.roles import Roles
from halfseen.front.streaming import RowStream
from halfseen.metrics import metrics_of
from halfseen.model.fitting import fit_tables
from halfseen.model.settings import FitSettings
from halfseen.weights.combining import Weights, fit_weights

PROBLEMS = {
    ("heart", "cleveland:hungarian"): (60, 120, 200),
    ("heart", "cleveland:switzerland"): (60, 120, 200),
    ("heart", "cleveland:va"): (60, 120, 200),
    ("amazon", "dvd:electronics"): (100, 300, 900),
    ("amazon", "books:kitchen"): (100, 300, 900),
    ("amazon", "kitchen:dvd"): (100, 300),
    ("amazon", "electronics:books"): (100, 300),
    ("ads-sim", "retargeting:prospecting"): (300, 1000),
}
"""Pairs, of which only the source's labels are read, with the rows that are fitted on."""
SLICE = 1 / 3
MODEL = "Adaptation-Imputation"
METRICS = ("cross_entropy", "accuracy")


REGRESSION_ALONE = Weights((0.0, 1.0))
"""Members are networks and regression, in this order."""
Rule = Callable[[Sequence[Any], Any], Weights]
"""From what each member says of held-out rows, and their labels."""


def likeliest(answers: Sequence[Any], labels: Any) -> Weights:
    return Weights(fit_weights(answers, labels, REGRESSION_ALONE.members))


def gain(weights: Weights, answers: Sequence[Any], labels: Any) -> tuple[float, float]:
    """Return how much likelier held-out rows are than by the regression alone, and its error."""
    rows = np.arange(len(labels))
    alone = REGRESSION_ALONE.combined(answers)[rows, labels]
    more = weights.combined(answers)[rows, labels] - alone
    return float(more.mean()), float(more.std() / np.sqrt(len(more)))


def if_gain(errors: float) -> Rule:
    def rule(answers: Sequence[Any], labels: Any) -> Weights:
        weights = likeliest(answers, labels)
        mean, error = gain(weights, answers, labels)
        return weights if mean > errors * error else REGRESSION_ALONE

    return rule


RULES: dict[str, Rule] = {
    "regression alone": lambda *_: REGRESSION_ALONE,
    "networks alone": lambda *_: Weights((1.0, 0.0)),
    "half of each": lambda *_: Weights((0.5, 0.5)),
    "likeliest": likeliest,
    "likeliest, if it gains": if_gain(0.0),
    "likeliest, if it gains half a standard error": if_gain(0.5),
    "likeliest, if it gains a standard error": if_gain(1.0),
    "likeliest, if it gains two standard errors": if_gain(2.0),
}


def staged(folder: Path, name: str, size: int, seed: int) -> tuple[Understanding, pd.Series]:
    """Write rest and slice as two tables; return what is understood and the slice's labels."""
    source = pd.read_parquet(folder / "source.parquet")
    label = str(pd.read_parquet(folder / "target_labels.parquet").columns[0])
    roles = Roles(label, categorical=CATEGORICAL.get(name, ()))
    whole = understand(
        open_table(folder / "source.parquet"), open_table(folder / "target.parquet"), roles
    )
    assert isinstance(whole, Understanding), whole
    observed = list(whole.schema.blocks.observed)
    rows, _ = RowStream(whole.source.table, whole.schema, is_source=True).all()
    there, _ = RowStream(whole.target.table, whole.schema, is_source=False).all()
    few = np.random.default_rng(seed).permutation(len(rows))[:6000]
    carving = carve_pseudo_target(
        rows[few][:, observed], there[:6000, observed], share=SLICE, random_state=seed
    )
    rest, played = source.iloc[few[~carving.chosen]], source.iloc[few[carving.chosen]]
    if size < len(rest):
        rest, _ = train_test_split(rest, train_size=size, stratify=rest[label], random_state=seed)
    target = pd.read_parquet(folder / "target.parquet").columns
    paths = folder / "rest.parquet", folder / "slice.parquet"
    rest.to_parquet(paths[0], index=False)
    played[[c for c in target if c != label]].to_parquet(paths[1], index=False)
    found = understand(open_table(paths[0]), open_table(paths[1]), roles)
    assert isinstance(found, Understanding), found
    return found, played[label]


def rehearsed(found: Understanding, labels: pd.Series, seed: int) -> dict[str, dict[str, float]]:
    fit = fit_tables(found, FitSettings((MODEL,), seed=seed))
    model, held = fit.model, fit.chosen.held_out
    assert held is not None
    there, _ = RowStream(found.target.table, found.schema, is_source=False).all()
    classes = list(found.schema.classes)
    truth = np.array([classes.index(value) for value in labels])
    results: dict[str, dict[str, float]] = {}
    for name, rule in RULES.items():
        model.weights = rule(held.answers, held.labels)
        measured = metrics_of(model.score(there), truth)
        results[name] = {m: measured[m] for m in METRICS} | {"network": model.weights.members[0]}
    return results


def run(output: Path, seeds: int) -> None:
    done = lines(output)
    for (name, pair), sizes in PROBLEMS.items():
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            export(name, pair, folder)
            for size in sizes:
                for seed in range(seeds):
                    key = {"data": name, "pair": pair, "rows": size, "seed": seed}
                    if any(key.items() <= line.items() for line in done):
                        continue
                    found, labels = staged(folder, name, size, seed)
                    line = key | {"rules": rehearsed(found, labels, seed)}
                    with output.open("a") as file:
                        file.write(json.dumps(line) + "\n")
                    print(key, flush=True)


def lines(output: Path) -> list[dict[str, Any]]:
    if not output.is_file():
        return []
    return [json.loads(line) for line in output.read_text().splitlines()]


def table(found: list[dict[str, Any]]) -> str:
    """Return each rule's differences to the regression alone, by data set and over all of them."""
    kinds = list(dict.fromkeys(line["data"] for line in found))
    names = [f"{kind}, {metric}" for kind in kinds for metric in METRICS]
    shown = ["| rule | " + " | ".join(names) + " | worst cross-entropy | networks used |"]
    shown.append("|---|" + "---|" * (len(names) + 2))
    for rule in RULES:
        cells = []
        for kind in kinds:
            for metric in METRICS:
                more = differences([x for x in found if x["data"] == kind], rule, metric)
                error = more.std(ddof=1) / np.sqrt(len(more))
                digits = 4 if metric == "cross_entropy" else 2
                factor = 1 if metric == "cross_entropy" else 100
                cells.append(f"{factor * more.mean():+.{digits}f} ± {factor * error:.{digits}f}")
        worst = differences(found, rule, "cross_entropy").max()
        used = np.mean([line["rules"][rule]["network"] > 0 for line in found])
        shown.append(f"| {rule} | {' | '.join(cells)} | {worst:+.4f} | {used:.0%} |")
    return "\n".join(shown)


def differences(found: list[dict[str, Any]], rule: str, metric: str) -> Any:
    alone = "regression alone"
    return np.array([x["rules"][rule][metric] - x["rules"][alone][metric] for x in found])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--table", action="store_true", help="print, without fitting")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if not given.table:
        run(given.output, given.seeds)
    print(table(lines(given.output)))


if __name__ == "__main__":
    main()
