"""A page about a model for the people who will rely on it, from what the model itself states."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from halfseen.front import CategoryColumn, NumberColumn, TableSchema
from halfseen.front.fronts import ImageFront
from halfseen.labels import class_name
from halfseen.model.model import Model

SHOWN_CATEGORIES = 12


def model_card(model: Model, graph_name: str) -> str:
    """Return the model card as Markdown; `graph_name` is the ONNX file that it lies beside."""
    front = model.front
    takes = _images(front) if isinstance(front, ImageFront) else _columns(front.schema)
    gives, outputs = _answers(model)
    imputes = ", which imputes in a latent space what the target lacks" if model.imputes else ""
    versions = ", ".join(f"{name} {version}" for name, version in model.versions.items())
    sections = [
        f"# Model card: {_plain(takes.label)}",
        f"`{graph_name}` gives {gives.format(_code(takes.label))} for {takes.rows} of a target "
        "population. It was trained by halfseen on a complete, labelled source and an unlabelled "
        f"target in which some {takes.parts} are never measured.",
        "## What it does",
        f"* Method: {model.title}{imputes}.\n"
        f"* {takes.parts.capitalize()} the target lacks, seen in training only: {takes.missing}.\n"
        f"* Seed {model.seed}; trained with {versions or 'unrecorded versions'}.",
        "## Inputs",
        *takes.inputs,
        "## Outputs",
        outputs,
        "```python\n"
        + _example(graph_name, takes.example, model.label_kind.graph_output)
        + "\n```",
        "## How good it was",
        "On rows of the source that were held out of training. The target had no labels, so "
        "nothing here says how good it is there.",
        _facts("measure", model.metrics),
        "## What it learned from",
        _facts("fact", model.training_data),
        "## Where to be careful",
        "* Nothing could check its answers on the target, which had no labels: compare them "
        "with a few labelled target rows before relying on them.\n"
        "* It was fitted to the target given in training. When the target shifts again, fit it "
        f"again.\n{takes.cautions}",
        "## Settings",
        "```json\n" + json.dumps(_settings(model), indent=2) + "\n```",
    ]
    return "\n\n".join(sections) + "\n"


def _answers(model: Model) -> tuple[str, str]:
    """Return what the graph gives of a label, and what its outputs are."""
    classes = ", ".join(f"`{class_name(value)}`" for value in model.front.classes)
    if not classes:
        return (
            "the amount {} with its 90 % interval",
            "`amounts`: float, one row each: the amount, and the lower and upper end of its "
            "interval. `prediction`: the amount.",
        )
    return (
        f"the probability of each class of {{}} ({classes})",
        f"`probabilities`: float, one row each, in the order {classes}. `prediction`: the most "
        "probable class.",
    )


class _Takes(NamedTuple):
    """What a card says of the inputs."""

    label: str
    rows: str
    parts: str
    missing: str
    inputs: tuple[str, ...]
    example: tuple[str, ...]
    cautions: str


def _columns(schema: TableSchema) -> _Takes:
    missing = ", ".join(_code(column.name) for column in schema.missing)
    head = ("column", "kind", "ONNX type", "a gap is", "filled with", "known values")
    return _Takes(
        schema.label,
        "rows",
        "columns",
        missing or "none",
        (
            "One vector per column, with one value per row, in this order or any other.",
            _table(head, [_input_row(column) for column in schema.observed]),
        ),
        tuple(_example_value(column) for column in schema.observed),
        "* Numbers beyond what the source had are clipped after scaling "
        f"(at {schema.clip:g} standard deviations); all categories that training never saw are "
        "treated alike.\n"
        "* The metadata of the graph hold the schema: column names, categories, medians, means "
        "and standard deviations of the source. Whoever has the file can read them.",
    )


def _images(front: ImageFront) -> _Takes:
    shape = front.blocks.shape
    kind = "uint8" if front.of_files else "float32"
    scale = "bytes, 0 to 255" if front.of_files else "single precision, scaled as in training"
    axes = ", ".join(map(str, shape))
    return _Takes(
        "the class of an image",
        "images",
        "pixels",
        f"{int(front.blocks.mask.sum()):,} of {shape[1] * shape[2]:,}",
        (f"`images` of shape (rows, {axes}): {scale}. Missing pixels are not looked at.",),
        (f"'images': numpy.zeros((1, {axes}), numpy.{kind}),",),
        f"* Images must be {shape[2]} pixels wide and {shape[1]} high: resize them before.",
    )


def _settings(model: Model) -> dict[str, Any]:
    """Return the settings of the networks, where there are some, and the weights of all."""
    options = [m.options.model_dump(mode="json") for m in model.members if hasattr(m, "options")]
    return {"weights": list(model.weights.members), **(options[0] if options else {})}


def _input_row(column: NumberColumn | CategoryColumn) -> tuple[str, ...]:
    if isinstance(column, NumberColumn):
        return (_code(column.name), column.kind, "double", "NaN", f"{column.fill:g}", "")
    shown = ", ".join(map(_code, column.categories[:SHOWN_CATEGORIES]))
    more = len(column.categories) - SHOWN_CATEGORIES
    return (
        _code(column.name),
        column.kind,
        "string",
        "the empty text",
        _code(column.fill),
        shown + (f" and {more} more" if more > 0 else ""),
    )


def _example_value(column: NumberColumn | CategoryColumn) -> str:
    kind = "" if isinstance(column, NumberColumn) else ", dtype=object"
    return f"{column.name!r}: numpy.array([{column.fill!r}]{kind}),"


def _example(graph_name: str, inputs: Sequence[str], output: str) -> str:
    return "\n".join(
        [
            "import numpy, onnxruntime",
            f"session = onnxruntime.InferenceSession({graph_name!r})",
            "row = {",
            *(f"    {entry}" for entry in inputs),
            "}",
            f"{output}, prediction = session.run(None, row)",
            f"print({output})",
        ]
    )


def _flat(facts: dict[str, Any], prefix: str = "") -> list[tuple[str, ...]]:
    """Return nested facts as rows, with the path of each as its name."""
    rows: list[tuple[str, ...]] = []
    for name, value in facts.items():
        if isinstance(value, list):
            value = {str(number): entry for number, entry in enumerate(value, start=1)}
        if isinstance(value, dict):
            rows += _flat(value, f"{prefix}{name}.")
        else:
            shown = f"{value:.4g}" if isinstance(value, float) else _plain(str(value))
            rows.append((_plain(f"{prefix}{name}"), shown))
    return rows


def _facts(kind: str, facts: dict[str, Any]) -> str:
    return _table((kind, "value"), _flat(facts)) if facts else "Not recorded."


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _code(text: str) -> str:
    """Quote a name; what would end the quotation or the table cell is replaced."""
    return f"`{_plain(text).replace('`', chr(39))}`"


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
