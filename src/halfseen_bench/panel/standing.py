"""The panel's results as one table: each score, and how each method stands among the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata

from halfseen_bench.panel.methods import BASELINES
from halfseen_bench.panel.problems import metric_of


def panel_table(records: Sequence[dict[str, Any]]) -> str:
    """Return the score that counts, cross-entropy, ranks and means, as Markdown.

    Methods that were not run on every problem stand outside of the means.
    """
    problems = list(dict.fromkeys(r["problem"] for r in records))
    methods = list(dict.fromkeys(r["method"] for r in records))

    def mean(problem: str, method: str, key: str) -> float:
        found = [r[key] for r in records if (r["problem"], r["method"]) == (problem, method)]
        return float(np.mean(found)) if found else np.nan

    scores = np.array([[100 * mean(p, m, metric_of(p)) for p in problems] for m in methods])
    losses = np.array([[mean(p, m, "cross_entropy") for p in problems] for m in methods])
    lines = [["problem", *methods], ["---"] * (len(methods) + 1)]
    for column, problem in enumerate(problems):
        pairs = zip(scores[:, column], losses[:, column], strict=True)
        cells = ["–" if np.isnan(s) else f"{s:.1f} ({loss:.3f})" for s, loss in pairs]
        lines.append([problem, *cells])
    behind = scores - scores[[method in BASELINES for method in methods]].max(axis=0)
    ranks = np.full_like(scores, np.nan)
    whole = ~np.isnan(scores).any(axis=1)
    ranks[whole] = rankdata(-scores[whole], axis=0)
    for title, values, digits in (
        ("mean rank", ranks.mean(axis=1), 1),
        ("mean score", scores.mean(axis=1), 1),
        ("below the best baseline of each problem, mean", behind.mean(axis=1), 1),
        ("the same, worst", behind.min(axis=1), 1),
        ("mean cross-entropy", losses.mean(axis=1), 3),
    ):
        lines.append([title, *("–" if np.isnan(v) else f"{v:.{digits}f}" for v in values)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
