"""What the server says about itself: the schema of a model, and JSON Schemas for OpenAPI."""

from __future__ import annotations

from typing import Any

from halfseen.front import CategoryColumn, TableSchema
from halfseen.serve.arrow_body import ARROW
from halfseen.serve.json_body import expectation
from halfseen.serve.limits import Limits

__all__ = ["REFUSALS", "describe", "output_names", "request_body", "success"]

ERROR = {
    "type": "object",
    "required": ["error", "field"],
    "properties": {
        "error": {"type": "string", "description": "what was wrong and what to do"},
        "field": {"type": ["string", "null"], "description": "the column it speaks of"},
    },
    "additionalProperties": False,
}

_REASONS = {
    400: "The body is not JSON, or not an Arrow stream.",
    401: "The token is absent or wrong.",
    408: "The request took too long.",
    413: "The body is too large, or has too many rows.",
    415: "The body is of another type, or compressed.",
    422: "A column or a value is not what the model needs.",
    429: "Too many requests are under way.",
}

REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"description": reason, "content": {"application/json": {"schema": ERROR}}}
    for status, reason in _REASONS.items()
}


def output_names(schema: TableSchema) -> list[str]:
    """Return the columns of an answer, the ones that ``halfseen predict`` writes."""
    return [*(f"p_{name}" for name in schema.class_names), "prediction"]


def describe(schema: TableSchema) -> dict[str, Any]:
    """Return what a client needs to know; statistics of the training data stay inside."""
    columns = []
    for column in schema.observed:
        known = {"categories": column.categories} if isinstance(column, CategoryColumn) else {}
        columns.append(
            {"name": column.name, "kind": column.kind, "json": expectation(column).words, **known}
        )
    return {
        "label": schema.label,
        "classes": list(schema.classes),
        "columns": columns,
        "not_needed": [column.name for column in schema.missing],
        "answers": output_names(schema),
    }


def request_body(schema: TableSchema, limits: Limits) -> dict[str, Any]:
    """Return the OpenAPI description of what ``/predict`` takes."""
    values = {column.name: dict(expectation(column).schema) for column in schema.observed}
    record = {"type": "object", "required": list(values), "properties": values}
    lists = {
        name: {"type": "array", "items": value, "minItems": 1, "maxItems": limits.max_rows}
        for name, value in values.items()
    }
    table = {
        "type": "object",
        "required": list(lists),
        "properties": lists,
        "description": "All columns have the same length.",
    }
    rows = {"type": "array", "items": record, "minItems": 1, "maxItems": limits.max_rows}
    return {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"oneOf": [_only("records", rows), _only("columns", table)]}
            },
            ARROW: {"schema": {"type": "string", "format": "binary"}},
        },
    }


def success(schema: TableSchema) -> dict[str, Any]:
    """Return the OpenAPI description of an answer, in the form of the request."""
    probability = {"type": "number", "minimum": 0, "maximum": 1}
    *probabilities, prediction = output_names(schema)
    values: dict[str, Any] = {name: probability for name in probabilities}
    values[prediction] = {"enum": list(schema.classes)}
    record = {
        "type": "object",
        "required": list(values),
        "properties": values,
        "additionalProperties": False,
    }
    lists = {name: {"type": "array", "items": value} for name, value in values.items()}
    table = {**record, "properties": lists}
    ignored = {
        "type": "array",
        "items": {"type": "string"},
        "description": "columns of the request that the model does not look at",
    }
    return {
        "description": "Probabilities and the most probable class, in the order of the rows.",
        "content": {
            "application/json": {
                "schema": {
                    "oneOf": [
                        _only("records", {"type": "array", "items": record}, ignored=ignored),
                        _only("columns", table, ignored=ignored),
                    ]
                }
            },
            ARROW: {"schema": {"type": "string", "format": "binary"}},
        },
    }


def _only(name: str, value: dict[str, Any], **others: dict[str, Any]) -> dict[str, Any]:
    properties = {name: value, **others}
    return {
        "type": "object",
        "required": list(properties),
        "properties": properties,
        "additionalProperties": False,
    }
