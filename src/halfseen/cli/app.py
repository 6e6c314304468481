"""The `halfseen` command and the one place where errors become sentences."""

from __future__ import annotations

import os
import sys
import traceback
from importlib.metadata import entry_points
from typing import Annotated, Any, NoReturn

import typer
from rich.text import Text

from halfseen.cli.evaluate import evaluate
from halfseen.cli.explain import explain
from halfseen.cli.export import export
from halfseen.cli.fit import fit
from halfseen.cli.fit_images import fit_images
from halfseen.cli.inspect import inspect
from halfseen.cli.predict import predict
from halfseen.cli.rehearse import rehearse
from halfseen.cli.report import report
from halfseen.cli.serve import serve
from halfseen.cli.terminal import make_console, set_verbosity, verbosity, with_shared_options
from halfseen.cli.tune import tune
from halfseen.cli.verify import sign, verify
from halfseen.errors import HalfseenError, reason

app = typer.Typer(
    name="halfseen",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from halfseen import __version__

        typer.echo(f"halfseen {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print it."),
    ] = False,
) -> None:
    """Classify a shifted, unlabelled target in which some inputs are never measured.

    Example: halfseen fit source.csv target.csv --label click -o model/
    """


for _command in (
    fit, fit_images, tune, predict, evaluate, explain, rehearse, inspect, report, export, serve,
    verify, sign,
):  # fmt: skip
    app.command()(_command)


def add_installed(app: typer.Typer) -> None:
    """Add the commands of installed packages: `bench`, `data` and `demo` come from one."""
    for entry in entry_points(group="halfseen.commands"):
        entry.load()(app)


add_installed(app)


def command() -> Any:
    """Return the whole command line, as it is run and as the documentation shows it."""
    return with_shared_options(typer.main.get_command(app))


def main() -> None:
    """Run the command line; a mistake in the input is one sentence and exit code 2, ours 1."""
    set_verbosity(0)
    try:
        command()(prog_name="halfseen")
    except HalfseenError as error:
        _refuse(str(error))
    except OSError as error:
        _refuse(f"{_place(error)}{reason(error)}")
    except MemoryError:
        _refuse("There is not enough memory; give fewer rows or columns, or a lower memory_mib.")
    except Exception as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        _refuse(f"halfseen failed ({said}). This is a fault of its own: -vv shows where.", code=1)
    except KeyboardInterrupt:
        make_console(stderr=True).print("Stopped.")
        sys.exit(130)


def _refuse(sentence: str, code: int = 2) -> NoReturn:
    """Print one sentence and end; the traceback is for those who ask twice for more."""
    if verbosity() > 1:
        traceback.print_exc()
    rank = os.environ.get("RANK", "0")  # set by torchrun
    kind = "error" if rank == "0" else f"error in process {rank}"
    text = Text.assemble((f"{kind}: ", "red"), sentence)
    make_console(stderr=True).print(text, soft_wrap=True)
    sys.exit(code)


def _place(error: OSError) -> str:
    """Return which file the system speaks of, shortened where its name is what is wrong."""
    name = "" if error.filename is None else os.fsdecode(error.filename)
    return f"{name if len(name) <= 300 else name[:300] + '...'}: " if name else ""
