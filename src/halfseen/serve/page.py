"""The page that explains the server to a person; it needs no other site and no script."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import Any

__all__ = ["page"]

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse } th, td { text-align: left; padding: .2rem 1rem .2rem 0;
vertical-align: top; border-bottom: 1px solid #ddd } pre { background: #f4f4f4; padding: 1rem;
overflow-x: auto }
"""


def page(openapi: dict[str, Any], schema: dict[str, Any]) -> str:
    """Return the page as HTML, from the OpenAPI document and the model's schema."""
    operations = [
        (method.upper(), path, operation)
        for path, methods in openapi["paths"].items()
        for method, operation in methods.items()
    ]
    paths = [
        (f"{method} {path}", operation["summary"], _statuses(operation))
        for method, path, operation in operations
    ]
    columns = [
        (column["name"], column["kind"], column["json"], _categories(column))
        for column in schema["columns"]
    ]
    example = {"records": [{column["name"]: None for column in schema["columns"]}]}
    command = (
        "curl -H 'Content-Type: application/json' "
        f"-d '{json.dumps(example)}' http://HOST:PORT/predict"
    )
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>halfseen</title>"
        f"<style>{_STYLE}</style><h1>Scoring {escape(schema['label'])}</h1>"
        f"<p>Classes: {escape(', '.join(map(str, schema['classes'])))}. The machine-readable form "
        "of this page is <a href=/openapi.json>/openapi.json</a>.</p>"
        f"<h2>Paths</h2>{_table(('path', 'what it does', 'answers'), paths)}"
        f"<h2>Columns of a row</h2>{_table(('column', 'kind', 'JSON', 'categories'), columns)}"
        f"<h2>Example</h2><pre>{escape(command)}</pre></html>"
    )


def _statuses(operation: dict[str, Any]) -> str:
    return "; ".join(
        f"{status}: {response['description']}"
        for status, response in sorted(operation["responses"].items())
    )


def _categories(column: dict[str, Any]) -> str:
    shown = ", ".join(column.get("categories", ())[:20])
    return shown + (", ..." if len(column.get("categories", ())) > 20 else "")


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    def line(cells: tuple[str, ...], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    return f"<table>{line(head, 'th')}{''.join(line(row, 'td') for row in rows)}</table>"
