"""What the server says about itself: a model's schema, and its OpenAPI document."""

from __future__ import annotations

from typing import Any

from halfseen.data import TableSchema
from halfseen_serve.arrow_body import ARROW
from halfseen_serve.limits import Limits
from halfseen_serve.scorer import Scorer, Scorers

REFUSALS = {
    400: "The body is not JSON, or not an Arrow stream.",
    401: "The token is absent or wrong.",
    408: "The request took too long.",
    413: "The body is too large, or has too many rows.",
    415: "The body is of another type, or compressed.",
    421: "The Host header names another server.",
    422: "A column or a value is not what the model needs.",
    429: "Too many requests are under way, too many bytes, or too many connections.",
    503: "Too many requests are under way.",
}


def output_names(schema: TableSchema) -> list[str]:
    """Return the columns of an answer, the ones that ``halfseen predict`` writes."""
    probabilities = [f"p_{name}" for name in schema.class_names]
    return [*probabilities, "prediction"] if probabilities else ["amount", "low", "high"]


def described_model(scorers: Scorers) -> dict[str, Any]:
    """Return what a client needs to know; statistics of the training data stay inside.

    Where there are several missing patterns, each has its columns.
    """
    schema, patterns = scorers.schema, [_described_pattern(scorer) for scorer in scorers.parts]
    return {
        "label": schema.label,
        "task": schema.target_type.task,
        "classes": list(schema.classes),
        **(patterns[0] if len(patterns) == 1 else {"patterns": patterns}),
        "answers": output_names(schema),
    }


def _described_pattern(scorer: Scorer) -> dict[str, Any]:
    columns = []
    for name, kind, words, categories in scorer.columns:
        known = {} if categories is None else {"categories": categories}
        columns.append({"name": name, "kind": kind, "json": words, **known})
    return {"columns": columns, "not_needed": [column.name for column in scorer.schema.missing]}


def openapi_document(
    scorers: Scorers, limits: Limits, *, token: bool, hosts: bool
) -> dict[str, Any]:
    """Return the OpenAPI document of a server, with or without a token and names of hosts."""
    schema, rows = scorers.schema, {"minItems": 1, "maxItems": limits.max_rows}
    cells = [{c.name: c.json_schema for c in scorer.columns} for scorer in scorers.parts]
    asked = [_table_forms(each, rows, {}) for each in cells]
    between = {"minimum": 0, "maximum": 1} if schema.classes else {}
    answers: dict[str, Any] = {n: {"type": "number", **between} for n in output_names(schema)}
    if schema.classes:
        answers["prediction"] = {"enum": list(schema.classes)}
    texts = {"type": "array", "items": {"type": "string"}}
    answered = _table_forms(answers, {}, {"ignored": texts, "alarms": texts})
    gate = {429} | ({401} if token else set()) | ({421} if hosts else set())
    predict = _operation("Score rows", _json_or_arrow(answered), gate | {400, 408, 413, 415, 422})
    predict["requestBody"] = {
        "required": True,
        "content": _json_or_arrow(asked[0] if len(asked) == 1 else {"anyOf": asked}),
    }
    any_object = {"application/json": {"schema": {"type": "object"}}}
    text = {"text/plain": {"schema": {"type": "string"}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "halfseen", "version": "1"},
        "paths": {
            "/predict": {"post": predict},
            "/schema": {"get": _operation("What the model expects and answers", any_object, gate)},
            "/health": {"get": _operation("Whether the server is up", any_object, set())},
            "/ready": {"get": _operation("Whether it takes one more request", any_object, {503})},
            "/metrics": {"get": _operation("What it has done and holds", text, gate)},
        },
    }


def _operation(summary: str, content: dict[str, Any], refusals: set[int]) -> dict[str, Any]:
    field = {"type": ["string", "null"], "description": "the column that the error speaks of"}
    error = {"application/json": {"schema": _object(error={"type": "string"}, field=field)}}
    responses: dict[str, Any] = {"200": {"description": "The answer.", "content": content}}
    for status in sorted(refusals):
        responses[str(status)] = {"description": REFUSALS[status], "content": error}
    return {"summary": summary, "responses": responses}


def _json_or_arrow(schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "application/json": {"schema": schema},
        ARROW: {"schema": {"type": "string", "format": "binary"}},
    }


def _table_forms(
    values: dict[str, Any], rows: dict[str, int], others: dict[str, Any]
) -> dict[str, Any]:
    """Describe a table as records and as columns; a request may have more columns."""
    closed = {} if rows else {"additionalProperties": False}
    all_there = {} if rows else {"required": list(values)}  # a request may lack some
    record = {"type": "object", **all_there, "properties": values, **closed}
    records = {"type": "array", "items": record, **rows}
    lists = {name: {"type": "array", "items": value, **rows} for name, value in values.items()}
    columns = {**record, "properties": lists}
    return {"oneOf": [_object(records=records, **others), _object(columns=columns, **others)]}


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(properties),
        "properties": properties,
        "additionalProperties": False,
    }
