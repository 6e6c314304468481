"""What trees lose that learn from a sample of a table: held-out cross-entropy by rows.

    halfseen data export ads-sim retargeting:prospecting -o tables/ --set rows=1000000
    python benchmarks/sample_rows.py tables/source.parquet --label label

All columns are observed; categories become numbers. Boosted trees and the forest learn from the
first rows of a random order, and are measured on its last ones, apart and together (the mean of
their probabilities).
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss

from halfseen.blocks import Blocks
from halfseen.members import BoostedTreesLearner, ForestLearner, Sample, TrainingJob
from halfseen.targets import ClassTarget

HELD_OUT = 50_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path, help="Parquet, or CSV with semicolons")
    parser.add_argument("--label", required=True, help="a column of two classes")
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000, 60_000, 200_000])
    given = parser.parse_args()
    is_text = given.table.suffix == ".csv"
    table = pd.read_csv(given.table, sep=";") if is_text else pd.read_parquet(given.table)
    labels, classes = pd.factorize(table.pop(given.label), sort=True)
    numbers = [c if c.dtype.kind in "fiub" else pd.factorize(c)[0] for _, c in table.items()]
    inputs = np.column_stack(numbers).astype(np.float32)
    order = np.random.default_rng(0).permutation(len(inputs))
    held_out = order[-min(HELD_OUT, len(order) // 5) :]
    kind, blocks = ClassTarget.of(len(classes)), Blocks((inputs.shape[1],), ())
    for rows in given.rows:
        if rows > len(order) - len(held_out):
            break
        some = Sample(inputs[order[:rows]], labels[order[:rows]])
        said, seconds = {}, {}
        for learner in (BoostedTreesLearner(), ForestLearner()):
            begun = time.process_time()
            member = learner.fit(TrainingJob(blocks, kind, some, some.inputs, 0))
            seconds[learner.name] = round(time.process_time() - begun, 1)
            said[learner.name] = np.exp(member.raw_prediction(inputs[held_out]))
        said["together"] = np.mean(list(said.values()), axis=0)
        losses = {name: round(log_loss(labels[held_out], p), 4) for name, p in said.items()}
        print(json.dumps({"rows": rows, **losses, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
