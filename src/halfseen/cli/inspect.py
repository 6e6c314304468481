"""`halfseen inspect`: what a model expects, what it was trained on, how good it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from halfseen.cli.fit import plain, print_columns, print_metrics

__all__ = ["inspect"]


def inspect(
    model: Annotated[Path, typer.Argument(help="Folder that `halfseen fit` wrote.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole description.")] = False,
) -> None:
    """Say what a model expects of a table, what it was trained on, and its metrics.

    Example: halfseen inspect model/
    """
    from halfseen.artifact import load_table_model

    loaded = load_table_model(model)
    console = Console()
    if as_json:
        described = loaded.description().model_dump(mode="json", exclude={"sha256"})
        typer.echo(json.dumps(described, indent=2, ensure_ascii=False))
        return
    schema = loaded.schema
    plain(console, f"{loaded.method.name}, trained with seed {loaded.seed}.")
    plain(console, f"Predicts {schema.label}: {', '.join(schema.class_names)}.")
    print_columns(schema, console)
    for role, table in loaded.training_data.items():
        files = ", ".join(file["name"] for file in table["files"])
        hashes = ", ".join(file["sha256"][:12] for file in table["files"])
        plain(console, f"Trained on {role} {files}: {table['rows']:,} rows, SHA-256 {hashes}.")
    if loaded.metrics:
        print_metrics(loaded.metrics, console)
    versions = ", ".join(f"{name} {version}" for name, version in loaded.versions.items())
    plain(console, f"Versions: {versions}.")
