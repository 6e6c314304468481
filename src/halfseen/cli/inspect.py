"""`halfseen inspect`: what a model expects, what it was trained on, how good it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from halfseen.cli.fit import plain, print_columns, print_metrics
from halfseen.errors import InputError

if TYPE_CHECKING:
    from halfseen.tables.model import TableModel

__all__ = ["inspect", "load_table_model"]


def inspect(
    model: Annotated[Path, typer.Argument(help="Folder that `halfseen fit` wrote.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole description.")] = False,
) -> None:
    """Say what a model expects of a table, what it was trained on, and its metrics.

    Example: halfseen inspect model/
    """
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


def load_table_model(folder: Path) -> TableModel:
    """Load a model that takes tables, or say what else the folder holds."""
    from halfseen.artifact import load
    from halfseen.tables.model import TableModel

    loaded = load(folder)
    if not isinstance(loaded, TableModel):
        raise InputError(
            f"{folder} holds a {type(loaded).__name__}, which takes arrays and data frames: use "
            "it in Python with halfseen.load. `halfseen fit` makes models that take tables."
        )
    return loaded
