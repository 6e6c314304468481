"""``halfseen data``: list, get, check, describe and export data sets."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
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
from rich.table import Table

from halfseen.errors import InputError, OptionError

if TYPE_CHECKING:  # the library is imported when a command runs: help must not wait for it
    from halfseen.data.catalog import DataSet, Family
    from halfseen.data.check import Finding
    from halfseen.data.export import Format
    from halfseen.data.pairs import Card, DomainPair
    from halfseen.data.simulator import Scenario

app = typer.Typer(
    name="data",
    help="List, fetch, check, describe and export data sets.",
    no_args_is_help=True,
    rich_markup_mode="rich",
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

_COLOURS = {"official": "green", "readable": "green", "subset": "yellow"}


@app.command("list")
def list_(data_dir: DataDir = None) -> None:
    """Show every data set, its licence, and whether its files are there.

    Example: halfseen data list --data-dir ~/data
    """
    from halfseen.data.catalog import data_folder, data_sets

    root = data_folder(data_dir)
    table = Table("name", "family", "what", "licence", "here", box=None, pad_edge=False)
    for data_set in data_sets():
        here = "yes" if (root / data_set.name).is_dir() else "no"
        table.add_row(data_set.name, data_set.family, data_set.what, data_set.licence, here)
    table.add_row("ads-sim", "ads-sim", "simulated ads with known truth, any size", "none", "made")
    console = Console()
    console.print(table)
    console.print(f"\nData folder: {escape(str(root))}", soft_wrap=True)
    for data_set in data_sets():
        console.print(f"{data_set.name}: {data_set.page}", soft_wrap=True, highlight=False)


@app.command()
def get(name: Name, data_dir: DataDir = None) -> None:
    """Fetch a data set from its official addresses; go on where an earlier call stopped.

    Example: halfseen data get mnist
    """
    from halfseen.data.catalog import data_folder, data_sets

    root = data_folder(data_dir)
    console = Console()
    wanted = list(data_sets(name))
    if not wanted:
        console.print(f"{name} is simulated: there is nothing to fetch.")
    for data_set in wanted:
        about = f"{data_set.name}: licence {data_set.licence}; see {data_set.page}"
        console.print(about, soft_wrap=True, highlight=False)
        for finding in _fetched(root, data_set):
            path = escape(str(root / finding.path))
            console.print(f"{path}: {finding.detail}", soft_wrap=True, highlight=False)


@app.command()
def check(
    name: Annotated[
        str | None, typer.Argument(help="A data set or a family; all there are.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Verify the files of a folder you already have, by hash or by reading them through.

    Without a name, sets of which nothing is there are passed over.

    Example: HALFSEEN_DATA=~/data halfseen data check
    """
    from halfseen.data.catalog import data_folder, data_sets
    from halfseen.data.check import check as check_files

    root = data_folder(data_dir)
    console = Console()
    seen, bad = 0, []
    for data_set in data_sets(name):
        if name is None and not (root / data_set.name).is_dir():
            console.print(f"{data_set.name}: not there")
            continue
        with Console(stderr=True).status(f"Checking {data_set.name}"):
            findings = list(check_files(root, data_set))
        for finding in findings:
            seen += 1
            colour = _COLOURS.get(finding.verdict, "red")
            console.print(
                f"[{colour}]{finding.verdict:<9}[/{colour}] {escape(finding.path)}: "
                f"{escape(finding.detail)}",
                soft_wrap=True,
                highlight=False,
            )
            if not finding.is_good:
                bad.append(finding)
    if bad:
        raise InputError(
            f"{len(bad)} of {seen} files in {root} cannot be used; the first is {bad[0].path}: "
            f"{bad[0].detail}."
        )
    if not seen and name != "ads-sim":
        raise InputError(f"The data folder {root} holds no data set; `halfseen data get` fetches.")
    console.print(f"{seen} files checked in {escape(str(root))}: all can be read.", soft_wrap=True)


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
    from halfseen.data import simulator
    from halfseen.data.catalog import family

    of = family(name)
    options = _options(settings)
    console = Console()
    if of.name == "ads-sim":
        _check_simulated(pair, of)
        scenario = simulator.Scenario.of(options)
        _print_card("->".join(of.example), simulator.card(scenario), console)
        _print_yardsticks(scenario, console)
        return
    if "ceiling" in _known_options(of):
        options.setdefault("ceiling", True)
    loaded = _load(of, pair, options, data_dir)
    _print_card(loaded.name, loaded.card, console)


