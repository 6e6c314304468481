"""What a rehearsal found, and what to make of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from halfseen.evidence.carving import Carving


@dataclass(frozen=True)
class RehearsedRun:
    """One model with one seed: how it did on the slice, and what the scores said before."""

    model: str
    seed: int
    measured: dict[str, float | None]
    scores: dict[str, float]


@dataclass(frozen=True)
class RehearsedChoice:
    """What one label-free score would have chosen."""

    score: str
    model: str
    """The model that it prefers, by its mean over the seeds."""
    lost: float
    """Cross-entropy of that model on the slice, above the best model's."""


@dataclass(frozen=True)
class Rehearsal:
    """What a rehearsal found."""

    carving: Carving
    """The slice, and how its shift compares with the true one."""
    runs: tuple[RehearsedRun, ...]
    """Every model with every seed."""
    choices: tuple[RehearsedChoice, ...]
    """What each score would have chosen, the best first."""
    site: str = ""
    """The source site that played the target, where it was one of several."""

    def mean(self, model: str, metric: str) -> float:
        """Return a model's mean on the slice over the seeds; NaN where it is not defined."""
        return float(np.mean(self._values(model, metric)))

    def deviation(self, model: str, metric: str = "cross_entropy") -> float:
        """Return the standard deviation over the seeds; NaN for a single one."""
        values = self._values(model, metric)
        return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")

    def _values(self, model: str, metric: str) -> list[float]:
        values = [run.measured[metric] for run in self.runs if run.model == model]
        return [float("nan") if value is None else value for value in values]

    @property
    def models(self) -> tuple[str, ...]:
        """The models, the lowest cross-entropy first."""
        names = dict.fromkeys(run.model for run in self.runs)
        return tuple(sorted(names, key=lambda name: self.mean(name, "cross_entropy")))

    @property
    def verdict(self) -> str:
        """Which model and which score would have won, in sentences."""
        best, second, gap = self._lead()
        least = min(choice.lost for choice in self.choices)
        right = [choice.score for choice in self.choices if choice.lost <= least]
        found = (
            f"choosing by {', '.join(right)} would have found it"
            if least == 0
            else f"no score would have found it, and {', '.join(right)} would have lost the "
            f"least, {least:.4f}"
        )
        return (
            f"{best} would have won on the slice, {gap:.4f} in cross-entropy ahead of {second}; "
            f"{found}."
        )

    @property
    def trust(self) -> str:
        """How far to trust the verdict, in sentences."""
        best, second, gap = self._lead()
        noise = np.nanmax([0.0, self.deviation(best), self.deviation(second)])
        wanted, obtained = self.carving.wanted.auc, self.carving.obtained.auc
        seeds = len({run.seed for run in self.runs})
        parts = []
        if seeds < 2:
            parts.append("One seed does not tell how much of the lead is chance.")
        elif gap < 2 * noise:
            parts.append(
                f"The lead is within twice the standard deviation over {seeds} seeds "
                f"({noise:.4f}): take the two as equal."
            )
        if abs(wanted - obtained) > 0.05:
            word = "smaller" if obtained < wanted else "larger"
            parts.append(
                f"The rehearsed shift is {word} than the true one (AUC {obtained:.2f} against "
                f"{wanted:.2f})."
            )
        if self.site:
            parts.append(
                f"{self.site} is another site: what differs between your sites is in these "
                "figures; what is new on the target is not."
            )
            return " ".join(parts)
        parts.append(
            "The slice comes from the source: that the missing block or the classes follow from "
            "the observed columns in another way on the target cannot be seen here."
        )
        return " ".join(parts)

    def _lead(self) -> tuple[str, str, float]:
        """Return the best model, the second, and how far it is behind in cross-entropy."""
        best, second = self.models[:2]
        return best, second, self.mean(second, "cross_entropy") - self.mean(best, "cross_entropy")

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the slice's rows, as data."""
        carving = self.carving
        return {
            "rows": {"slice": int(carving.chosen.sum()), "rest": int((~carving.chosen).sum())},
            "separation": {"target": asdict(carving.wanted), "slice": asdict(carving.obtained)},
            "runs": [asdict(run) for run in self.runs],
            "choices": [asdict(choice) for choice in self.choices],
            "verdict": self.verdict,
            "trust": self.trust,
        }
