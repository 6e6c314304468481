"""One ONNX graph from raw columns or pixels to probabilities: no halfseen and no torch needed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pyarrow as pa
from onnx import TensorProto

from halfseen.arrays import Floats
from halfseen.atomic_files import atomic_write
from halfseen.data import NumberColumn, TableSchema
from halfseen.data.frames import scaled_bytes
from halfseen.data.preprocessing import ReadRows, inputs_of
from halfseen.data.preprocessors import ImagePreprocessor
from halfseen.data.values import Unread
from halfseen.errors import HalfseenError, InputError
from halfseen.export.member_graphs import add_member
from halfseen.export.onnx_tables import add_preprocessing, graph_values
from halfseen.model.model import Model
from halfseen.onnx_graph import GraphBuilder
from halfseen.targets import Scalar, class_name

FORMAT = 2
"""Version of inputs, outputs and metadata; a reader refuses what is newer than itself."""
PREDICTION, IMAGES = "prediction", "images"
SEAL = "halfseen_seal"
SELF_TEST_ROWS = 4


def onnx_model(model: Model) -> onnx.ModelProto:
    """Return the graph of a fitted model: preprocessing, networks, softmax, most probable class.

    It has one input per observed column (a vector: double precision with NaN for a gap, or text
    with the empty text for one) and two outputs, ``probabilities`` of shape (rows, classes), or
    ``amounts`` with the ends of their intervals, (rows, 3), and ``prediction``; a row with an
    infinity, which the model refuses, gets NaN. The metadata hold the format version, and as JSON
    the classes, the schema and a few rows with their answers.

    A model of images has one input, ``images`` of shape (rows, channels, height, width): bytes
    where it learned from files or bytes, otherwise single precision on the scale of training.
    """
    if model.needs_complete_target:
        raise InputError(
            f"{model.title} needs the missing block at prediction, which the target never "
            "has; it serves comparisons and is not exported."
        )
    preprocessor = model.preprocessor
    builder = GraphBuilder(reserved=[model.target_type.graph_output, PREDICTION])
    refused = None
    if isinstance(preprocessor, ImagePreprocessor):
        rows, described = (
            _add_images(builder, preprocessor),
            {"halfseen_images": preprocessor.to_dict()},
        )
    else:
        rows, refused = add_preprocessing(builder, preprocessor.schema)
        described = {
            "halfseen_schema": preprocessor.schema.model_dump(mode="json"),
            "halfseen_selftest": _answered_rows(model),
        }
    answers = [add_member(member, builder, rows) for member in model.members]
    kind = model.target_type
    shown = kind.add_shown(builder, answers, model.weights, model.metrics)
    if refused is not None:
        shown = builder.node("Add", shown, refused)
    predicted, stored = _add_prediction(builder, shown, preprocessor.classes)
    width = kind.to_predictions(np.empty((0, kind.outputs)), model.metrics).shape[1]
    builder.output(shown, kind.graph_output, TensorProto.FLOAT, width)
    builder.output(predicted, PREDICTION, stored)
    return builder.model(
        {
            "halfseen_format": str(FORMAT),
            "halfseen_classes": json.dumps(preprocessor.classes),
            **{name: json.dumps(facts, separators=(",", ":")) for name, facts in described.items()},
        }
    )


def _answered_rows(model: Model) -> dict[str, Any]:
    """Return made-up rows with what the model says of them, for whoever loads the graph."""
    read = _made_up_rows(model.schema, SELF_TEST_ROWS)
    return {
        "columns": {
            name: [None if value != value else value for value in values.tolist()]
            if isinstance(values, np.ndarray)
            else values.to_pylist()
            for name, values in read.columns.items()
        },
        model.target_type.graph_output: model.score(inputs_of(model.schema, read)).tolist(),
    }


def _add_images(builder: GraphBuilder, preprocessor: ImagePreprocessor) -> str:
    """Add the input of images; bytes are brought to [-1, 1] as those of files are."""
    of_bytes = preprocessor.scale == "bytes"
    kind = TensorProto.UINT8 if of_bytes else TensorProto.FLOAT
    images = builder.input(IMAGES, kind, *preprocessor.blocks.shape)
    if not of_bytes:
        return images
    scale, one = (builder.constant(np.array(v, dtype=np.float32)) for v in (2 / 255, 1.0))
    pixels = builder.node("Cast", images, to=TensorProto.FLOAT)
    return builder.node("Sub", builder.node("Mul", pixels, scale), one)


def write_onnx(graph: onnx.ModelProto, path: Path) -> None:
    """Write a graph in one piece, with its seal."""
    with atomic_write(path) as partial:
        partial.write_bytes(sealed(graph.SerializeToString()))


def sealed(content: bytes) -> bytes:
    """Return a graph with one more entry of metadata at its end: the SHA-256 of all before it.

    Protocol buffers that stand one behind the other are merged when they are read.
    """
    entry = onnx.ModelProto()
    entry.metadata_props.add(key=SEAL, value=hashlib.sha256(content).hexdigest())
    return content + bytes(entry.SerializeToString())


def is_sealed(content: bytes) -> bool:
    """Whether a file is as :func:`sealed` made it, byte for byte.

    Examples
    --------
    >>> is_sealed(sealed(b"a graph")), is_sealed(sealed(b"a graph")[1:])
    (True, False)
    """
    return content == sealed(content[: -len(sealed(b""))])


def check_parity(model: Model, graph: onnx.ModelProto, rows: int = 256) -> float:
    """Return by how much graph and model differ at most on made-up rows; refuse a difference.

    The rows have numbers around and far beyond those of training, known and unknown categories,
    and gaps; images are noise.
    """
    if isinstance(model.preprocessor, ImagePreprocessor):
        inputs, answers = _made_up_images(model, model.preprocessor, rows // 8)
    else:
        read = _made_up_rows(model.schema, rows)
        inputs = {name: graph_values(values) for name, values in read.columns.items()}
        answers = model.score(inputs_of(model.schema, read))
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (shown,) = session.run([model.target_type.graph_output], inputs)
    difference = float(np.abs(shown - answers).max())
    tolerance = model.target_type.tolerance(answers)
    if not difference <= tolerance:
        raise HalfseenError(
            f"The exported graph differs from the model by {difference:.2g}, more than "
            f"{tolerance:.2g}: nothing was written. Please report this with the model folder."
        )
    return difference


def _add_prediction(
    builder: GraphBuilder, shown: str, classes: Sequence[Scalar]
) -> tuple[str, int]:
    """Add the most probable class, or the amount alone, with its type."""
    if not classes:
        first, axis = (builder.constant(np.array([k], dtype=np.int64)) for k in (0, 1))
        alone = builder.node("Gather", shown, first, axis=1)
        return builder.node("Squeeze", alone, axis), TensorProto.FLOAT
    best = builder.node("ArgMax", shown, axis=1, keepdims=0)
    values, kind = _class_constant(builder, classes)
    return builder.node("Gather", values, best), kind


def _class_constant(builder: GraphBuilder, classes: Sequence[Scalar]) -> tuple[str, int]:
    """Store the classes, in the type that the label has."""
    types = {type(value) for value in classes}
    if types == {bool}:
        return builder.constant(np.array(classes, dtype=np.bool_)), TensorProto.BOOL
    if types == {int}:
        return builder.constant(np.array(classes, dtype=np.int64)), TensorProto.INT64
    if types <= {int, float}:
        return builder.constant(np.array(classes, dtype=np.float64)), TensorProto.DOUBLE
    return builder.strings([class_name(value) for value in classes]), TensorProto.STRING


def _made_up_images(
    model: Model, preprocessor: ImagePreprocessor, rows: int
) -> tuple[dict[str, Any], Floats]:
    """Return noise as the graph takes it, and what the model says of it."""
    noise = np.random.default_rng(0).integers(
        0, 256, (rows, *preprocessor.blocks.shape), dtype=np.uint8
    )
    given = noise if preprocessor.scale == "bytes" else scaled_bytes(noise)
    return {IMAGES: given}, model.predict_proba(given)


def _made_up_rows(schema: TableSchema, rows: int) -> ReadRows:
    random = np.random.default_rng(0)
    columns: dict[str, Any] = {}
    for column in schema.observed:
        gap = random.random(rows) < 0.1
        if isinstance(column, NumberColumn):
            numbers = column.fill + column.scale * random.standard_cauchy(rows)
            columns[column.name] = np.where(gap, np.nan, numbers)
        else:
            texts = random.choice([*column.categories, "never seen"], rows).tolist()
            columns[column.name] = pa.array(texts, pa.string(), mask=gap)
    return ReadRows(columns, rows, 1, Unread())
