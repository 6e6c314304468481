"""What a few labelled target rows bring, measured on the other target rows.

    HALFSEEN_DATA=... python benchmarks/target_labels.py --effort quick --draws 3

Development problems of the table panel. A model is fitted once without labels; the same rows are
then drawn at random, with their labels, for each number and draw.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from halfseen.data.frames import infer_frames, label_column, read_frame
from halfseen.fitting.pipeline import fit_tables
from halfseen.members import Sample
from halfseen.metrics import accuracy, auc, row_losses
from halfseen.settings import FitSettings
from halfseen_bench.panel.problems import DEVELOPMENT, metric_of

PROBLEMS = ("heart, Hungarian", "bank", "gas 1+2 to 6")
COUNTS = (10, 30, 100)


def measured(problem: str, effort: str, draws: int) -> None:
    source, labels, target, truth = DEVELOPMENT[problem](0)
    score = auc if metric_of(problem) == "auc" else accuracy
    table = read_frame(source, "the source")
    found = infer_frames(
        table, label_column(labels, len(table))[1], read_frame(target, "the target"), keep=None
    )
    fit = fit_tables(found, FitSettings(effort=effort))
    rows, y = fit.rows.target, fit.model.positions(truth)
    for count in COUNTS:
        lines = []
        for draw in range(draws):
            dealt = np.random.default_rng([count, draw]).permutation(len(rows))
            known, rest = np.split(dealt, [count])
            model = fit.with_labels(fit.model, Sample(rows[known], y[known]))
            told = model.metrics["target_labels"]
            told_loss = told["losses"][told["used_for"]]
            answers = [each.score(rows[rest]) for each in (fit.model, model)]
            values = [
                f(p, y[rest]) for p in answers for f in (score, lambda *a: row_losses(*a).mean())
            ]
            lines.append([*values, told_loss])
            print("#", problem, count, draw, told["used_for"], np.round(lines[-1], 4), flush=True)
        before, loss_before, after, loss_after, said = np.mean(lines, axis=0)
        print(
            f"| {problem} | {count} | {100 * before:.1f} | {100 * after:.1f} | {loss_before:.3f} | "
            f"{loss_after:.3f} | {said:.3f} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--effort", default="quick")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--problems", nargs="*", default=PROBLEMS)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for problem in given.problems:
        measured(problem, given.effort, given.draws)


if __name__ == "__main__":
    main()
