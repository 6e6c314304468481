"""The panel's results as one table: each score, and how each method stands among the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from halfseen_bench.panel.methods import BASELINES
from halfseen_bench.panel.problems import metric_of


def panel_table(records: Sequence[dict[str, Any]]) -> str:
    """Return the score that counts, cross-entropy, ranks and means, as Markdown.

    Methods that were not run on every problem stand outside of the means.
    """
    frame = pd.DataFrame(records)
    frame["score"] = [100 * record[metric_of(record["problem"])] for record in records]
    scores, losses = (
        frame.pivot_table(values, "problem", "method", sort=False)
        for values in ("score", "cross_entropy")
    )
    texts = scores.map("{:.1f}".format) + losses.map(" ({:.3f})".format)
    lines = [["problem", *scores], ["---"] * (scores.shape[1] + 1)]
    lines += texts.where(scores.notna(), "–").reset_index().to_numpy().tolist()
    best = scores[[name for name in scores if name in BASELINES]].max(axis=1, skipna=False)
    behind = scores.sub(best, axis=0)
    ranks = scores.dropna(axis=1).rank(axis=1, ascending=False).mean().reindex(scores.columns)
    for title, values, digits in (
        ("mean rank", ranks, 1),
        ("mean score", scores.mean(skipna=False), 1),
        ("below the best baseline of each problem, mean", behind.mean(skipna=False), 1),
        ("the same, worst", behind.min(skipna=False), 1),
        ("mean cross-entropy", losses.mean(skipna=False), 3),
    ):
        lines.append([title, *("–" if pd.isna(v) else f"{v:.{digits}f}" for v in values)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
