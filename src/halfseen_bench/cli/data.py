"""``halfseen data``: list, get, describe and export data sets."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from halfseen.cli.terminal import Force, Json, Terminal, new_table
from halfseen.errors import OptionError
from halfseen.outputs import Output, check_outputs, head

if TYPE_CHECKING:  # the library is imported when a command runs: help must not wait for it
    from halfseen_bench.data.catalog import DataSet, Family
    from halfseen_bench.data.check import Finding
    from halfseen_bench.data.pairs import DomainPair

app = typer.Typer(
    name="data",
    help="List, fetch, describe and export data sets.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
)

DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="Data folder; otherwise $HALFSEEN_DATA, otherwise the user cache directory.",
    ),
]
Name = Annotated[str, typer.Argument(help="A data set or a family, as `halfseen data list` shows.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="An option of the reader; may be repeated."),
]


@app.command("list")
def list_(data_dir: DataDir = None, as_json: Json = False) -> None:
    """Show every data set, its licence, and whether its files are there.

    Example: halfseen data list --data-dir ~/data
    """
    from halfseen_bench.data.catalog import data_folder, data_sets

    root = data_folder(data_dir)
    terminal = Terminal(as_json=as_json)
    sets = [
        {name: getattr(data_set, name) for name in ("name", "family", "what", "licence", "page")}
        | {"here": "yes" if (root / data_set.name).is_dir() else "no"}
        for data_set in data_sets()
    ]
    what = "simulated ads with known truth, any size"
    sets.append(
        dict(name="ads-sim", family="ads-sim", what=what, licence="none", here="made", page=None)
    )
    if as_json:
        terminal.document({"data_folder": root, "data_sets": sets})
        return
    headings = ("name", "family", "what", "licence", "here")
    table = new_table(*headings)
    for entry in sets:
        table.add_row(*(escape(str(entry[heading])) for heading in headings))
    terminal.results.print(table, highlight=False)
    terminal.result(f"\nData folder: {root}")
    for entry in sets[:-1]:
        terminal.result(f"{entry['name']}: {entry['page']}")


@app.command()
def get(name: Name, data_dir: DataDir = None) -> None:
    """Fetch a data set from its official addresses; go on where an earlier call stopped.

    What is there already is kept, unless it is known to be wrong, and what it is is said.

    Example: halfseen data get mnist
    """
    from halfseen_bench.data.catalog import data_folder, data_sets

    root = data_folder(data_dir)
    terminal = Terminal()
    wanted = list(data_sets(name))
    if not wanted:
        terminal.result(f"{name} is simulated: there is nothing to fetch.")
    for data_set in wanted:
        terminal.result(f"{data_set.name}: licence {data_set.licence}; see {data_set.page}")
        for finding in _fetched(root, data_set, terminal):
            terminal.result(f"{root / finding.path}: {finding.detail}")


@app.command()
def card(
    name: Name,
    pair: Annotated[str | None, typer.Argument(help="source:target, as in dvd:kitchen.")] = None,
    settings: Settings = None,
    data_dir: DataDir = None,
) -> None:
    """Describe a pair: what, where from, licence, counts, what is missing where.

    For the simulator, also the cross-entropy of the best possible predictors.

    Example: halfseen data card heart cleveland:va --set evaluation=split
    """
    from halfseen_bench.data.catalog import family
    from halfseen_bench.data.simulator import Scenario, yardsticks

    of = family(name)
    options = settings_of("--set", settings)
    terminal = Terminal()
    loaded = _load(of, pair, options, data_dir, terminal)
    table = new_table()
    table.show_header = False
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    shown = loaded.card
    lines = [("pair", loaded.name)]
    lines += [(key, getattr(shown, key)) for key in ("what", "origin", "licence", "missing")]
    lines += [("rows", f"{count:,} {what}") for what, count in shown.counts.items()]
    for key, text in lines:
        table.add_row(key, escape(text))
    terminal.results.print(table, highlight=False)
    if of.name == "ads-sim":
        heads = ("cross-entropy on the target", "expected", "Monte Carlo", "± standard error")
        table = new_table(*heads, numbers=True)
        for line in yardsticks(Scenario.of(options)):
            numbers = (line.expected, line.monte_carlo, line.standard_error)
            table.add_row(line.predictor, *(f"{number:.4f}" for number in numbers))
        terminal.results.print()
        terminal.results.print(table, highlight=False)


@app.command()
def export(
    name: Name,
    pair: Annotated[str, typer.Argument(help="source:target, as in cleveland:hungarian.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write into.")],
    format: Annotated[str, typer.Option(help="parquet or csv.")] = "parquet",
    settings: Settings = None,
    data_dir: DataDir = None,
    force: Force = False,
) -> None:
    """Write a pair as two tables a person could have been given, and the labels apart.

    source.* has every column and the label, target.* only what is observed there, and
    target_labels.* the sealed labels, row by row.

    Example: halfseen data export heart cleveland:hungarian -o heart/ --format csv
    """
    from halfseen_bench.data import simulator
    from halfseen_bench.data.catalog import family
    from halfseen_bench.data.export import WRITERS, pair_tables, simulated_tables, write_tables

    of = family(name)
    options = settings_of("--set", settings)
    terminal = Terminal()
    if format not in WRITERS:
        raise OptionError(f"--format {format} is unknown; choose {' or '.join(WRITERS)}.")
    if not of.is_table:
        raise OptionError(f"{of.name} holds images; only tables can be exported.")
    files = [f"{table}.{format}" for table in ("source", "target", "target_labels")]
    check_outputs(
        [Output(output / file, f"the file {file}", _is_exported) for file in (*files, "card.json")],
        data_inputs(data_dir),
        force=force,
    )
    if of.name == "ads-sim":  # of any size: drawn as it is written
        scenario = simulator.Scenario.of(options)
        _load(of, pair, {"rows": 1, "test_rows": 1}, data_dir, terminal)
        chunks, described = simulated_tables(scenario), simulator.card(scenario)
        classes: tuple[str, ...] = simulator.CLASSES
        expected = 2 * (scenario.rows + scenario.test_rows)
    else:
        loaded = _load(of, pair, options, data_dir, terminal)
        chunks, described, expected = pair_tables(loaded), loaded.card, None
        classes = loaded.classes
    columns = (TextColumn("rows"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=terminal.errors, transient=True) as progress:
        task = progress.add_task("rows", total=expected)

        def counted() -> Any:
            for table_name, table in chunks:
                yield table_name, table
                if table_name != "target_labels":
                    progress.advance(task, len(table))

        rows = write_tables(output, counted(), described, classes=classes, format=format)
    for table_name, count in rows.items():
        terminal.result(f"{output / f'{table_name}.{format}'}: {count:,} rows")


def data_inputs(data_dir: Path | None) -> dict[str, Path | None]:
    """Return the folders of the data sets, into which nothing is written."""
    from halfseen_bench.data.catalog import data_folder, data_sets

    root = data_folder(data_dir)
    return {f"the data set {found.name}": root / found.name for found in data_sets()}


def settings_of(flag: str, given: list[str] | None) -> dict[str, Any]:
    """Read ``key=value`` pairs; a value is a number, true, false, null or a word."""
    options: dict[str, Any] = {}
    for setting in given or []:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise OptionError(f"{flag} {setting}: write KEY=VALUE, as in {flag} seed=1.")
        try:
            options[key.strip()] = json.loads(value)
        except json.JSONDecodeError:
            options[key.strip()] = value
    return options


def _fetched(root: Path, data_set: DataSet, terminal: Terminal) -> list[Finding]:
    """Fetch with one progress bar per file."""
    from halfseen_bench.data.obtain import obtain

    columns = (
        *(TextColumn("{task.description}"), BarColumn(), DownloadColumn()),
        *(TransferSpeedColumn(), TimeRemainingColumn()),
    )
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=terminal.errors, transient=True) as progress:

        def show(what: str, done: int, total: int | None) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=total)
            progress.update(tasks[what], completed=done, total=total)

        return obtain(root, data_set, progress=show)


def _is_exported(path: Path) -> bool:
    """Whether a file stands beside the card of an export."""
    return b'"licence"' in head(path.with_name("card.json"))


def _load(
    of: Family, pair: str | None, options: dict[str, Any], data_dir: Path | None, terminal: Terminal
) -> DomainPair:
    from halfseen_bench.data.catalog import data_folder, parse_pair

    parameters = inspect.signature(of.reader.load_pair).parameters
    known = {n: p.default for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY}
    for key, value in options.items() if known else ():  # the simulator checks its own
        if key not in known:
            raise OptionError(f"{of.name} has no option {key!r}; it has {', '.join(known)}.")
        default = known[key]
        kinds = (int, float) if isinstance(default, float) else (type(default),)
        if default is not None and type(value) not in kinds:
            raise OptionError(
                f"--set {key}={value} does not fit: it is {default!r} unless you say otherwise."
            )
    source, target = parse_pair(pair, of)
    with terminal.status(f"Reading {of.name}"):
        pair_: DomainPair = of.reader.load_pair(data_folder(data_dir), source, target, **options)
    return pair_
