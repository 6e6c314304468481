"""One ONNX graph from raw columns or pixels to probabilities: no halfseen and no torch needed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pyarrow as pa
from onnx import TensorProto

from halfseen.data import CategoryColumn, NumberColumn, TableSchema
from halfseen.data.frames import scaled_bytes
from halfseen.data.preprocessing import ReadRows, inputs_of
from halfseen.data.preprocessors import ImagePreprocessor, TablePreprocessor
from halfseen.data.values import Unread
from halfseen.errors import HalfseenError, InputError
from halfseen.export.gap_graph import add_gap_filling
from halfseen.export.member_graphs import add_member
from halfseen.export.onnx_graph import GraphBuilder
from halfseen.model.model import Model
from halfseen.outputs import atomic_write
from halfseen.targets import IntervalReach, Scalar, class_name

FORMAT = 2
"""Version of inputs, outputs and metadata; a reader refuses what is newer than itself."""
PREDICTION, IMAGES = "prediction", "images"
SEAL = "halfseen_seal"
SELF_TEST_ROWS = 4
GAP = ""
"""How a categorical input says that a value is missing; ONNX has no null."""


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
    builder, refused = GraphBuilder(reserved=[model.target_type.graph_output, PREDICTION]), None
    described: dict[str, Any]
    if isinstance(preprocessor, ImagePreprocessor):
        rows, described = (
            _add_images(builder, preprocessor),
            {"halfseen_images": preprocessor.to_dict()},
        )
    else:
        rows, refused = _add_preprocessing(builder, preprocessor)
        described = {
            "halfseen_schema": preprocessor.schema.model_dump(mode="json"),
            "halfseen_selftest": _answered_rows(model),
        }
    answers = [add_member(member, builder, rows) for member in model.members]
    shown, kind = _add_shown(builder, answers, model), model.target_type
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
        model.target_type.graph_output: model.score(model.tables.inputs(read)).tolist(),
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
    """Whether a file is as :func:`sealed` made it, byte for byte."""
    return content == sealed(content[: -len(sealed(b""))])


def check_parity(model: Model, graph: onnx.ModelProto, rows: int = 256) -> float:
    """Return by how much graph and model differ at most on made-up rows; refuse a difference.

    The rows have numbers around and far beyond those of training, known and unknown categories,
    and gaps; images are noise.
    """
    inputs: dict[str, Any]
    if isinstance(model.preprocessor, ImagePreprocessor):
        shape = (rows // 8, *model.preprocessor.blocks.shape)
        noise = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
        given = noise if model.preprocessor.scale == "bytes" else scaled_bytes(noise)
        inputs, answers = {IMAGES: given}, model.predict_proba(given)
    else:
        read = _made_up_rows(model.schema, rows)
        inputs = {name: graph_values(values) for name, values in read.columns.items()}
        answers = model.score(model.tables.inputs(read))
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


def _add_shown(builder: GraphBuilder, answers: Sequence[str], model: Model) -> str:
    """Add the mixture of the members' probabilities, or of their amounts with its interval."""
    has_classes, bias = bool(model.preprocessor.classes), model.weights.bias
    if has_classes:
        answers = [builder.node("Softmax", answer, axis=1) for answer in answers]
    shown = builder.weighted_sum(answers, model.weights.members)
    if bias:
        added = builder.constant(np.array([bias], dtype=np.float32))
        shown = builder.node("Add", builder.node("Log", shown) if has_classes else shown, added)
        shown = builder.node("Softmax", shown, axis=1) if has_classes else shown
    if "interval" not in model.metrics:
        return shown
    interval = add_interval(builder, shown, IntervalReach(**model.metrics["interval"]))
    return builder.node("Concat", shown, interval, axis=1)


def add_interval(builder: GraphBuilder, amounts: str, reach: IntervalReach) -> str:
    """Add both ends of the interval: interpolation as a sum of ramps."""

    def constant(values: Any) -> str:
        return builder.constant(np.array(values, dtype=np.float32))

    ends = []
    for sign, side in ((-1.0, reach.below), (1.0, reach.above)):
        end = builder.node("Add", amounts, constant([[sign * side[0]]]))
        if len(reach.at) > 1:
            steps = np.diff(reach.at)
            ramps = builder.node("Sub", amounts, constant([reach.at[:-1]]))
            ramps = builder.node("Min", builder.node("Relu", ramps), constant([steps]))
            slopes = constant((sign * np.diff(side) / steps)[:, None])
            end = builder.node("Add", end, builder.node("MatMul", ramps, slopes))
        ends.append(end)
    return builder.node("Concat", *ends, axis=1)


def _add_prediction(
    builder: GraphBuilder, shown: str, classes: Sequence[Scalar]
) -> tuple[str, int]:
    """Add the most probable class in the label's own type, or the amount alone, with its type."""
    if not classes:
        first, axis = (builder.constant(np.array([k], dtype=np.int64)) for k in (0, 1))
        alone = builder.node("Gather", shown, first, axis=1)
        return builder.node("Squeeze", alone, axis), TensorProto.FLOAT
    best, types = builder.node("ArgMax", shown, axis=1, keepdims=0), {type(v) for v in classes}
    for of, stored, kind in (
        ({bool}, np.bool_, TensorProto.BOOL),
        ({int}, np.int64, TensorProto.INT64),
        ({int, float}, np.float64, TensorProto.DOUBLE),
    ):
        if types <= of:
            values = builder.constant(np.array(classes, dtype=stored))
            return builder.node("Gather", values, best), kind
    texts = builder.strings([class_name(value) for value in classes])
    return builder.node("Gather", texts, best), TensorProto.STRING


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


# --- from raw columns to inputs --------------------------------------------------------------


