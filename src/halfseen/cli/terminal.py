"""What all commands share at the terminal: where text goes, how tables look, how runs end.

Results go to standard output, progress and errors to standard error. With ``--json`` standard
output holds one JSON document and nothing else. Colours are left out where there is no terminal,
and where ``NO_COLOR`` is set.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.segment import Segment
from rich.table import Table

if TYPE_CHECKING:
    from halfseen.options import Options
    from halfseen.progress import FitBar, Progress

EXIT_CODES = {
    0: "done",
    1: "some of the work failed (a run of a sweep), or a mistake in halfseen itself",
    2: "something is wrong with the input or an option; one sentence says what",
    130: "stopped with Ctrl-C",
}
"""How a command can end. `halfseen serve` ends with 0 after SIGTERM."""

WIDE = 160
"""Columns of text that go to a file or another program, where nothing tells a width."""

Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON document; all else goes to standard error."),
]

Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Replace what exists and this command did not write; never what it reads, nor a "
        "file of a model.",
    ),
]

_verbosity = 0


def verbosity() -> int:
    """Return -1 after ``--quiet``, otherwise how often ``-v`` was given."""
    return _verbosity


def set_verbosity(level: int) -> None:
    global _verbosity
    _verbosity = level


class SafeConsole(Console):
    """A console on which no text from a file moves the cursor or changes what is shown."""

    def render(self, *given: Any, **named: Any) -> Iterable[Segment]:
        for piece in super().render(*given, **named):
            yield piece if piece.control else piece._replace(text=printable(piece.text))


def printable(text: str) -> str:
    r"""Return a text with a mark for each character that a terminal acts on instead of showing.

    Examples
    --------
    >>> printable("age\x1b[2J\u202e")
    'age\ufffd[2J\ufffd'
    """
    return text.translate(_ACTED_ON)


_ACTED_ON = dict.fromkeys(
    [
        *(code for code in range(32) if chr(code) not in "\n\t"),
        *range(0x7F, 0xA0),
        *range(0x202A, 0x202F),  # these and the next turn the direction of writing
        *range(0x2066, 0x206A),
        *range(0xD800, 0xE000),  # halves of pairs, which cannot be written at all
    ],
    "\ufffd",
)
ESCAPED = {code: f"\\u{code:04x}" for code in _ACTED_ON if code >= 0x7F}
"""As JSON writes them; it escapes those below by itself."""


def make_console(*, stderr: bool = False, quiet: bool = False) -> Console:
    """Return a console that is wide where there is no terminal to tell a width."""
    console = SafeConsole(stderr=stderr, quiet=quiet)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDE
    return console


class Terminal:
    """Where one command says what.

    `results` is the console for what the command was asked for, `console` for everything around it
    and `errors` for progress; the last two are silent with ``--quiet``. With `as_json` or
    `piped` standard output is for data alone.
    """

    def __init__(self, *, as_json: bool = False, piped: bool = False) -> None:
        quiet = verbosity() < 0
        self.as_json = as_json
        self.results = make_console(stderr=as_json or piped)
        self.console = make_console(stderr=as_json or piped, quiet=quiet)
        self.errors = make_console(stderr=True, quiet=quiet)

    def say(self, sentence: str) -> None:
        plain(self.console, sentence)

    def detail(self, sentence: str) -> None:
        if verbosity() > 0:
            plain(self.errors, sentence)

    def settings(self, options: Options) -> None:
        from halfseen.options import dotted

        for name, value in dotted(options.model_dump(exclude_none=True)).items():
            self.detail(f"  {name} = {value!r}")

    def result(self, sentence: str) -> None:
        plain(self.results, sentence)

    def document(self, data: Mapping[str, Any]) -> None:
        if self.as_json:
            text = json.dumps(plain_data(data), indent=2, ensure_ascii=False, allow_nan=False)
            typer.echo(text.translate(ESCAPED))

    def status(self, doing: str) -> AbstractContextManager[Any]:
        return self.errors.status(doing) if self.errors.is_terminal else nullcontext()

    def fit_progress(self) -> AbstractContextManager[FitBar | None]:
        from halfseen.progress import FitBar

        return nullcontext() if self.errors.quiet else FitBar()

    @contextmanager
    def counter(self, doing: str) -> Iterator[Callable[[int], None]]:
        """Show how many rows were worked on; give the function that is told of more."""
        if not self.errors.is_terminal:
            yield lambda count: None
            return
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        text = TextColumn("{task.completed:,.0f}")
        columns = (TextColumn(doing), BarColumn(), text, TimeElapsedColumn())
        with Progress(*columns, console=self.errors, transient=True) as progress:
            task = progress.add_task(doing, total=None)
            yield lambda count: progress.advance(task, count)

    def progress(self, title: str) -> Progress:
        from halfseen.progress import Progress, ProgressBar

        return Progress() if self.errors.quiet else ProgressBar(title)


def new_table(*headings: str, title: str | None = None, numbers: bool = False) -> Table:
    """Return an empty table in the look of all commands; the columns of numbers align right."""
    table = Table(box=None, pad_edge=False, title=title, title_justify="left")
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if numbers and place else "left")
    return table


def plain(console: Console, text: str) -> None:
    console.print(escape(text), soft_wrap=True, highlight=False)


def print_failures(failures: Iterable[str], console: Console) -> None:
    for failure in failures:
        text = f"[red]failed:[/red] {escape(str(failure))}"
        console.print(text, soft_wrap=True, highlight=False)


def plain_data(value: Any) -> Any:
    """Return data as JSON knows them: what is not a number becomes null, a path its text."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {str(key): plain_data(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain_data(entry) for entry in value]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):  # NumPy's arrays and numbers
        return plain_data(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def with_shared_options(command: Any) -> Any:
    """Give a command, or a group with all of its commands, ``-v`` and ``-q``."""
    for part in getattr(command, "commands", {}).values():
        with_shared_options(part)
    if not hasattr(command, "commands"):
        nothing_else = typer.Typer(add_completion=False)
        nothing_else.command()(_shared)
        command.params += typer.main.get_command(nothing_else).params
    return command


def _set_quiet(given: bool) -> None:
    if given:
        set_verbosity(-1)


def _shared(
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            callback=set_verbosity,
            expose_value=False,
            is_eager=True,  # before the next one, which replaces it
            help="Say more: -v every setting, -vv also where an error came from.",
        ),
    ] = 0,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet",
            "-q",
            callback=_set_quiet,
            expose_value=False,
            help="Say less: results and errors alone.",
        ),
    ] = False,
) -> None:
    """Hold the options that every command has."""
