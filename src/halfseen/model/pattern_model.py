"""Several missing patterns in one model: a part for each, chosen by the columns of the rows.

A folder of this kind holds ``patterns.json`` and one ordinary model folder for each pattern
(``part-1``, ``part-2``, ...), which every command also takes by itself.
"""

from __future__ import annotations

import json
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from halfseen.arrays import Floats
from halfseen.atomic_files import atomic_folder
from halfseen.data.dates import expanded
from halfseen.data.frames import read_frame
from halfseen.data.tables import ArrowTable, Table, empty_columns
from halfseen.errors import InputError, capitalized
from halfseen.explain.explanation import Explanation
from halfseen.model import loading
from halfseen.model.model import Model
from halfseen.saving.model_folder import (
    PATTERNS,
    check_replaceable,
    fill_folder,
    part_folder,
    read_patterns,
)

if TYPE_CHECKING:
    from torch import nn

    from halfseen.networks.nets.encoders import EncoderFactory


@dataclass(frozen=True)
class Choice:
    """Which part scores rows: the one that observes most of the columns that they have."""

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
        """Return the place of the part for rows that have these columns, or refuse them."""
        usable = [place for place, names in enumerate(self.observed) if there >= names]
        if not usable:
            lacking = [name for name in self.known if name not in there]
            shown = "; ".join(f"({', '.join(pattern)})" for pattern in self.patterns)
            raise InputError(
                f"{capitalized(where)} lacks {', '.join(lacking)}, and the model was trained for "
                f"tables that lack one of {shown} and nothing else: fit it with a target that "
                "lacks these columns too."
            )
        return min(usable, key=lambda place: (-len(self.observed[place]), self.losses[place]))


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
        return [missing_of(part) for part in self.parts]

    @property
    def choice(self) -> Choice:
        """The rule by which one of the parts is chosen."""
        observed = [frozenset(c.name for c in part.schema.observed) for part in self.parts]
        known = frozenset.union(*observed)
        return Choice(
            tuple(self.patterns),
            tuple(observed),
            tuple(_loss(part) for part in self.parts),
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
        folder = Path(folder)
        check_replaceable(folder)
        with atomic_folder(folder) as partial:
            parts = []
            for number, part in enumerate(self.parts, start=1):
                place = part_folder(partial, number)
                place.mkdir()
                described = fill_folder(
                    place, part.description(), part.tensors(), report=part.report
                )
                lacks, seal = missing_of(part), described.seal
                parts.append({"folder": place.name, "lacks": lacks, "seal": seal})
            text = json.dumps({"format": 1, "parts": parts}, indent=2, ensure_ascii=False)
            (partial / PATTERNS).write_text(text + "\n", encoding="utf-8")


def missing_of(model: Model) -> tuple[str, ...]:
    """Return the columns that a model does without."""
    return tuple(column.name for column in model.schema.missing)


def _loss(model: Model) -> float:
    measured = model.metrics.get("held_out_source", {}).get("without_missing_block", {})
    return float(measured.get(model.target_type.loss, 0.0))


def load(
    folder: str | Path, *, encoder: nn.Module | EncoderFactory | None = None
) -> Model | PatternModel:
    """Return the model that ``save`` wrote into a folder; it predicts bit for bit the same.

    The folder is verified, as :func:`halfseen.model.loading.load` says. One with several missing
    patterns gives a :class:`PatternModel`.

    Parameters
    ----------
    folder
        The model folder.
    encoder
        The encoder that the model was given, where it was given one.
    """
    parts = read_patterns(folder)
    if parts is None:
        return loading.load(folder, encoder=encoder)
    models = tuple(loading.load(part, encoder=encoder) for part in parts)
    _check_alike(models, folder)
    return PatternModel(models)


def _check_alike(models: Sequence[Model], folder: str | Path) -> None:
    if len({(p.schema.label, p.schema.classes, p.target_type.task) for p in models}) > 1:
        raise InputError(f"The parts of {folder} predict different things: fit it again.")
