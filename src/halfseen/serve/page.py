"""The page that explains the server to a person; it needs no other site and no script."""

from __future__ import annotations

import json
from html import escape
from typing import Any


def page(openapi: dict[str, Any], schema: dict[str, Any]) -> str:
    """Return the page as HTML, from the OpenAPI document and the model's schema."""
    lines = [f"Classes: {', '.join(map(str, schema['classes']))}", "", "Paths (/openapi.json)"]
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            lines.append(f"  {method.upper():4} {path:10} {operation['summary']}")
            for status, response in operation["responses"].items():
                lines.append(f"                    {status}: {response['description']}")
    lines += ["", "Columns of a row"]
    for column in schema["columns"]:
        known = ", ".join(column.get("categories", ())[:20])
        lines.append(f"  {column['name']:24} {column['kind']:12} {column['json']:20} {known}")
    example = json.dumps({"records": [{column["name"]: None for column in schema["columns"]}]})
    command = f"curl -H 'Content-Type: application/json' -d '{example}' http://HOST:PORT/predict"
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>halfseen</title>"
        f"<h1>Scoring {escape(schema['label'])}</h1>"
        f"<pre>{escape(chr(10).join([*lines, '', 'Example', f'  {command}']))}</pre></html>"
    )
