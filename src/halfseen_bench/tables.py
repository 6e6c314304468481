"""Rows of results: mean and standard deviation over seeds, the choice of epoch stated."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scipy import stats

from halfseen_bench.metrics import METRICS
from halfseen_bench.models import Record

__all__ = ["ResultCell", "Row", "paired_difference", "summarize"]


@dataclass(frozen=True)
class ResultCell:
    """Mean and standard deviation of some runs, as printed (in percent where it is a share)."""

    mean: float
    deviation: float
    runs: int
    decimals: int = 1

    def __str__(self) -> str:
        mean = f"{self.mean:.{self.decimals}f}"
        return mean if self.runs == 1 else f"{mean} ± {self.deviation:.{self.decimals}f}"

    @property
    def interval(self) -> tuple[float, float] | None:
        """Student's 95 % interval of the mean, where there are two runs or more.

        Examples
        --------
        >>> low, high = ResultCell(1.0, 1.0, 4).interval
        >>> round(low, 3), round(high, 3)
        (-0.591, 2.591)
        """
        if self.runs < 2:
            return None
        reach = float(stats.t.ppf(0.975, self.runs - 1)) * self.deviation / self.runs**0.5
        return self.mean - reach, self.mean + reach


@dataclass(frozen=True)
class Row:
    """One model in a table: a cell per choice of epoch."""

    model: str
    divergence: str | None
    refined: bool
    cells: dict[str, ResultCell]
    variant: str = ""
    uses_target_labels: bool = False

    @property
    def key(self) -> RowKey:
        """What tells it from the other rows."""
        return self.model, self.divergence, self.refined, self.variant

    @property
    def label(self) -> str:
        """The model's name, with the variant and the refinement marked."""
        return label_of(self.key)

    @property
    def is_yardstick(self) -> bool:
        """Whether it is shown what no user has: the target's missing inputs, or its labels."""
        return self.uses_target_labels or "Full" in self.model


RowKey = tuple[str, str | None, bool, str]


def summarize(records: Iterable[Record], metric: str = "accuracy") -> list[Row]:
    """Return one row per model, divergence, refinement and variant, in order of appearance.

    Examples
    --------
    >>> runs = [{"model": "A", "divergence": None, "refined": False, "seed": s,
    ...          "epoch_choice": "last", "accuracy": a} for s, a in enumerate([0.5, 0.7])]
    >>> str(summarize(runs)[0].cells["last"])
    '60.0 ± 14.1'
    """
    grouped: dict[RowKey, dict[str, list[float]]] = {}
    with_labels = set()
    for record in records:
        key = row_key(record)
        cells = grouped.setdefault(key, {})
        if record.get(metric) is not None:
            cells.setdefault(record["epoch_choice"], []).append(record[metric])
        if record.get("uses_target_labels"):
            with_labels.add(key)
    return [
        Row(
            model,
            divergence,
            refined,
            {choice: _cell(values, metric) for choice, values in cells.items()},
            variant,
            (model, divergence, refined, variant) in with_labels,
        )
        for (model, divergence, refined, variant), cells in grouped.items()
    ]


def label_of(key: RowKey) -> str:
    """Return a model's name, with the variant and the refinement marked."""
    model, _, refined, variant = key
    name = f"{model} ({variant})" if variant else model
    return f"{name} + refinement" if refined else name


def row_key(record: Record) -> RowKey:
    """Return what tells the rows of a table apart."""
    return record["model"], record["divergence"], record["refined"], record.get("variant", "")


def paired_difference(
    records: Iterable[Record],
    first: str,
    second: str,
    *,
    refined: bool = False,
    metric: str = "accuracy",
) -> ResultCell | None:
    """Return the difference of two models at the last epoch, seed by seed."""
    records = list(records)

    def by_seed(model: str) -> dict[int, float]:
        return values_by_seed(
            (r for r in records if r["model"] == model and r["refined"] == refined), metric
        )

    return difference(by_seed(first), by_seed(second), metric)


def values_by_seed(
    records: Iterable[Record], metric: str, choice: str = "last"
) -> dict[int, float]:
    """Return the metric of each seed's run at one choice of epoch."""
    return {
        record["seed"]: record[metric]
        for record in records
        if record["epoch_choice"] == choice and record.get(metric) is not None
    }


def difference(one: dict[int, float], other: dict[int, float], metric: str) -> ResultCell | None:
    """Return the differences of the seeds that both have, or None if there is none."""
    shared = sorted(one.keys() & other.keys())
    return _cell([one[seed] - other[seed] for seed in shared], metric) if shared else None


def _cell(values: Sequence[float], metric: str) -> ResultCell:
    printed = METRICS[metric]
    scaled = [printed.scale * value for value in values]
    deviation = statistics.stdev(scaled) if len(scaled) > 1 else 0.0
    return ResultCell(statistics.mean(scaled), deviation, len(scaled), printed.decimals)
