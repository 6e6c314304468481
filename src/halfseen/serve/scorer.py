"""An exported graph behind ONNX Runtime: a table in, probabilities or amounts out."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pyarrow as pa
from pydantic import ValidationError

from halfseen.alarms.cells import usual_cells
from halfseen.alarms.rows import Watch
from halfseen.errors import InputError, first_fault
from halfseen.export.onnx import FORMAT, PREDICTION, is_sealed, onnx_model
from halfseen.export.onnx_tables import graph_values
from halfseen.front import NumberColumn, TableSchema
from halfseen.front.dates import date_names
from halfseen.front.preprocessing import ReadRows, read_rows
from halfseen.model import loading
from halfseen.model.model import Model
from halfseen.model.patterns import Choice, PatternModel, load
from halfseen.serve.cells import Column, request_columns
from halfseen.serve.errors import RequestError
from halfseen.serve.json_body import Values

CHUNK = 4096
"""Rows scored before looking whether someone still waits; it bounds what ONNX Runtime holds."""


class Scorer:
    """Scores tables with a graph that ``halfseen export`` wrote; `source` is what it is called."""

    def __init__(self, content: bytes, source: str = "the graph") -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # requests run beside each other, on a thread each
        options.log_severity_level = 3
        try:
            # From bytes, a graph cannot refer to other files.
            self._session = onnxruntime.InferenceSession(
                content, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # ONNX Runtime's errors have no common base but this
            raise InputError(f"{source} is not a graph that ONNX Runtime can read.") from error
        self.schema = _schema_of(self._session, source)
        self.kind = self.schema.label_kind
        self.columns = request_columns(self.schema)
        self._usual = usual_cells(self.schema)
        (shown, _) = self._session.get_outputs()
        if not self.schema.classes and shown.shape[1:] != [3]:
            raise InputError(f"{source} gives amounts without intervals: fit and export it again.")
        self._test_itself(source)

    def read(self, table: Any) -> ReadRows:
        """Read the rows of a request as the schema has them."""
        names = table.schema.names
        try:
            return read_rows(self.schema, table, where="the request")
        except (InputError, pa.ArrowException) as error:
            named = next((name for name in names if f"{name!r}" in str(error)), None)
            raise RequestError(422, str(error), named) from error

    def score(
        self, read: ReadRows, is_over: Callable[[], bool]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[Any]]:
        """Return what is shown of each row, probabilities or amounts, and what is predicted.

        Stops when nobody waits for the answer any more.
        """
        inputs = {
            column.name: graph_values(read.columns[column.name]) for column in self.schema.observed
        }
        for column in self.schema.observed:
            if isinstance(column, NumberColumn) and column.kind == "boolean":
                _check_flags(inputs[column.name], column.name, read.first_row)
        parts = []
        for start in range(0, read.rows, CHUNK):
            if is_over():
                raise TimeoutError
            some = {name: values[start : start + CHUNK] for name, values in inputs.items()}
            parts.append(self._session.run([self.kind.graph_output, PREDICTION], some))
        shown = self.kind.normalized(np.concatenate([part[0] for part in parts]))
        return shown, np.concatenate([part[1] for part in parts])

    def is_usual(self, values: Values) -> bool:
        """Whether no single cell of a few rows can raise an alarm: told faster than by reading."""
        return self._usual(values)

    def alarms(self, read: ReadRows, shown: npt.NDArray[np.float64]) -> list[str]:
        """Name what looks wrong with columns and cells; the source's figures stay inside.

        Examples are ``unit: weight``, ``swapped: age, pulse`` and ``unseen: shop in row 3``.
        """
        watch = Watch(self.schema)
        watch.add(read, shown)
        return [
            f"{alarm.kind}: {', '.join(alarm.columns)}"
            + (f" in row {alarm.figures['row']:.0f}" if "row" in alarm.figures else "")
            for alarm in watch.alarms()
        ]

    def _test_itself(self, source: str) -> None:
        """Refuse a graph that does not say here what the model said when it was exported."""
        known = json.loads(
            self._session.get_modelmeta().custom_metadata_map.get("halfseen_selftest", "{}")
        )
        if not known:
            raise InputError(f"{source} carries no rows to test it with; export the model again.")
        inputs = {}
        for column in self.schema.observed:
            values = known["columns"][column.name]
            is_number = isinstance(column, NumberColumn)
            inputs[column.name] = graph_values(
                np.array(values, dtype=np.float64) if is_number else pa.array(values, pa.string())
            )
        (found,) = self._session.run([self.kind.graph_output], inputs)
        answers = np.array(known[self.kind.graph_output])
        difference = float(np.abs(found - answers).max())
        if not difference <= self.kind.tolerance(answers):
            raise InputError(
                f"{source} does not answer here as the model did when it was exported: known rows "
                f"differ by {difference:.2g}. Export the model again; if that does not help, the "
                "installed ONNX Runtime does not compute as it should."
            )


class Scorers:
    """What a server answers with: a scorer, or one for each missing pattern of a model."""

    def __init__(self, scorers: Sequence[Scorer], choice: Choice | None = None) -> None:
        self._scorers = {tuple(c.name for c in scorer.columns): scorer for scorer in scorers}
        self._choice = choice

    @property
    def schema(self) -> TableSchema:
        """That of one part; all have the same columns of dates."""
        return next(iter(self)).schema

    def __iter__(self) -> Iterator[Scorer]:
        return iter(self._scorers.values())

    def columns(self, has_value: Callable[[str], bool]) -> Sequence[Column]:
        """Return what is read of a request: the columns of the part that is meant.

        As in `halfseen predict`, a column in which no row has a value is not there.
        """
        place = 0
        if self._choice is not None:
            made = date_names(self.schema.dates)
            cells = {
                name: made[name][0] if name in made else name for name in self._choice.doubtful
            }
            missing = {name for name, cell in cells.items() if not has_value(cell)}
            try:
                place = self._choice.place(set(self._choice.known) - missing, "the request")
            except InputError as error:
                raise RequestError(422, str(error)) from None
        return list(self)[place].columns

    def of(self, names: Iterable[str]) -> Scorer:
        return self._scorers[tuple(names)]


def _check_flags(numbers: npt.NDArray[np.float64], name: str, first_row: int) -> None:
    wrong = np.flatnonzero(~(np.isnan(numbers) | (numbers == 0) | (numbers == 1)))
    if wrong.size:
        found = f"{numbers[wrong[0]]:g} in row {wrong[0] + first_row}"
        raise RequestError(
            422, f"Column {name!r} holds {found}; it must be true, false, 0 or 1, or null.", name
        )


def open_scorers(model: Path) -> Scorers:
    if not model.is_dir():
        return Scorers([open_scorer(model)])
    whole = load(model)
    if not isinstance(whole, PatternModel):
        return Scorers([_scorer(whole, model)])
    return Scorers([_scorer(part, model) for part in whole.parts], whole.choice)


def open_scorer(model: Path) -> Scorer:
    if model.is_dir():
        return _scorer(loading.load(model), model)
    try:
        content = model.read_bytes()
    except OSError as error:
        raise InputError(
            f"{model} cannot be read ({error.strerror}); give a model folder or an .onnx file."
        ) from None
    if not is_sealed(content):
        raise InputError(
            f"{model} is not as halfseen export wrote it: its content has another SHA-256 than its "
            "seal, or it has none. It was damaged or changed, or comes from elsewhere: export the "
            "model again, or copy the file again."
        )
    return Scorer(content, os.fspath(model))


def _scorer(model: Model, folder: Path) -> Scorer:
    graph = onnx_model(loading.table_model(model, folder))
    return Scorer(graph.SerializeToString(), str(folder))


def _schema_of(session: Any, source: str) -> TableSchema:
    """Read the schema that the graph carries, or say why it cannot be served."""
    metadata = session.get_modelmeta().custom_metadata_map
    found = metadata.get("halfseen_format", "")
    if not found.isdecimal():
        raise InputError(
            f"{source} is an ONNX graph, but not one that halfseen export wrote: it has no "
            "halfseen_format among its metadata."
        )
    if int(found) > FORMAT:
        raise InputError(
            f"{source} has format {found}, and this version of halfseen reads up to {FORMAT}: "
            "update halfseen."
        )
    try:
        schema = TableSchema.model_validate_json(metadata.get("halfseen_schema", ""))
    except ValidationError as error:
        raise InputError(f"The schema in {source} cannot be read: {first_fault(error)}.") from None
    inputs = {value.name for value in session.get_inputs()}
    if inputs != {column.name for column in schema.observed}:
        raise InputError(f"The inputs of {source} are not the columns of its schema.")
    return schema
