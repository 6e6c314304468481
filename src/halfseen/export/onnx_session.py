"""A graph of a model of tables, run by ONNX Runtime once it answered known rows as it should."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pyarrow as pa
from pydantic import ValidationError

from halfseen.arrays import Floats
from halfseen.data import NumberColumn, TableSchema
from halfseen.data.preprocessing import ReadRows
from halfseen.errors import InputError, first_fault
from halfseen.export.onnx import FORMAT, PREDICTION, graph_values, is_sealed, onnx_model
from halfseen.model import loading


@dataclass(frozen=True, eq=False)
class TableGraph:
    """A graph that ``halfseen export`` wrote, with the schema that it carries."""

    schema: TableSchema
    session: Any

    def run(self, inputs: Mapping[str, npt.NDArray[Any]]) -> tuple[Floats, npt.NDArray[Any]]:
        """Return probabilities, or amounts with their intervals, and what is predicted."""
        wanted = [self.schema.target_type.graph_output, PREDICTION]
        outputs, predictions = self.session.run(wanted, inputs)
        return outputs, predictions

    def answer(self, read: ReadRows) -> tuple[Floats, npt.NDArray[Any]]:
        """Return the same of rows that were read, probabilities of sum one."""
        outputs, predictions = self.run({n: graph_values(v) for n, v in read.columns.items()})
        return self.schema.target_type.normalized(outputs), predictions


def open_graph(path: Path) -> TableGraph:
    """Open a graph that ``halfseen export`` wrote, or the one of a model folder."""
    if path.is_dir():
        graph = onnx_model(loading.table_model(loading.load_one(path), path))
        return read_graph(graph.SerializeToString(), str(path))
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror}); give a model folder or an .onnx file."
        ) from None
    if not is_sealed(content):
        raise InputError(
            f"{path} is not as halfseen export wrote it: its content has another SHA-256 than its "
            "seal, or it has none. It was damaged or changed, or comes from elsewhere: export the "
            "model again, or copy the file again."
        )
    return read_graph(content, str(path))


def read_graph(content: bytes, source: str = "the graph") -> TableGraph:
    """Return a graph; refuse one that is not of a known format, or answers known rows otherwise."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # requests run beside each other, on a thread each
    options.log_severity_level = 3
    try:
        # From bytes, a graph cannot refer to other files.
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime's errors have no common base but this
        raise InputError(f"{source} is not a graph that ONNX Runtime can read.") from error
    graph = TableGraph(_schema_of(session, source), session)
    (outputs, _) = session.get_outputs()
    if not graph.schema.classes and outputs.shape[1:] != [3]:
        raise InputError(f"{source} gives amounts without intervals: fit and export it again.")
    _check_known_rows(graph, source)
    return graph


def _schema_of(session: Any, source: str) -> TableSchema:
    """Read the schema that a graph carries, or say why it cannot be run."""
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


def _check_known_rows(graph: TableGraph, source: str) -> None:
    """Refuse a graph that does not say here what the model said when it was exported."""
    metadata = graph.session.get_modelmeta().custom_metadata_map
    known = json.loads(metadata.get("halfseen_selftest", "{}"))
    if not known:
        raise InputError(f"{source} carries no rows to test it with; export the model again.")
    inputs = {}
    for column in graph.schema.observed:
        values = known["columns"][column.name]
        is_number = isinstance(column, NumberColumn)
        inputs[column.name] = graph_values(
            np.array(values, dtype=np.float64) if is_number else pa.array(values, pa.string())
        )
    kind = graph.schema.target_type
    found, expected = graph.run(inputs)[0], np.array(known[kind.graph_output])
    difference = float(np.abs(found - expected).max())
    if not difference <= kind.tolerance(expected):
        raise InputError(
            f"{source} does not answer here as the model did when it was exported: known rows "
            f"differ by {difference:.2g}. Export the model again; if that does not help, the "
            "installed ONNX Runtime does not compute as it should."
        )
