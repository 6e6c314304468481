"""Several missing patterns in one model: a part for each, chosen by the columns of the rows."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from halfseen.arrays import Floats
from halfseen.data.column_spec import listed
from halfseen.data.dates import expanded
from halfseen.data.frames import read_frame
from halfseen.data.tables import ArrowTable, Table, empty_columns
from halfseen.errors import InputError, capitalized
from halfseen.model.model import Model
from halfseen.saving import write_patterns

if TYPE_CHECKING:
    from halfseen.explain import Explanation


@dataclass(frozen=True)
class Choice:
    """Which part scores rows: of those that need nothing else, the one that observes most."""

    patterns: tuple[tuple[str, ...], ...]
    """The columns that each part does without."""
    observed: tuple[frozenset[str], ...]
    losses: tuple[float, ...]
    """On held-out source rows: they decide between parts that observe equally many columns."""
    known: tuple[str, ...]
    """The columns that some part observes."""

    @property
    def ambiguous_columns(self) -> list[str]:
        """The columns that some part observes and another does without."""
        return [name for name in self.known if not all(name in names for names in self.observed)]

    def place(self, there: Set[str], where: str) -> int:
        """Return the place of the part for rows that have these columns: the one to fill least in.

        Rows without any column that some part observes are refused.
        """
        if not there & {*self.known}:
            raise InputError(
                f"{capitalized(where)} lacks {listed(self.known)}: every column of the model."
            )

        def order(place: int) -> tuple[float, ...]:
            observed = self.observed[place]
            return len(observed - there), -len(observed), self.losses[place]

        return min(range(len(self.observed)), key=order)


@dataclass(frozen=True, eq=False)
class PatternModel:
    """One model for each missing pattern; the parts differ in what they observe."""

    parts: tuple[Model, ...]

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The class labels, in the order of the probabilities; none where it predicts amounts."""
        return self.parts[0].classes_

    @property
    def patterns(self) -> list[tuple[str, ...]]:
        """The columns that each part does without."""
        return [tuple(column.name for column in part.schema.missing) for part in self.parts]

    @property
    def choice(self) -> Choice:
        """The rule by which one of the parts is chosen."""
        observed = [frozenset(c.name for c in part.schema.observed) for part in self.parts]
        known = frozenset.union(*observed)
        measured = [
            part.metrics.get("held_out_source", {}).get("without_missing_block", {})
            for part in self.parts
        ]
        loss = self.parts[0].target_type.loss
        return Choice(
            tuple(self.patterns),
            tuple(observed),
            tuple(float(found.get(loss, 0.0)) for found in measured),
            tuple(c.name for c in self.parts[0].schema.columns if c.name in known),
        )

    def part_for(self, table: Table) -> int:
        """Return the place of the part that observes most of what a table has.

        A column that is entirely empty is not there.
        """
        choice, dates = self.choice, self.parts[0].schema.dates
        empty = empty_columns(
            table, [name for name in choice.ambiguous_columns if name in table.names]
        )
        there = expanded([name for name in table.names if name not in empty], dates)
        return choice.place(set(there), table.where)

    def _part(self, X: Any) -> Model:
        table = read_frame(X, "X")
        if not isinstance(table, ArrowTable) or table.positional:
            raise InputError(
                "X has no column names, by which a model of several missing patterns is chosen: "
                "give a data frame."
            )
        return self.parts[self.part_for(table)]

    def predict_proba(self, X: Any, **how: Any) -> Floats:
        """Return the probability of each class by the part that the columns call for."""
        return self._part(X).predict_proba(X, **how)

    def predict_interval(self, X: Any, **how: Any) -> Floats:
        """Return the ends of each amount's interval by the part that the columns call for."""
        return self._part(X).predict_interval(X, **how)

    def predict(self, X: Any, **how: Any) -> npt.NDArray[Any]:
        """Return the most probable class, or the amount, of each row."""
        return self._part(X).predict(X, **how)

    def evaluate(self, X: Any, y: Any) -> dict[str, Any]:
        """Measure on labelled rows, as :meth:`Model.evaluate` does."""
        return self._part(X).evaluate(X, y)

    def explain(self, X: Any, **how: Any) -> Explanation:
        """Say which columns move each row's answer, as :meth:`Model.explain` does."""
        return self._part(X).explain(X, **how)

    def save(self, folder: str | Path) -> None:
        """Write all parts and what each does without, whole or not at all."""
        parts = [(part.description(), part.tensors(), part.report) for part in self.parts]
        write_patterns(folder, parts, self.patterns)
