"""The label-free scores as rows of one table: name, direction, and what each needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from halfseen.errors import InputError
from halfseen.evidence.risk import (
    deep_embedded_validation,
    importance_weighted_validation,
    source_validation,
)
from halfseen.evidence.scores import agreement, mutual_information_score


@dataclass(frozen=True)
class Score:
    """One way to compare models without target labels.

    `function` takes what `needs` names, in that order, and returns a number, or a risk with its
    interval.
    """

    name: str
    better: Literal["lower", "higher"]
    needs: tuple[str, ...]
    function: Callable[..., Any]

    def best(self, values: Sequence[float]) -> int:
        """Return the position of the best value; the first one of equals, never a NaN.

        Examples
        --------
        >>> SCORES["dev"].best([0.3, 0.1, float("nan")])
        1
        >>> SCORES["mutual_information"].best([0.3, 0.1])
        0
        """
        array = np.asarray(values, dtype=np.float64)
        if array.ndim != 1 or np.isnan(array).all():
            raise InputError(f"No value of {self.name} is a number: there is nothing to choose.")
        return int(np.nanargmin(array) if self.better == "lower" else np.nanargmax(array))


_ON_SOURCE = ("source_loss", "weight")

SCORES: dict[str, Score] = {
    score.name: score
    for score in (
        Score("dev", "lower", _ON_SOURCE, deep_embedded_validation),
        Score("importance_weighted", "lower", _ON_SOURCE, importance_weighted_validation),
        Score("source_loss", "lower", ("source_loss",), source_validation),
        Score("mutual_information", "higher", ("target_probabilities",), mutual_information_score),
        Score("agreement", "higher", ("probabilities_of_runs",), agreement),
    )
}
"""Every score by name. A function returns its natural number; `better` says which way is up."""