def _add_preprocessing(
    builder: GraphBuilder, preprocessor: TablePreprocessor
) -> tuple[str, str | None]:
    """Add one input per observed column and what the preprocessing computes of it.

    Numbers come in double precision, as the preprocessing has them, with NaN for a gap;
    categories as text, with :data:`GAP` for one. Inputs of the missing block are 0.
    Returns the name of the float matrix with a column for each of ``schema.inputs``, and that of
    a column that is NaN in rows with an infinity, which a graph cannot refuse, and 0 in others.
    """
    schema = preprocessor.schema
    numbers = [column for column in schema.observed if isinstance(column, NumberColumn)]
    categories = [column for column in schema.observed if isinstance(column, CategoryColumn)]
    parts: list[str] = []
    places: dict[str, list[int]] = {}
    are_gaps: dict[str, str] = {}
    refused = None
    if numbers:
        *inputs, refused = _add_numbers(builder, numbers, schema.clip)
        parts += inputs
        for place, number in enumerate(numbers):
            places[number.name] = [place, place + len(numbers)][: len(number.inputs)]
            at = builder.constant(np.array([place], dtype=np.int64))
            are_gaps[number.name] = builder.node("Gather", inputs[1], at, axis=1)
    width = 2 * len(numbers)
    for category in categories:
        inputs_of_it, are_gaps[category.name] = _add_category(builder, schema, category)
        parts.append(inputs_of_it)
        places[category.name] = list(range(width, width + len(category.inputs)))
        width += len(category.inputs)
    one = builder.constant(np.array([1], dtype=np.int64))
    rows = builder.node("Concat", builder.node("Shape", schema.observed[0].name), one, axis=0)
    zeros = builder.node("ConstantOfShape", rows)
    parts.append(zeros)
    order = [
        place
        for column in schema.columns
        for place in places.get(column.name, [width] * len(column.inputs))
    ]
    joined = builder.node("Concat", *parts, axis=1)
    found = builder.node("Gather", joined, builder.constant(np.array(order)), axis=1)
    if preprocessor.gaps is not None:
        found = add_gap_filling(builder, preprocessor.gaps, schema, found, are_gaps | {"": zeros})
    return found, refused


def _add_numbers(
    builder: GraphBuilder, columns: Sequence[NumberColumn], clip: float
) -> tuple[str, str, str]:
    """Fill, take logarithms and scale all columns at once; return them, gaps and infinities."""
    axis = builder.constant(np.array([1], dtype=np.int64))
    raw = [
        builder.node("Unsqueeze", builder.input(column.name, TensorProto.DOUBLE), axis)
        for column in columns
    ]

    def constant(values: Sequence[float]) -> str:
        return builder.constant(np.array(values, dtype=np.float64))

    values = builder.node("Concat", *raw, axis=1)
    gaps = builder.node("IsNaN", values)
    values = builder.node("Where", gaps, constant([column.fill for column in columns]), values)
    nothing = builder.node("Sub", values, values)  # NaN where a value is infinite
    refused = builder.node("ReduceSum", nothing, axis, keepdims=1)
    if any(column.log for column in columns):
        size = builder.node("Add", builder.node("Abs", values), constant([1.0]))
        logs = builder.node("Mul", builder.node("Sign", values), builder.node("Log", size))
        chosen = builder.constant(np.array([column.log for column in columns]))
        values = builder.node("Where", chosen, logs, values)
    values = builder.node("Sub", values, constant([column.mean for column in columns]))
    values = builder.node("Div", values, constant([column.scale for column in columns]))
    limits = [builder.constant(np.array(limit, dtype=np.float64)) for limit in (-clip, clip)]
    values = builder.node("Clip", values, *limits)
    return (
        builder.node("Cast", values, to=TensorProto.FLOAT),
        builder.node("Cast", gaps, to=TensorProto.FLOAT),
        builder.node("Cast", refused, to=TensorProto.FLOAT),
    )


def _add_category(
    builder: GraphBuilder, schema: TableSchema, column: CategoryColumn
) -> tuple[str, str]:
    """Look the text up among the known ones, then its inputs; return them, and 1 for a gap."""
    known = [category for category in column.categories if category != GAP]
    codes = [column.categories.index(category) for category in known]
    unseen, gap = len(column.categories), len(column.categories) + 1
    code = builder.node(
        "LabelEncoder",
        builder.input(column.name, TensorProto.STRING),
        domain="ai.onnx.ml",
        keys_strings=[*known, GAP],
        values_int64s=[*codes, gap],
        default_int64=unseen,
    )
    is_gap = builder.node("Equal", code, builder.constant(np.array(gap, dtype=np.int64)))
    axis = builder.constant(np.array([1], dtype=np.int64))
    is_gap = builder.node("Cast", builder.node("Unsqueeze", is_gap, axis), to=TensorProto.FLOAT)
    known_inputs = builder.constant(_category_inputs(schema, column))
    return builder.node("Gather", known_inputs, code, axis=0), is_gap


def _category_inputs(schema: TableSchema, column: CategoryColumn) -> npt.NDArray[np.float32]:
    """Return the inputs of each category, then those of an unseen one, then those of a gap."""
    texts = [*column.categories, "".join(column.categories) + "?", None]
    read = ReadRows({column.name: pa.array(texts, pa.string())}, len(texts), 1, Unread())
    start = sum(len(each.inputs) for each in schema.columns[: schema.columns.index(column)])
    return inputs_of(schema, read)[:, start : start + len(column.inputs)]


def graph_values(values: Any) -> npt.NDArray[Any]:
    """Return a column that was read as the graph takes it: numbers with NaN, or texts with GAP."""
    if isinstance(values, np.ndarray):
        return values
    filled: npt.NDArray[Any] = np.array(values.fill_null(GAP).to_pylist(), dtype=object)
    return filled
