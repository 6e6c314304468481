"""The commands `halfseen demo`, `data` and `bench`, added to the library's command line."""

from __future__ import annotations

import typer

from halfseen_bench.cli import bench, data
from halfseen_bench.cli.demo import demo

__all__ = ["add_commands"]


def add_commands(app: typer.Typer) -> None:
    """Add the commands of this package; found by its entry point in ``halfseen.commands``."""
    app.command()(demo)
    app.add_typer(data.app)
    app.add_typer(bench.app)
