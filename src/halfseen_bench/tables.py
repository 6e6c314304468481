"""Rows of results: one metric of some runs, each with its seed, the choice of epoch stated."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from scipy import stats

from halfseen_bench.metrics import METRICS, Metric
from halfseen_bench.models import Record
from halfseen_bench.rendering import Best


@dataclass(frozen=True)
class ResultCell:
    """One metric of some runs, each with its seed; printed in percent where it is a share."""

    metric: Metric
    values: tuple[tuple[int, float], ...]

    @property
    def runs(self) -> int:
        """How many they are."""
        return len(self.values)

    @property
    def mean(self) -> float:
        """Their mean, as printed."""
        return statistics.mean(self.metric.scale * value for _, value in self.values)

    @property
    def deviation(self) -> float:
        """Their standard deviation, as printed."""
        values = [self.metric.scale * value for _, value in self.values]
        return statistics.stdev(values) if len(values) > 1 else 0.0

    def __str__(self) -> str:
        digits = self.metric.decimals
        mean = f"{self.mean:.{digits}f}"
        return mean if self.runs == 1 else f"{mean} ± {self.deviation:.{digits}f}"

    def minus(self, other: ResultCell) -> ResultCell | None:
        """Return the differences of the seeds that both have, or None if there is none."""
        known = dict(other.values)
        shared = tuple((s, v - known[s]) for s, v in sorted(self.values) if s in known)
        return ResultCell(self.metric, shared) if shared else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Student's 95 % interval of the mean, where there are two runs or more."""
        if self.runs < 2:
            return None
        reach = float(stats.t.ppf(0.975, self.runs - 1)) * self.deviation / self.runs**0.5
        return self.mean - reach, self.mean + reach

    def as_difference(self) -> tuple[str, str]:
        """Return mean, bold where the interval leaves no doubt of its sign, and interval."""
        mean = signed(self.mean, self.metric)
        if self.interval is None:
            return mean, "–"
        low, high = self.interval
        words = f"{signed(low, self.metric)} to {signed(high, self.metric)}"
        return (Best(mean) if low > 0 or high < 0 else mean), words


class RowKey(NamedTuple):
    """What tells the rows of a table apart."""

    model: str
    divergence: str | None
    refined: bool = False
    variant: str = ""

    @classmethod
    def of(cls, record: Record) -> RowKey:
        """Return a record's row."""
        words = record["model"], record["divergence"], record["refined"]
        return cls(*words, record.get("variant", ""))

    @property
    def label(self) -> str:
        """The model's name, with the variant and the refinement marked."""
        name = f"{self.model} ({self.variant})" if self.variant else self.model
        return f"{name} + refinement" if self.refined else name


class Setting(NamedTuple):
    """What all runs of one table share."""

    pair: str
    layout: str
    source_rows: int
    budget: str
    preset: str

    @classmethod
    def of(cls, record: Record) -> Setting:
        """Return a record's setting."""
        return cls(*(record[name] for name in cls._fields))

    @property
    def title(self) -> str:
        """The problem, and how many source rows were learned from."""
        return f"{self.pair}, {self.source_rows:,} source rows"

    @property
    def stated(self) -> str:
        """What was missing, and how the runs were made."""
        return f"Missing: {self.layout} Budget {self.budget}, preset {self.preset}."


Rows = dict[RowKey, dict[str, ResultCell]]
"""A cell per choice of epoch."""


def by_setting(records: Iterable[Record]) -> dict[Setting, list[Record]]:
    """Return the records of each setting, in order of appearance."""
    found: dict[Setting, list[Record]] = {}
    for record in records:
        found.setdefault(Setting.of(record), []).append(record)
    return found


def summarize(records: Iterable[Record], metric: str = "accuracy") -> Rows:
    """Return one row per model, divergence, refinement and variant, in order of appearance."""
    found: dict[RowKey, dict[str, list[tuple[int, float]]]] = {}
    for record in records:
        choices = found.setdefault(RowKey.of(record), {})
        if record.get(metric) is not None:
            choices.setdefault(record["epoch_choice"], []).append((record["seed"], record[metric]))
    return {
        key: {name: ResultCell(METRICS[metric], tuple(v)) for name, v in choices.items()}
        for key, choices in found.items()
    }


def paired_difference(
    records: Sequence[Record], first: str, second: str, metric: str = "accuracy"
) -> ResultCell | None:
    """Return the difference of two unrefined models at the last epoch, seed by seed."""
    rows = summarize([r for r in records if not r["refined"]], metric).items()
    one, other = (
        next((c["last"] for key, c in rows if key.model == name and "last" in c), None)
        for name in (first, second)
    )
    return None if one is None or other is None else one.minus(other)


def yardsticks(records: Iterable[Record]) -> set[RowKey]:
    """Return rows that are shown what no user has: the target's missing inputs, or its labels."""
    return {RowKey.of(r) for r in records if r.get("uses_target_labels") or "Full" in r["model"]}


def choices_of(rows: Iterable[Mapping[str, object]]) -> list[str]:
    """Return the choices of epoch: last first, then label-free ones, the oracle at the end."""
    found = dict.fromkeys(choice for cells in rows for choice in cells)
    middle = [choice for choice in found if choice not in ("last", "oracle")]
    return [c for c in ("last", *middle, "oracle") if c in found]


def signed(value: float, metric: Metric) -> str:
    """Return a number with its sign."""
    return f"{value:+.{metric.decimals}f}".replace("-", "−")
