"""An explanation as data, and as sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from halfseen.arrays import Floats, Integers
from halfseen.explain.reference_rows import ExpectedColumn

FAR = 2.0
"""Times the usual distance from which a row is called far from the source."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a model answers as it does about some rows.

    `contributions` are what each of the observed `columns` adds to the log-odds of a class, or to
    the amount, (rows, columns), beginning with `base`, those of typical rows. They speak of one
    class in each row (`spoken_of`): the positive one of two, or the predicted. `outside` names the
    columns whose value the source never had, or never as extreme; `distances` say how many times
    farther a row is from source rows than those are from each other. Without source rows there are
    no `distances` and no `missing`, which is what the missing columns would have held.
    """

    columns: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    class_names: tuple[str, ...]
    shown: Floats
    spoken_of: Integers
    base: Floats
    contributions: Floats
    errors: Floats
    outside: Sequence[tuple[str, ...]]
    distances: Floats | None
    missing: Sequence[ExpectedColumn] | None
    compared_with: str
    missing_by: str

    def __len__(self) -> int:
        return len(self.shown)

    @property
    def moved(self) -> str:
        """What columns add to: the log-odds of a class, or the amount."""
        return "log_odds" if self.class_names else "amount"

    @property
    def importance(self) -> dict[str, float]:
        """How much each column moves the answer, on average over the rows; the most first."""
        mean = np.abs(self.contributions).mean(0)
        order = np.argsort(-mean, kind="stable")
        return {self.columns[k]: float(mean[k]) for k in order}

    def row(self, number: int) -> dict[str, Any]:
        """Return everything about one row as plain data, the columns that move it most first."""
        order = np.argsort(-np.abs(self.contributions[number]), kind="stable")
        place = self.spoken_of[number]
        value = float(self.shown[number, place])
        answer = {"amount": value}
        if self.class_names:
            answer = {"class": self.class_names[place], "probability": value}
        told: dict[str, Any] = {
            **answer,
            "base": float(self.base[number]),
            "contributions": [
                {
                    "column": self.columns[k],
                    "value": self.values[number][k],
                    self.moved: float(self.contributions[number, k]),
                    "standard_error": float(self.errors[number, k]),
                }
                for k in order
            ],
            "outside": list(self.outside[number]),
        }
        if self.distances is not None:
            told["distance"] = float(self.distances[number])
        if self.missing is not None:
            told["missing"] = {column.name: column.values[number] for column in self.missing}
        return told

    def to_dict(self) -> dict[str, Any]:
        explained = None
        if self.missing is not None:
            explained = {column.name: column.explained for column in self.missing}
        return {
            "compared_with": self.compared_with,
            "importance": self.importance,
            "missing_by": self.missing_by,
            "missing_explained": explained,
            "rows": [self.row(number) for number in range(len(self))],
        }

    def told(self, number: int, most: int = 5) -> list[str]:
        """Return what there is to say about one row, in sentences."""
        row, digits = self.row(number), "+.2f" if self.class_names else "+.4g"
        moves = ", ".join(
            f"{c['column']} = {shown(c['value'])} {c[self.moved]:{digits}}"
            for c in row["contributions"][:most]
            if c[self.moved]
        )
        rest = len(row["contributions"]) - most
        more = f", {rest} more columns" if rest > 0 else ""
        if self.class_names:
            typical = 1.0 / (1.0 + np.exp(-row["base"]))
            says = (
                f"Class {row['class']!r} has {row['probability']:.1%}; typical rows have "
                f"{typical:.1%}. In log-odds"
            )
        else:
            says = f"The amount is {row['amount']:.4g}; typical rows have {row['base']:.4g}. To it"
        sentences = [f"{says}: {moves or 'no column matters'}{more}."]
        if row["outside"]:
            sentences.append(f"Outside of what the source had: {', '.join(row['outside'])}.")
        if row.get("distance", 0.0) >= FAR:
            sentences.append(
                f"It is {row['distance']:.1f} times as far from source rows as those usually are "
                "from each other: take the answer for a guess."
            )
        known = {name: v for name, v in row.get("missing", {}).items() if v is not None}
        if known:
            held = ", ".join(f"{name} about {shown(value)}" for name, value in known.items())
            sentences.append(f"Missing columns, as {self.missing_by}: {held}.")
        return sentences


def shown(value: Any) -> str:
    """Return a value as people write it."""
    if value is None:
        return "empty"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