@app.command()
def export(
    name: Name,
    pair: Annotated[str, typer.Argument(help="source:target, as in cleveland:hungarian.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write into.")],
    format: Annotated[str, typer.Option(help="parquet or csv.")] = "parquet",
    settings: Settings = None,
    data_dir: DataDir = None,
) -> None:
    """Write a pair as two tables a person could have been given, and the labels apart.

    source.* has every column and the label, target.* only what is observed there, and
    target_labels.* the sealed labels, row by row.

    Example: halfseen data export heart cleveland:hungarian -o heart/ --format csv
    """
    from halfseen.data import simulator
    from halfseen.data.catalog import family
    from halfseen.data.export import pair_tables, simulated_tables, write_tables

    of = family(name)
    options = _options(settings)
    chosen = _format(format)
    if not of.is_table:
        raise OptionError(f"{of.name} holds images; only tables can be exported.")
    if of.name == "ads-sim":
        _check_simulated(pair, of)
        scenario = simulator.Scenario.of(options)
        chunks, described = simulated_tables(scenario), simulator.card(scenario)
        classes: tuple[str, ...] = simulator.CLASSES
        expected = 2 * (scenario.rows + scenario.test_rows)
    else:
        loaded = _load(of, pair, options, data_dir)
        chunks, described, expected = pair_tables(loaded), loaded.card, None
        classes = loaded.classes
    columns = (TextColumn("rows"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("rows", total=expected)

        def counted() -> Any:
            for table_name, table in chunks:
                yield table_name, table
                if table_name != "target_labels":
                    progress.advance(task, len(table))

        rows = write_tables(output, counted(), described, classes=classes, format=chosen)
    console = Console()
    for table_name, count in rows.items():
        path = output / f"{table_name}.{chosen}"
        console.print(f"{escape(str(path))}: {count:,} rows", soft_wrap=True, highlight=False)


@app.command()
def convert(data_dir: DataDir = None) -> None:
    """Convert Criteo's text file to Parquet, so that it is read faster from then on.

    Memory stays bounded whatever the file's length; a conversion that was stopped goes on.

    Example: halfseen data convert --data-dir ~/data
    """
    from halfseen.data import criteo_parquet
    from halfseen.data.catalog import data_folder
    from halfseen.data.official import locate

    root = data_folder(data_dir)
    folder = root / "criteo" / "parquet"
    done = criteo_parquet.convert(locate(root, "criteo/train.txt"), folder)
    Console().print(f"{escape(str(folder))}: {done.rows:,} rows", soft_wrap=True, highlight=False)


def _fetched(root: Path, data_set: DataSet) -> list[Finding]:
    """Fetch with one progress bar per file."""
    from halfseen.data.obtain import obtain

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:

        def show(what: str, done: int, total: int | None) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=total)
            progress.update(tasks[what], completed=done, total=total)

        return obtain(root, data_set, progress=show)


def _check_simulated(pair: str | None, of: Family) -> None:
    from halfseen.data.catalog import parse_pair

    if parse_pair(pair, of) != of.example:
        raise OptionError(f"The simulator has one pair, {':'.join(of.example)}.")


def _format(given: str) -> Format:
    if given not in ("parquet", "csv"):
        raise OptionError(f"--format {given} is unknown; choose parquet or csv.")
    return "csv" if given == "csv" else "parquet"


def _options(settings: list[str] | None) -> dict[str, Any]:
    """Read ``key=value`` pairs; a value is a number, true, false, null or a word."""
    options: dict[str, Any] = {}
    for setting in settings or []:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise OptionError(f"--set {setting}: write KEY=VALUE, as in --set seed=1.")
        try:
            options[key.strip()] = json.loads(value)
        except json.JSONDecodeError:
            options[key.strip()] = value
    return options


def _known_options(of: Family) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(of.reader.load_pair).parameters.values()
    return {
        p.name: p
        for p in parameters
        if p.kind is inspect.Parameter.KEYWORD_ONLY and "Path" not in str(p.annotation)
    }


def _load(
    of: Family, pair: str | None, options: dict[str, Any], data_dir: Path | None
) -> DomainPair:
    from halfseen.data.catalog import data_folder, parse_pair

    known = _known_options(of)
    for key, value in options.items():
        if key not in known:
            raise OptionError(f"{of.name} has no option {key!r}; it has {', '.join(known)}.")
        default = known[key].default
        kinds = (int, float) if isinstance(default, float) else (type(default),)
        if default is not None and type(value) not in kinds:
            raise OptionError(
                f"--set {key}={value} does not fit: it is {default!r} unless you say otherwise."
            )
    source, target = parse_pair(pair, of)
    with Console(stderr=True).status(f"Reading {of.name}"):
        return of.reader.load_pair(data_folder(data_dir), source, target, **options)


def _print_card(name: str, shown: Card, console: Console) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    table.add_row("pair", escape(name))
    for key in ("what", "origin", "licence", "missing"):
        table.add_row(key, escape(getattr(shown, key)))
    for what, count in shown.counts.items():
        table.add_row("rows", f"{count:,} {escape(what)}")
    for note in shown.notes:
        table.add_row("note", escape(note))
    console.print(table, highlight=False)


def _print_yardsticks(scenario: Scenario, console: Console) -> None:
    from halfseen.data.simulator import yardsticks

    table = Table("cross-entropy on the target", box=None, pad_edge=False)
    for column in ("expected", "Monte Carlo", "± standard error"):
        table.add_column(column, justify="right")
    for line in yardsticks(scenario):
        table.add_row(
            line.predictor,
            f"{line.expected:.4f}",
            f"{line.monte_carlo:.4f}",
            f"{line.standard_error:.4f}",
        )
    console.print()
    console.print(table, highlight=False)
