"""What a few labelled target rows bring, measured on the other target rows.

    HALFSEEN_DATA=... python benchmarks/target_labels.py --effort quick --draws 3

Development problems of the table panel. The same rows are drawn at random for each number and
draw; a model is fitted without their labels, and one with them.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from halfseen import HalfSeenClassifier
from halfseen.metrics import accuracy, auc, row_losses
from halfseen_bench.panel.problems import DEVELOPMENT, metric_of

PROBLEMS = ("heart, Hungarian", "bank", "gas 1+2 to 6")
COUNTS = (10, 30, 100)


def measured(problem: str, effort: str, draws: int) -> None:
    source, labels, target, truth = DEVELOPMENT[problem](0)[:4]
    score = auc if metric_of(problem) == "auc" else accuracy

    def fitted(known: np.ndarray) -> tuple[np.ndarray, HalfSeenClassifier]:
        given = np.full(len(target), np.nan)
        given[known] = truth[known]
        model = HalfSeenClassifier(effort=effort, random_state=0)
        model.fit(source, labels, X_target=target, y_target=given if len(known) else None)
        return model.predict_proba(target), model

    without, _ = fitted(np.array([], dtype=int))
    for count in COUNTS:
        lines = []
        for draw in range(draws):
            dealt = np.random.default_rng([count, draw]).permutation(len(target))
            known, rest = np.split(dealt, [count])
            if not len(rest):
                continue
            answer, model = fitted(known)
            told = model.model_.metrics["target_labels"]
            values = [
                f(p[rest], truth[rest])
                for p in (without, answer)
                for f in (score, lambda *a: row_losses(*a).mean())
            ]
            lines.append([*values, told["losses"][told["used_for"]]])
            print("#", problem, count, draw, told["used_for"], np.round(lines[-1], 4), flush=True)
        if lines:
            before, loss_before, after, loss_after, said = np.mean(lines, axis=0)
            print(
                f"| {problem} | {count} | {100 * before:.1f} | {100 * after:.1f} | "
                f"{loss_before:.3f} | {loss_after:.3f} | {said:.3f} |",
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
