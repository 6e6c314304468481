"""Four hospitals: any as the target, learned from one other or from all others together.

    HALFSEEN_DATA=... python benchmarks/hospitals.py --effort quick --seeds 3
    HALFSEEN_DATA=... python benchmarks/hospitals.py --evaluation --effort quick --seeds 3

Cleveland and the Hungarian hospital are development problems; Switzerland and VA are evaluation
problems, and every look at them is counted in docs/results/tables.md.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd

import halfseen
from halfseen.metrics import auc, row_losses
from halfseen_bench.data.catalog import data_folder
from halfseen_bench.data.heart import CODES, COLUMNS, read_hospital

HOSPITALS = ("cleveland", "hungarian", "switzerland", "va")
DEVELOPMENT, EVALUATION = ("cleveland", "hungarian"), ("switzerland", "va")
NOT_ASKED = ("exang", "oldpeak", "slope", "ca", "thal")
"""Columns that Cleveland is taken to lack as a target: the stress test and the images."""


def hospital(name: str) -> pd.DataFrame:
    inputs, labels = read_hospital(data_folder(None), name)
    table = pd.DataFrame(inputs.astype(float), columns=list(COLUMNS))
    for column in (name for name, codes in CODES.items() if codes is not None):
        table[column] = table[column].map(lambda v: None if np.isnan(v) else f"v{int(v)}")
    return table.assign(disease=labels)


def measured(target: str, sources: list[str], effort: str, seed: int) -> tuple[float, float]:
    tables = {name: hospital(name) for name in HOSPITALS}
    rows = tables[target]
    known = [c for c in COLUMNS if rows[c].isna().mean() < 0.5]
    if target == "cleveland":
        known = [column for column in known if column not in NOT_ASKED]
    shown = rows[known]
    given = [table.dropna(axis=1, how="all") for name, table in tables.items() if name in sources]
    model = halfseen.fit(
        given, shown, "disease", keep=known, effort=effort, seed=seed, report=False
    )
    probability, y = model.predict_proba(shown), rows.disease.to_numpy()
    return auc(probability, y) or 0.0, float(row_losses(probability, y).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--effort", default="quick")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--evaluation", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for target in EVALUATION if given.evaluation else DEVELOPMENT:
        others = [name for name in HOSPITALS if name != target]
        for sources in (others[:1], others):
            found = [measured(target, sources, given.effort, s) for s in range(given.seeds)]
            area, loss = np.mean(found, axis=0)
            print(
                f"| {target} | {', '.join(sources)} | {100 * area:.1f} | {loss:.3f} |", flush=True
            )


if __name__ == "__main__":
    main()
