"""What the server says about itself: a model's schema, its OpenAPI document, a page for people."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import Any

from halfseen.front import CategoryColumn, TableSchema
from halfseen.serve.arrow_body import ARROW
from halfseen.serve.cells import expectation, request_columns
from halfseen.serve.limits import Limits

REFUSALS = {
    400: "The body is not JSON, or not an Arrow stream.",
    401: "The token is absent or wrong.",
    408: "The request took too long.",
    413: "The body is too large, or has too many rows.",
    415: "The body is of another type, or compressed.",
    421: "The Host header names another server.",
    422: "A column or a value is not what the model needs.",
    429: "Too many requests are under way, too many bytes, or too many connections.",
    503: "As many requests as the server takes are under way.",
}


def output_names(schema: TableSchema) -> list[str]:
    """Return the columns of an answer, the ones that ``halfseen predict`` writes."""
    probabilities = [f"p_{name}" for name in schema.class_names]
    return [*probabilities, "prediction"] if probabilities else ["amount", "low", "high"]


def describe(schemas: Sequence[TableSchema]) -> dict[str, Any]:
    """Return what a client needs to know; statistics of the training data stay inside.

    Where there are several missing patterns, each has its columns.
    """
    patterns = [_pattern(schema) for schema in schemas]
    return {
        "label": schemas[0].label,
        "task": schemas[0].label_kind.task,
        "classes": list(schemas[0].classes),
        **(patterns[0] if len(patterns) == 1 else {"patterns": patterns}),
        "answers": output_names(schemas[0]),
    }


def _pattern(schema: TableSchema) -> dict[str, Any]:
    columns = []
    for column in request_columns(schema):
        known = {"categories": column.categories} if isinstance(column, CategoryColumn) else {}
        columns.append(
            {"name": column.name, "kind": column.kind, "json": expectation(column).words, **known}
        )
    return {"columns": columns, "not_needed": [column.name for column in schema.missing]}


def openapi(
    schemas: Sequence[TableSchema], limits: Limits, *, token: bool, hosts: bool
) -> dict[str, Any]:
    """Return the OpenAPI document of a server, with or without a token and names of hosts."""
    schema, bounds = schemas[0], {"minItems": 1, "maxItems": limits.max_rows}
    taken = [{c.name: expectation(c).schema for c in request_columns(schema)} for schema in schemas]
    forms = [_forms(columns, bounds, {}) for columns in taken]
    asked = forms[0]
    if len(forms) > 1:
        asked["application/json"] = {
            "schema": {"anyOf": [form["application/json"]["schema"] for form in forms]}
        }
    between = {"minimum": 0, "maximum": 1} if schema.classes else {}
    answers: dict[str, Any] = {n: {"type": "number", **between} for n in output_names(schema)}
    if schema.classes:
        answers["prediction"] = {"enum": list(schema.classes)}
    answered = _forms(
        answers,
        {},
        {key: {"type": "array", "items": {"type": "string"}} for key in ("ignored", "alarms")},
    )
    gate = {429} | ({401} if token else set()) | ({421} if hosts else set())
    any_object = {"application/json": {"schema": {"type": "object"}}}
    text = {"text/plain": {"schema": {"type": "string"}}}
    predict = _operation("Score rows", answered, gate | {400, 408, 413, 415, 422})
    predict["requestBody"] = {"required": True, "content": asked}
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
    error = {"application/json": {"schema": _object(error={"type": "string"}, field=_NAME)}}
    responses: dict[str, Any] = {"200": {"description": "The answer.", "content": content}}
    for status in sorted(refusals):
        responses[str(status)] = {"description": REFUSALS[status], "content": error}
    return {"summary": summary, "responses": responses}


_NAME = {"type": ["string", "null"], "description": "the column that the error speaks of"}


def _forms(
    values: dict[str, Any], bounds: dict[str, int], others: dict[str, Any]
) -> dict[str, Any]:
    """Describe a table as records, as columns and as Arrow; a request may have more columns."""
    closed = {} if bounds else {"additionalProperties": False}
    record = {"type": "object", "required": list(values), "properties": values, **closed}
    rows = {"type": "array", "items": record, **bounds}
    lists = {name: {"type": "array", "items": value, **bounds} for name, value in values.items()}
    table = {**record, "properties": lists}
    forms = [_object(records=rows, **others), _object(columns=table, **others)]
    return {
        "application/json": {"schema": {"oneOf": forms}},
        ARROW: {"schema": {"type": "string", "format": "binary"}},
    }


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(properties),
        "properties": properties,
        "additionalProperties": False,
    }


def page(openapi: dict[str, Any], schema: dict[str, Any]) -> str:
    """Return both as HTML that needs no other site and no script."""
    lines = [f"Classes: {', '.join(map(str, schema['classes']))}", "", "Paths (/openapi.json)"]
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            lines.append(f"  {method.upper():4} {path:10} {operation['summary']}")
            for status, response in operation["responses"].items():
                lines.append(f"                    {status}: {response['description']}")
    patterns = schema.get("patterns", [schema])
    for pattern in patterns:
        lacks = f" that lacks {', '.join(pattern['not_needed'])}" if len(patterns) > 1 else ""
        lines += ["", f"Columns of a row{lacks}"]
        for column in pattern["columns"]:
            known = ", ".join(column.get("categories", ())[:20])
            lines.append(f"  {column['name']:24} {column['kind']:12} {column['json']:20} {known}")
    row = {column["name"]: None for column in patterns[0]["columns"]}
    example = json.dumps({"records": [row]})
    command = f"curl -H 'Content-Type: application/json' -d '{example}' http://HOST:PORT/predict"
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>halfseen</title>"
        f"<h1>Scoring {escape(schema['label'])}</h1>"
        f"<pre>{escape(chr(10).join([*lines, '', 'Example', f'  {command}']))}</pre></html>"
    )
