"""The `halfseen` command and the one place where errors become sentences."""

from __future__ import annotations

import sys

import typer
from rich.console import Console
from rich.text import Text

from halfseen.cli import bench, data
from halfseen.cli.demo import demo
from halfseen.cli.export import export
from halfseen.cli.fit import fit
from halfseen.cli.inspect import inspect
from halfseen.cli.predict import predict
from halfseen.cli.rehearse import rehearse
from halfseen.cli.report import report
from halfseen.cli.serve import serve
from halfseen.cli.tune import tune
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


app.command()(demo)
app.command()(fit)
app.command()(tune)
app.command()(predict)
app.command()(rehearse)
app.command()(inspect)
app.command()(report)
app.command()(export)
app.command()(serve)
app.add_typer(data.app)
app.add_typer(bench.app)


def main() -> None:
    """Run the command line; a mistake in the input is one sentence and exit code 2."""
    try:
        app()
    except HalfseenError as error:
        sentence = Text.assemble(("error: ", "red"), str(error))
        Console(stderr=True).print(sentence, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        Console(stderr=True).print("Stopped.")
        sys.exit(130)
