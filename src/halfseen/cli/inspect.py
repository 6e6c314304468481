"""`halfseen inspect`: what a model expects, what it was trained on, how good it was."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from halfseen.cli.fit import print_columns, print_metrics
from halfseen.cli.terminal import Json, Terminal

__all__ = ["inspect"]


def inspect(
    model: Annotated[Path, typer.Argument(help="Folder that `halfseen fit` wrote.")],
    as_json: Json = False,
) -> None:
    """Say what a model expects of a table, what it was trained on, and its metrics.

    Example: halfseen inspect model/
    """
    from halfseen.members import NetworksMember
    from halfseen.model.loading import load_table_model

    loaded = load_table_model(model)
    terminal = Terminal(as_json=as_json)
    if as_json:
        terminal.document(loaded.description().model_dump(mode="json", exclude={"sha256", "seal"}))
        return
    schema = loaded.schema
    terminal.result(f"{loaded.title}, trained with seed {loaded.seed}.")
    terminal.result(f"Predicts {schema.label}: {', '.join(schema.class_names)}.")
    print_columns(schema, terminal.results)
    for role, table in loaded.training_data.items():
        files = table["files"] or [{"name": "in memory", "sha256": table["sha256"]}]
        names = ", ".join(file["name"] for file in files)
        hashes = ", ".join(file["sha256"][:12] for file in files)
        terminal.result(f"Trained on {role} {names}: {table['rows']:,} rows, SHA-256 {hashes}.")
    if loaded.metrics:
        print_metrics(loaded.metrics, terminal.results)
    versions = ", ".join(f"{name} {version}" for name, version in loaded.versions.items())
    terminal.result(f"Versions: {versions}.")
    networks = [m for m in loaded.members if isinstance(m, NetworksMember)]
    if networks:
        terminal.settings(networks[0].options)
