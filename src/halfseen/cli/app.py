"""The `halfseen` command and the one place where errors become sentences."""

from __future__ import annotations

import json
import os
import sys
import traceback
from importlib.metadata import entry_points
from pkgutil import resolve_name
from typing import Annotated, Any, NoReturn

import typer
from rich.text import Text
from typer.core import TyperGroup

from halfseen.cli.terminal import (
    ESCAPED,
    make_console,
    set_verbosity,
    verbosity,
    with_shared_options,
)
from halfseen.errors import HalfseenError, OptionError, reason

_HELP = {
    "fit": "Learn from a complete, labelled table for one that lacks columns and labels.",
    "fit_images": "Learn from complete images, labelled ones among them, for others that lack a "
    "part and labels.",
    "predict": "Score the rows of a table or the images of a folder: a probability per class, and "
    "the class.",
    "evaluate": "Measure a model on labelled rows: a few dozen of the target's are worth every "
    "estimate.",
    "explain": "Say which columns move each row's answer, and which move the model overall.",
    "measure": "Say which missing columns are worth measuring on the target, and on which rows "
    "first.",
    "inspect": "Say what a model expects of a table or of images, what it was trained on, and its "
    "metrics.",
    "report": "Write one HTML page on a model or a benchmark: what is missing, what shifted, what "
    "to expect.",
    "export": "Write a model as one ONNX graph, from raw columns or pixels to probabilities.",
    "verify": "Check a model's seal, that it holds finite numbers alone, and its answers to known "
    "rows.",
}
"""What the list of commands says of each function."""
_MODULES = {
    "evaluate": "predict",
    "explain": "predict",
    **dict.fromkeys(("report", "export", "verify"), "inspect"),
}
"""The module of each that has none of its own."""
COMMANDS = {
    name.replace("_", "-"): (f"halfseen.cli.{_MODULES.get(name, name)}:{name}", words)
    for name, words in _HELP.items()
}
"""Every command: where it is, and what is said of it."""

PACKAGES = {
    "serve": "halfseen-serve",
    **dict.fromkeys(("bench", "data", "demo"), "halfseen-bench"),
}
"""Commands that packages of their own add, where they are installed."""

for _entry in entry_points(group="halfseen.commands"):
    _entry.load()(COMMANDS)


class LazyGroup(TyperGroup):
    """A group that imports a command when it is called: its help and completion wait for none."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        if args[0] in PACKAGES.keys() - COMMANDS.keys():
            raise OptionError(
                f"`halfseen {args[0]}` is in a package of its own: pip install {PACKAGES[args[0]]}"
            )
        name, command, rest = super().resolve_command(ctx, args)
        return name, imported(name) if name else command, rest


def imported(name: str) -> Any:
    command = resolve_name(COMMANDS[name][0])
    if not isinstance(command, typer.Typer):
        alone = typer.Typer(rich_markup_mode="markdown", add_completion=False)
        alone.command(name)(command)
        command = alone
    return with_shared_options(typer.main.get_command(command))


app = typer.Typer(
    name="halfseen",
    cls=LazyGroup,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
for _name, (_, _help) in COMMANDS.items():
    app.command(_name, help=_help)(lambda: None)


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
    """Predict on a shifted, unlabelled target in which some inputs are never measured.

    Example: halfseen fit source.csv target.csv --label click -o model/
    """


def command(*, whole: bool = False) -> Any:
    """Return the command line; as a whole, for its documentation, it has imported every command."""
    line: Any = typer.main.get_command(app)
    if whole:
        line.commands = {name: imported(name) for name in COMMANDS}
    return line


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
    if "--json" in sys.argv:
        typer.echo(json.dumps({"error": sentence}, ensure_ascii=False).translate(ESCAPED))
    text = Text.assemble(("error: ", "red"), sentence)
    make_console(stderr=True).print(text, soft_wrap=True)
    sys.exit(code)


def _place(error: OSError) -> str:
    """Return which file the system speaks of, shortened where its name is what is wrong."""
    name = "" if error.filename is None else os.fsdecode(error.filename)
    return f"{name if len(name) <= 300 else name[:300] + '...'}: " if name else ""
