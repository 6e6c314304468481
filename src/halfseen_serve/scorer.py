"""What answers requests: the model, or a graph of it; one for each missing pattern."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from halfseen.alarms import FEWEST_ROWS
from halfseen.alarms.table_alarms import CellAlarms, Watch
from halfseen.arrays import Floats
from halfseen.data import TableSchema
from halfseen.data.dates import date_names
from halfseen.data.preprocessing import ReadRows, absent_columns, inputs_of, read_rows
from halfseen.errors import InputError
from halfseen.export.onnx_session import TableGraph, open_graph
from halfseen.model.loading import load, table_model
from halfseen.model.model import Model
from halfseen.model.pattern_model import Choice, PatternModel
from halfseen_serve.columns import RequestColumn, request_columns
from halfseen_serve.errors import RequestError

CHUNK = 4096
"""Rows scored before looking whether someone still waits; it bounds what scoring holds."""


class Answer(NamedTuple):
    """What is said of the rows of a request."""

    outputs: Floats
    """Probabilities, or amounts with the ends of their intervals."""
    predictions: npt.NDArray[Any]
    alarms: list[str]


class Scorer:
    """Scores tables as `halfseen predict` does: with a model to the last bit."""

    def __init__(self, model: Model | TableGraph) -> None:
        self.model = model
        self.schema = model.schema
        self._metrics = model.metrics if isinstance(model, Model) else None
        self.columns = request_columns(model.schema)

    def answer(self, tables: Sequence[Any], is_over: Callable[[], bool]) -> list[Answer]:
        """Return the answers to several requests, whose rows are scored as one table."""
        if any(table.schema != tables[0].schema for table in tables):
            return [answer for table in tables for answer in self.answer([table], is_over)]
        read = self.read(pa.concat_tables(tables))
        outputs, predictions = self.score(read, is_over)
        if len(tables) == 1:
            return [Answer(outputs, predictions, self.alarms(read, outputs))]
        cells = CellAlarms(self.schema)
        cells.add(read)
        is_any_strange = next(cells.alarms(), None) is not None
        ends = np.cumsum([table.num_rows for table in tables])[:-1]
        parts = zip(tables, np.split(outputs, ends), np.split(predictions, ends), strict=True)
        return [
            Answer(own, predicted, self.alarms(self.read(table), own))
            if is_any_strange
            or table.num_rows >= FEWEST_ROWS
            or table.num_columns < len(self.columns)
            else Answer(own, predicted, [])
            for table, own, predicted in parts
        ]

    def given(self, names: Collection[str]) -> list[RequestColumn]:
        """Return the columns that a request has; refuse one without any, or spelled otherwise.

        Those that it lacks are filled, and an alarm.
        """
        try:
            absent = absent_columns(self.schema, names, "The request")
        except InputError as error:
            name = next(column.name for column in self.columns if column.name not in names)
            says = str(error).partition("; --rename")[0].rstrip(".")
            raise RequestError(422, f"{says}.", name) from None
        return [column for column in self.columns if column.name not in absent]

    def read(self, table: Any) -> ReadRows:
        """Read the rows of a request as the schema has them."""
        try:
            return read_rows(self.schema, table, where="the request")
        except (InputError, pa.ArrowException) as error:
            named = (name for name in table.column_names if f"{name!r}" in str(error))
            raise RequestError(422, str(error), next(named, None)) from error

    def score(self, read: ReadRows, is_over: Callable[[], bool]) -> tuple[Floats, npt.NDArray[Any]]:
        """Return outputs and predictions; stop when nobody waits for the answer any more."""
        parts = []
        for start in range(0, read.rows, CHUNK):
            if is_over():
                raise TimeoutError
            some = {
                c.name: read.columns[c.name][start : start + CHUNK] for c in self.schema.observed
            }
            rows = min(CHUNK, read.rows - start)
            parts.append(self._scored(read._replace(columns=some, rows=rows)))
        outputs, predictions = (np.concatenate(each) for each in zip(*parts, strict=True))
        return outputs, predictions

    def _scored(self, read: ReadRows) -> tuple[Floats, npt.NDArray[Any]]:
        if isinstance(self.model, TableGraph):
            return self.model.answer(read)
        shown = self.model.score(inputs_of(self.schema, read))
        return shown, self.model.target_type.predicted(shown)

    def alarms(self, read: ReadRows, outputs: Floats) -> list[str]:
        """Name what looks wrong with columns and cells; the source's figures stay inside.

        Examples are ``unit: weight``, ``swapped: age, pulse`` and ``unseen: shop in row 3``.
        """
        watch: Watch | CellAlarms
        if read.rows < FEWEST_ROWS and not read.absent:  # too few for distributions
            watch = CellAlarms(self.schema)
            watch.add(read)
        else:
            watch = Watch(self.schema, self._metrics)
            watch.add(read, outputs)
        return [
            alarm.kind
            + (f": {', '.join(alarm.columns)}" if alarm.columns else "")
            + (f" in row {alarm.figures['row']:.0f}" if "row" in alarm.figures else "")
            for alarm in watch.alarms()
        ]


@dataclass(frozen=True)
class Scorers:
    """What a server answers with: a scorer, or one for each missing pattern of a model."""

    parts: tuple[Scorer, ...]
    choice: Choice | None = None

    @property
    def schema(self) -> TableSchema:
        """That of one part; all have the same label and the same columns of dates."""
        return self.parts[0].schema

    def choose(self, has_value: Callable[[str], bool]) -> Scorer:
        """Return the scorer that is meant by a request that has values in some columns.

        As in `halfseen predict`, a column in which no row has a value is not there.
        """
        if self.choice is None:
            return self.parts[0]
        made = date_names(self.schema.dates)
        cells = {name: made.get(name, name) for name in self.choice.ambiguous_columns}
        missing = {name for name, cell in cells.items() if not has_value(cell)}
        try:
            return self.parts[self.choice.place({*self.choice.known} - missing, "the request")]
        except InputError as error:
            raise RequestError(422, str(error)) from None


def open_scorers(model: Path) -> Scorers:
    """Open a model folder, or a graph from ``halfseen export``."""
    if not model.is_dir():
        return Scorers((Scorer(open_graph(model)),))
    whole = load(model)
    parts = whole.parts if isinstance(whole, PatternModel) else (whole,)
    scorers = tuple(Scorer(_served(part, model)) for part in parts)
    return Scorers(scorers, whole.choice if isinstance(whole, PatternModel) else None)


def _served(model: Model, folder: Path) -> Model:
    """Return a model that can be asked one row at a time, or say why it cannot."""
    table_model(model, folder)
    if model.needs_complete_target:
        raise InputError(
            f"{model.title} needs the missing block at prediction, which the target never has; it "
            "serves comparisons and is not served."
        )
    if not model.schema.classes and "interval" not in model.metrics:
        raise InputError(f"{folder} gives amounts without intervals: fit it again.")
    return model
