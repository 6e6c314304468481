"""What answers requests: a graph for each missing pattern of a model."""

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
from halfseen.data import NumberColumn, TableSchema
from halfseen.data.dates import date_names
from halfseen.data.preprocessing import ReadRows, absent_columns, read_rows
from halfseen.errors import InputError
from halfseen.export.onnx import graph_values
from halfseen.export.onnx_session import TableGraph, graph_of, open_graph
from halfseen.model.loading import load
from halfseen.model.pattern_model import Choice, PatternModel
from halfseen_serve.columns import RequestColumn, request_columns
from halfseen_serve.errors import RequestError

CHUNK = 4096
"""Rows scored before looking whether someone still waits; it bounds what ONNX Runtime holds."""


class Answer(NamedTuple):
    """What is said of the rows of a request."""

    outputs: Floats
    """Probabilities, or amounts with the ends of their intervals."""
    predictions: npt.NDArray[Any]
    alarms: list[str]


class Scorer:
    """Scores tables with a graph."""

    def __init__(self, graph: TableGraph) -> None:
        self.graph = graph
        self.schema = graph.schema
        self.columns = request_columns(graph.schema)

    def answer(self, tables: Sequence[Any], is_over: Callable[[], bool]) -> list[Answer]:
        """Return the answers to several requests, whose rows are scored as one table."""
        read = self.read(pa.concat_tables(tables, promote_options="default"))
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
        inputs = {c.name: graph_values(read.columns[c.name]) for c in self.schema.observed}
        for column in self.schema.observed:
            if isinstance(column, NumberColumn) and column.kind == "boolean":
                _check_flags(inputs[column.name], column.name)
        parts = []
        for start in range(0, read.rows, CHUNK):
            if is_over():
                raise TimeoutError
            some = {name: values[start : start + CHUNK] for name, values in inputs.items()}
            parts.append(self.graph.run(some))
        outputs, predictions = (np.concatenate(each) for each in zip(*parts, strict=True))
        return self.schema.target_type.normalized(outputs), predictions

    def alarms(self, read: ReadRows, outputs: Floats) -> list[str]:
        """Name what looks wrong with columns and cells; the source's figures stay inside.

        Examples are ``unit: weight``, ``swapped: age, pulse`` and ``unseen: shop in row 3``.
        """
        watch: Watch | CellAlarms
        if read.rows < FEWEST_ROWS and not read.absent:  # too few for distributions
            watch = CellAlarms(self.schema)
            watch.add(read)
        else:
            watch = Watch(self.schema)
            watch.add(read, outputs)
        return [
            f"{alarm.kind}: {', '.join(alarm.columns)}"
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
    if not isinstance(whole, PatternModel):
        return Scorers((Scorer(graph_of(whole, model)),))
    return Scorers(tuple(Scorer(graph_of(part, model)) for part in whole.parts), whole.choice)


def _check_flags(numbers: Floats, name: str) -> None:
    wrong = np.flatnonzero(~(np.isnan(numbers) | (numbers == 0) | (numbers == 1)))
    if wrong.size:
        found = f"{numbers[wrong[0]]:g} in row {wrong[0] + 1}"
        raise RequestError(
            422, f"Column {name!r} holds {found}; it must be true, false, 0 or 1, or null.", name
        )
