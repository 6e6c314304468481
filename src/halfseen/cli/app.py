"""The `halfseen` command and the one place where errors become sentences."""

from __future__ import annotations

import sys

import typer
from rich.console import Console
from rich.markup import escape

from halfseen.errors import HalfseenError

app = typer.Typer(
    name="halfseen",
    help="Classify a shifted, unlabelled target in which some inputs are never measured.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


@app.callback()
def root() -> None:
    """Classify a shifted, unlabelled target in which some inputs are never measured."""


def main() -> None:
    """Run the command line; a mistake in the input is one sentence and exit code 2."""
    try:
        app()
    except HalfseenError as error:
        Console(stderr=True).print(f"[red]error:[/red] {escape(str(error))}", highlight=False)
        sys.exit(2)
    except KeyboardInterrupt:
        Console(stderr=True).print("Stopped.")
        sys.exit(130)
