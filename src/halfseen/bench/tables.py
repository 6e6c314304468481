"""Tables of results: mean and standard deviation over seeds, the choice of epoch stated."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from halfseen.bench.models import Record

__all__ = ["Cell", "Row", "paired_difference", "summarize"]


@dataclass(frozen=True)
class Cell:
    """Mean and standard deviation of some runs, in percent."""

    mean: float
    deviation: float
    runs: int

    def __str__(self) -> str:
        return f"{self.mean:.1f} ± {self.deviation:.1f}"


@dataclass(frozen=True)
class Row:
    """One model in a table: a cell per choice of epoch."""

    model: str
    divergence: str | None
    refined: bool
    cells: dict[str, Cell]

    @property
    def label(self) -> str:
        """The model's name, with the refinement marked."""
        return f"{self.model} + refinement" if self.refined else self.model


def summarize(records: Sequence[Record], metric: str = "accuracy") -> list[Row]:
    """Return one row per model, in the order of its first record.

    Examples
    --------
    >>> runs = [{"model": "A", "divergence": None, "refined": False, "seed": s,
    ...          "epoch_choice": "last", "accuracy": a} for s, a in enumerate([0.5, 0.7])]
    >>> str(summarize(runs)[0].cells["last"])
    '60.0 ± 14.1'
    """
    grouped: dict[tuple[str, str | None, bool], dict[str, list[float]]] = {}
    for record in records:
        key = (record["model"], record["divergence"], record["refined"])
        cells = grouped.setdefault(key, {})
        cells.setdefault(record["epoch_choice"], []).append(100.0 * record[metric])
    return [
        Row(*key, {choice: _cell(values) for choice, values in cells.items()})
        for key, cells in grouped.items()
    ]


def paired_difference(
    records: Sequence[Record], first: str, second: str, *, refined: bool = False
) -> Cell | None:
    """Return the difference of two models at the last epoch, seed by seed, in points."""

    def by_seed(model: str) -> dict[int, float]:
        return {
            record["seed"]: 100.0 * record["accuracy"]
            for record in records
            if record["model"] == model
            and record["refined"] == refined
            and record["epoch_choice"] == "last"
        }

    one, other = by_seed(first), by_seed(second)
    shared = sorted(one.keys() & other.keys())
    return _cell([one[seed] - other[seed] for seed in shared]) if shared else None


def _cell(values: Sequence[float]) -> Cell:
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return Cell(statistics.mean(values), deviation, len(values))
