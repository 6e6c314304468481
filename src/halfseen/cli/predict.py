"""`halfseen predict`: a model folder and a table in, scores out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from halfseen.cli.fit import plain

__all__ = ["predict"]


def predict(
    model: Annotated[Path, typer.Argument(help="Folder that `halfseen fit` wrote.")],
    data: Annotated[Path, typer.Argument(help="Rows to score: a file or a folder.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File to write: .parquet, .csv or .arrow.")
    ],
    use_missing: Annotated[
        bool, typer.Option(help="Score rows that have the missing block with it.")
    ] = False,
) -> None:
    """Score the rows of a table: one probability per class, and the most probable class.

    Rows keep their order, and id columns are carried through.

    Example: halfseen predict model/ new.parquet -o scores.parquet
    """
    from halfseen.artifact import load_table_model
    from halfseen.tables.files import open_table
    from halfseen.tables.scoring import check_output, score_table

    console, errors = Console(), Console(stderr=True)
    loaded = load_table_model(model)
    with errors.status("Reading the table"):
        table = open_table(data)
    check_output(output, table)
    columns = (
        TextColumn("scoring"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} rows"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=errors, transient=True) as progress:
        task = progress.add_task("scoring", total=None)
        scored = score_table(
            loaded,
            table,
            output,
            use_missing=use_missing,
            on_rows=lambda rows: progress.advance(task, rows),
        )
    for note in scored.notes:
        plain(console, f"Note: {note}")
    rate = scored.rows / max(scored.seconds, 1e-9)
    plain(
        console,
        f"{output}: {scored.rows:,} rows in {scored.seconds:.2f} s, {rate:,.0f} rows a second.",
    )
