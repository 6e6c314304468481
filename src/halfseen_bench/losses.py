"""The losses at the end of training: what a user can see without a label."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from halfseen_bench.cells import NONE, Setting, some_tables, stated
from halfseen_bench.rendering import ResultTable, Text
from halfseen_bench.runner import Result
from halfseen_bench.tables import ResultCell, RowKey, label_of, row_key

__all__ = ["loss_tables"]

LOSSES = {
    "adaptation": "L1",
    "imputation": "divergence in L2",
    "reconstruction": "MSE in L2",
    "classification": "L3",
}
NOTES = (
    "Mean ± standard deviation over the runs, at the last epoch of the joint phase, before "
    "weights. Where the divergence is adversarial, L1 and the divergence in L2 are the loss of a "
    "critic: 1.386 where it cannot tell its two sides apart, less where it can. Transport is a "
    "distance, on a scale of its own.",
)


def loss_tables(results: Sequence[Result]) -> list[ResultTable]:
    """Return a table per setting: a row per model that adapts, a column per loss."""
    settings: dict[Setting, dict[RowKey, list[dict[str, float]]]] = {}
    for result in results:
        joint = [epoch for epoch in result.get("history", ()) if epoch["phase"] == "joint"]
        if joint and "adaptation" in joint[-1]:
            first = result["records"][0]
            rows = settings.setdefault(Setting.of(first), {})
            rows.setdefault(row_key(first | {"refined": False}), []).append(joint[-1])
    columns = ("model", "divergence", *LOSSES.values(), "runs")
    return some_tables(
        [
            ResultTable(
                f"{setting.title}: losses",
                columns,
                tuple(_line(key, epochs) for key, epochs in rows.items()),
                (*NOTES, stated(setting)),
            )
            for setting, rows in settings.items()
        ]
    )


def _line(key: RowKey, epochs: Sequence[dict[str, float]]) -> tuple[Text, ...]:
    means = [_mean([epoch[name] for epoch in epochs if name in epoch]) for name in LOSSES]
    return Text(label_of(key)), Text(key[1] or "–"), *means, Text(str(len(epochs)))


def _mean(values: Sequence[float]) -> Text:
    if not values:
        return NONE
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return Text(str(ResultCell(statistics.mean(values), deviation, len(values), decimals=3)))
