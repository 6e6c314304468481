"""A page about a model for the people who will rely on it, from what the model itself states."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from halfseen.data import CategoryColumn, NumberColumn, TableSchema
from halfseen.data.preprocessors import ImagePreprocessor
from halfseen.model.model import Model
from halfseen.targets import class_name

SHOWN_CATEGORIES = 12
CARD = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")
OF_CLASSES = {
    "gives": "the probability of each class of {label} ({classes})",
    "outputs": "`probabilities`: float, one row each, in the order {classes}. `prediction`: the "
    "most probable class.",
}
OF_AMOUNTS = {
    "gives": "the amount {label} with its 90 % interval",
    "outputs": "`amounts`: float, one row each: the amount, and the lower and upper end of its "
    "interval. `prediction`: the amount.",
}


def model_card(model: Model, graph_name: str) -> str:
    """Return the model card as Markdown; `graph_name` is the ONNX file that it lies beside."""
    preprocessor = model.preprocessor
    takes = (
        _images(preprocessor)
        if isinstance(preprocessor, ImagePreprocessor)
        else _columns(preprocessor.schema)
    )
    classes = ", ".join(f"`{class_name(value)}`" for value in preprocessor.classes)
    gives = OF_CLASSES if classes else OF_AMOUNTS
    label = _code(takes["title"])
    imputes = "; what the target lacks is imputed in a latent space" if model.imputes else ""
    versions = ", ".join(f"{name} {version}" for name, version in model.versions.items())
    options = [m.options.model_dump(mode="json") for m in model.members if hasattr(m, "options")]
    settings = {"weights": list(model.weights.members), **(options[0] if options else {})}
    return CARD.format(
        **takes | {"title": _plain(takes["title"]), "Parts": takes["parts"].capitalize()},
        **{name: text.format(label=label, classes=classes) for name, text in gives.items()},
        graph=graph_name,
        method=model.title + imputes,
        seed=model.seed,
        versions=versions or "unrecorded versions",
        output=model.target_type.graph_output,
        measures=_json(model.metrics),
        facts=_json(model.training_data),
        settings=_json(settings),
    )


def _columns(schema: TableSchema) -> dict[str, str]:
    """Return what a card says of a table's columns."""
    head = ("column", "kind", "ONNX type", "a gap is", "filled with", "known values")
    rows = [_input_row(column) for column in schema.observed]
    return {
        "title": schema.label,
        "rows": "rows",
        "parts": "columns",
        "missing": ", ".join(_code(column.name) for column in schema.missing) or "none",
        "inputs": "One vector per column, with one value per row, in this order or any other.\n\n"
        + "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)),
        "example": "\n    ".join(
            f"{c.name!r}: numpy.array([{c.fill!r}]"
            f"{'' if isinstance(c, NumberColumn) else ', dtype=object'}),"
            for c in schema.observed
        ),
        "cautions": "* Numbers beyond what the source had are clipped after scaling "
        f"(at {schema.clip:g} standard deviations); all categories that training never saw are "
        "treated alike.\n"
        "* The metadata of the graph hold the schema: column names, categories, medians, means "
        "and standard deviations of the source. Whoever has the file can read them.",
    }


def _images(preprocessor: ImagePreprocessor) -> dict[str, str]:
    """Return what a card says of images."""
    shape = preprocessor.blocks.shape
    kind = "uint8" if preprocessor.scale == "bytes" else "float32"
    scale = "bytes, 0 to 255" if kind == "uint8" else "single precision, scaled as in training"
    axes = ", ".join(map(str, shape))
    return {
        "title": "the class of an image",
        "rows": "images",
        "parts": "pixels",
        "missing": f"{int(preprocessor.blocks.mask.sum()):,} of {shape[1] * shape[2]:,}",
        "inputs": f"`images` of shape (rows, {axes}): {scale}. Missing pixels are not looked at.",
        "example": f"'images': numpy.zeros((1, {axes}), numpy.{kind}),",
        "cautions": f"* Images must be {shape[2]} pixels wide and {shape[1]} high: resize them "
        "before.",
    }


def _input_row(column: NumberColumn | CategoryColumn) -> tuple[str, ...]:
    name = _code(column.name)
    if isinstance(column, NumberColumn):
        return (name, column.kind, "double", "NaN", f"{column.fill:g}", "")
    shown = ", ".join(map(_code, column.categories[:SHOWN_CATEGORIES]))
    more = len(column.categories) - SHOWN_CATEGORIES
    known = shown + (f" and {more} more" if more > 0 else "")
    return (name, column.kind, "string", "the empty text", _code(column.fill), known)


def _json(facts: dict[str, Any]) -> str:
    """Return facts as a block; in JSON no name begins a line, so that none can end the block."""
    text = json.dumps(facts, indent=2, ensure_ascii=False)
    return f"```json\n{text}\n```" if facts else "Not recorded."


def _code(text: str) -> str:
    """Quote a name; what would end the quotation or the table cell is replaced."""
    return f"`{_plain(text).replace('`', chr(39))}`"


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
