"""`halfseen fit`: two tables in, a model folder out."""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.markup import escape

from halfseen.cli.sites import (
    OneSource,
    OneTarget,
    Paths,
    Sources,
    Targets,
    given_paths,
    opened,
    read_paths,
)
from halfseen.cli.terminal import Force, Json, Terminal, new_table, plain
from halfseen.errors import InputError, OptionError
from halfseen.outputs import Output, check_outputs, head

if TYPE_CHECKING:
    from halfseen.alarms import Alarm
    from halfseen.cli.config import FitConfig
    from halfseen.parallel import Ranks

__all__ = [
    "fit",
    "given_settings",
    "model_outputs",
    "print_understanding",
    "show_alarms",
    "understanding",
    "understood",
    "understood_sites",
    "unfinished_of",
]

Names = list[str] | None
ReportDetail = Literal["aggregates", "none"]
"""What a model keeps for a report; never anything about a single row."""
Effort = Literal["quick", "default", "best"]
"""As :data:`halfseen.model.settings.Effort`, which help must not wait for."""
MOST_COLUMNS = 60
"""Columns that are listed; of more,"""
MANY_COLUMNS = 20
"""the first so many, and how many there are of each kind."""


# Arguments that the commands on two tables share.
Source = Annotated[Path, typer.Argument(help="Complete, labelled rows: a file or a folder.")]
Target = Annotated[Path, typer.Argument(help="Unlabelled rows that lack some columns.")]
Label = Annotated[str | None, typer.Option(help="Column of the source to predict.")]
Missing = Annotated[
    Names, typer.Option(help="Columns never measured on the target, beside those found.")
]
Keep = Annotated[
    Names, typer.Option(help="Columns measured on the target, although they look otherwise.")
]
Categorical = Annotated[
    Names, typer.Option(help="Columns of numbers that are names of categories.")
]
Numeric = Annotated[Names, typer.Option(help="Columns of numbers in which texts stand for gaps.")]
Rename = Annotated[
    Names, typer.Option(metavar="OLD=NEW", help="Another name for a column of either table.")
]
Drop = Annotated[Names, typer.Option(help="Columns not to use.")]
Id = Annotated[Names, typer.Option(help="Columns to carry through to predictions.")]
Positive = Annotated[str | None, typer.Option(help="The class of two that metrics speak of.")]
TargetLabels = Annotated[
    bool | None,
    typer.Option(
        "--target-labels/--no-target-labels",
        help="Whether labels of target rows are used; by default where some rows have none.",
    ),
]
Models = Annotated[
    Names, typer.Option(help="Models to choose from; Adaptation-Imputation by default.")
]
Members = Annotated[
    Names,
    typer.Option(
        help="What learns beside each other: networks, boosted_trees, forest, regression; all by "
        "default."
    ),
]
Set = Annotated[
    Names,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Any option of the networks by its dotted name: training.joint_epochs=50.",
    ),
]
Strict = Annotated[bool | None, typer.Option("--strict", help="Take every alarm as an error.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Same seed, same model.")]
Config = Annotated[Path | None, typer.Option(help="TOML file with these settings and any other.")]


def fit(
    source: OneSource = None,
    target: OneTarget = None,
    sources: Sources = None,
    targets: Targets = None,
    label: Label = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write the model into.")
    ] = None,
    missing: Missing = None,
    keep: Keep = None,
    categorical: Categorical = None,
    numeric: Numeric = None,
    rename: Rename = None,
    drop: Drop = None,
    id: Id = None,
    positive: Positive = None,
    target_labels: TargetLabels = None,
    models: Models = None,
    members: Members = None,
    effort: Annotated[
        Effort | None,
        typer.Option(
            help="How long it may take: quick (trees and regression), default (also networks and "
            "teachers) or best (networks of five folds)."
        ),
    ] = None,
    seed: Seed = None,
    set_: Set = None,
    config: Config = None,
    report_data: Annotated[
        ReportDetail | None,
        typer.Option(
            help="What the model keeps for `halfseen report`: aggregates (never a single row), or "
            "none."
        ),
    ] = None,
    strict: Strict = None,
    dry_run: Annotated[bool, typer.Option(help="Say what was understood, and stop.")] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Learn from a complete, labelled table for one that lacks columns and labels.

    Tables are CSV, Parquet or Arrow files, or folders of them. Lists of columns are separated by
    commas, or given by repeating the option.

    Several sites: sources are pooled, and each set of columns that targets lack gets a model of
    its own in one folder.

    Example: halfseen fit source.csv target.csv --label click -o model/

    Several sites: halfseen fit --source a.csv --source b.csv --target c.csv --label click -o m/

    Several processes: torchrun --nproc-per-node 2 -m halfseen fit source.csv ...
    """
    paths = given_paths(source, target, sources, targets)
    given = given_settings(
        label=label, missing=missing, keep=keep, categorical=categorical, numeric=numeric,
        rename=rename, drop=drop, id=id,
        positive=positive, target_labels=target_labels, models=models, members=members,
        effort=effort, seed=seed, report_data=report_data, strict=strict, set_=set_,
    )  # fmt: skip
    from halfseen.cli.config import read_config

    settings = read_config(config, given)
    if output is None and not dry_run:
        raise OptionError("Say where to write the model: -o FOLDER (or --dry-run to see the plan).")
    from halfseen.parallel import joined

    with joined() as ranks:
        terminal = Terminal(as_json=as_json, silent=not ranks.is_first)
        if output is not None:
            places = model_outputs(output)
            read = read_paths(*paths) | {"the settings file": config}
            ranks.from_first(lambda: check_outputs(places, read, force=force))
        _fit(paths, settings, output, terminal, dry_run=dry_run, ranks=ranks)


def given_settings(*, set_: Names = None, **given: Any) -> dict[str, Any]:
    """Return what the command line says of columns and training, less what it leaves open."""
    found = {
        name: split_names(value) if isinstance(value, list) and name != "rename" else value
        for name, value in given.items()
        if value is not None
    }
    if set_ is None:
        return found
    from halfseen.cli.config import parsed_options

    return found | {"options": parsed_options(set_)}


def model_outputs(output: Path) -> list[Output]:
    """Return what a fit writes: the model, and until it is finished a folder beside it."""
    from halfseen.saving.folder import DESCRIPTION, PATTERNS, check_replaceable

    if output.name in ("", ".."):
        raise OptionError(f"{output} is no folder of the model's own; name one with -o.")

    def is_model(folder: Path) -> bool:
        check_replaceable(folder)
        described = any(b'"format"' in head(folder / name) for name in (DESCRIPTION, PATTERNS))
        return described or not any(folder.iterdir())

    def is_unfinished(folder: Path) -> bool:
        return all("safetensors" in file.name for file in folder.iterdir())

    return [
        Output(output, "the model", is_model, is_folder=True),
        Output(unfinished_of(output), "the unfinished model", is_unfinished, is_folder=True),
    ]


def unfinished_of(output: Path) -> Path:
    """Return the folder beside a model that keeps the state of its unfinished fit."""
    return output.with_name(f".{output.name}.unfinished")


def _fit(
    paths: tuple[Paths, Paths],
    config: FitConfig,
    output: Path | None,
    terminal: Terminal,
    *,
    dry_run: bool,
    ranks: Ranks,
) -> None:
    from halfseen.model.patterns import PatternModel

    started = time.perf_counter()

    def look() -> Any:
        with terminal.status("Reading the tables"):
            sources, targets = (
                opened(paths[0], config, "source"),
                opened(paths[1], config, "target"),
            )
        return understood_sites(sources, targets, config, terminal.errors)

    parts = ranks.from_first(look)
    models, documents = [], []
    for number, found in enumerate(parts, start=1):
        if len(parts) > 1:
            lacking = ", ".join(column.name for column in found.schema.missing)
            terminal.say(f"Part {number} of {len(parts)}, for tables that lack {lacking}:")
        place = None if dry_run else output
        model, document = _fit_part(found, config, place, terminal, ranks)
        models.append(model)
        documents.append(document)
    shown = documents[0] if len(parts) == 1 else {"parts": documents}
    if dry_run or output is None:
        terminal.document(shown | {"model": None})
        return
    if not ranks.is_first:
        return
    whole = models[0] if len(models) == 1 else PatternModel(tuple(models))
    whole.save(output)
    shutil.rmtree(unfinished_of(output), ignore_errors=True)
    seconds = time.perf_counter() - started
    terminal.detail(f"{seconds:.1f} s in all.")
    terminal.result(f"Model: {output}")
    terminal.document(shown | {"model": output, "seconds": round(seconds, 3)})


def _fit_part(
    found: Any, config: FitConfig, output: Path | None, terminal: Terminal, ranks: Ranks
) -> tuple[Any, dict[str, Any]]:
    """Fit what was understood of one source and one target; without an output only tell."""
    from halfseen.alarms import refuse, table_alarms
    from halfseen.model.fitting import Hooks, fit_tables, is_resident
    from halfseen.networks.methods import method_named

    settings = config.settings()
    print_understanding(found, terminal.console)
    alarms = table_alarms(found)
    if config.strict:
        refuse(alarms)
    show_alarms(alarms, terminal)
    resident = is_resident(found, settings)
    options = settings.options_for(method_named(settings.models[0]), resident=resident)
    shown = (
        "equally often, by oversampling" if options.training.balanced else "as often as they occur"
    )
    terminal.say(f"Training shows classes {shown}; probabilities speak of the shares above.")
    where = "in memory" if resident else "streamed from disk"
    members = " and ".join(settings.members_for("table"))
    terminal.say(
        f"Models: {', '.join(settings.models)}; members: {members}; tables {where}; seed "
        f"{settings.seed}."
    )
    if ranks.size > 1:
        terminal.say(f"{ranks.size} processes share every batch.")
    terminal.settings(options)
    document = understanding(found) | {"models": settings.models, "seed": settings.seed}
    document["alarms"] = alarms
    if output is None:
        return None, document
    unfinished = unfinished_of(output)
    if unfinished.is_dir():
        terminal.say(f"Going on where an earlier fit of the same model stopped ({unfinished}).")
    try:
        with terminal.fit_progress() as bar:
            hooks = Hooks(say=terminal.say, checkpoints=unfinished)
            if bar is not None:
                hooks = replace(hooks, progress=bar.training, part=bar.part)
            fit = fit_tables(found, settings, hooks)
    except KeyboardInterrupt:
        plain(terminal.errors, "The same command goes on from the last finished epoch.")
        raise
    model = fit.model
    if not ranks.is_first:
        return model, document
    if config.strict:
        refuse(model.alarms)
    if config.report_data != "none":
        from halfseen.report.gathering import facts_of_fit

        facts = facts_of_fit(found, fit)
        command = shlex.join(["halfseen", *sys.argv[1:]])
        model.report = facts.model_copy(update={"command": command}).model_dump(mode="json")
    print_metrics(model.metrics, terminal.console)
    show_alarms(model.alarms[len(alarms) :], terminal)
    return model, document | {
        "method": model.title,
        "alarms": model.metrics["alarms"],
        "metrics": model.metrics,
    }


def understood(source: Any, target: Any, config: FitConfig, progress: Console) -> Any:
    """Look at two tables; ask about doubtful columns in a terminal, refuse them elsewhere."""
    (found,) = understood_sites({"source": source}, {"target": target}, config, progress)
    return found


def understood_sites(
    sources: Mapping[str, Any], targets: Mapping[str, Any], config: FitConfig, progress: Console
) -> Any:
    """Return what was understood for each missing pattern, once every doubt is settled."""
    from halfseen.front.inference import Doubt
    from halfseen.front.sites import understand_sites
    from halfseen.model.settings import needs_complete_target

    complete = needs_complete_target(config.models)
    while True:
        with progress.status("Looking at the columns"):
            found = understand_sites(sources, targets, config.roles(), complete=complete)
        doubts = [doubt for doubt in found if isinstance(doubt, Doubt)]
        if not doubts:
            return found
        if not is_terminal():
            reasons = "; ".join(f"{doubt.name!r} {doubt.reason}" for doubt in doubts)
            names = ",".join(doubt.name for doubt in doubts)
            raise InputError(
                f"Was it measured on the target? Column {reasons}. Say --missing {names} if not, "
                f"--keep {names} if so."
            )
        for doubt in doubts:
            question = f"Column {doubt.name!r} {doubt.reason}. Was it never measured there?"
            chosen = config.missing if typer.confirm(question, err=True) else config.keep
            chosen.append(doubt.name)


def is_terminal() -> bool:
    """Whether somebody is there to answer."""
    return sys.stdin.isatty()


def print_understanding(found: Any, console: Console) -> None:
    """Print each column's role, kind and preparation, the classes, and the notes."""
    schema = found.schema
    plain(console, f"Source: {found.source.table.path}, {found.source.rows:,} rows.")
    plain(console, f"Target: {found.target.table.path}, {found.target.rows:,} rows.")
    print_columns(schema, console)
    total = sum(found.class_counts)
    shares = ", ".join(
        f"{name} {count:,} ({count / total:.1%})"
        for name, count in zip(schema.class_names, found.class_counts, strict=True)
    )
    plain(console, f"Label: {schema.label}, with classes {shares}.")
    for note in found.notes:
        plain(console, f"Note: {note}")


def show_alarms(alarms: Sequence[Alarm], terminal: Terminal) -> None:
    """Show alarms, also with ``--quiet``."""
    from halfseen.alarms import sentences

    for sentence in sentences(alarms):
        terminal.result(f"Alarm: {sentence}")


def understanding(found: Any) -> dict[str, Any]:
    """Return what was understood of two tables as plain data."""
    schema = found.schema
    return {
        "source": {"path": found.source.table.path, "rows": found.source.rows},
        "target": {"path": found.target.table.path, "rows": found.target.rows},
        "label": schema.label,
        "classes": dict(zip(schema.class_names, found.class_counts, strict=True)),
        "columns": [
            {"name": column.name, "role": column.role, "kind": column.kind}
            for column in schema.columns
        ],
        "id": schema.id,
        "dropped": schema.dropped,
        "notes": found.notes,
    }


def print_columns(schema: Any, console: Console) -> None:
    """Print what becomes of each column."""
    table = new_table("column", "role", "kind", "preparation")
    shown = schema.columns
    if len(shown) > MOST_COLUMNS:
        shown = shown[:MANY_COLUMNS]
    for column in shown:
        style = "bold" if column.role == "missing" else None
        row = (column.name, column.role, column.kind, _preparation(column))
        table.add_row(*(escape(cell) for cell in row), style=style)
    for name in schema.id:
        table.add_row(escape(name), "id", "", "carried through")
    for name in schema.dropped[:MOST_COLUMNS]:
        table.add_row(escape(name), "dropped", "", "")
    console.print(table, highlight=False)
    if len(shown) < len(schema.columns):
        counts = Counter((column.role, column.kind) for column in schema.columns)
        words = ", ".join(f"{n:,} {role} {kind}" for (role, kind), n in sorted(counts.items()))
        rest = len(schema.columns) - len(shown)
        plain(console, f"{rest:,} more columns (--json lists all); in all: {words}.")


def print_metrics(metrics: Any, console: Console) -> None:
    """Print what was measured on held-out source rows, where some were held out."""
    from halfseen.model.telling import told

    if "held_out_source" in metrics:
        _print_measured(metrics, console)
    for sentence in told(metrics):
        plain(console, sentence)
    if "trained_on" in metrics:
        plain(console, f"Trained on {metrics['trained_on']}.")


def _print_measured(metrics: Any, console: Console) -> None:
    from halfseen.members import MEMBER_WORDS

    headings = ("", "rows", "accuracy", "balanced accuracy", "cross-entropy", "AUC")
    table = new_table(*headings, title="Held-out source rows", numbers=True)
    rows = {
        "missing block hidden, as on the target": "without_missing_block",
        "missing block shown": "with_missing_block",
    }
    shown = [(title, metrics["held_out_source"].get(key)) for title, key in rows.items()]
    alone = metrics["members"] if len(metrics["members"]) > 1 else {}
    shown += [(MEMBER_WORDS.get(name, name), found) for name, found in alone.items()]
    for title, measured in shown:
        if measured:
            table.add_row(title, *("–" if v is None else f"{v:g}" for v in measured.values()))
    console.print(table, highlight=False)
    plain(
        console,
        "These are source rows: on a shifted target a model usually does worse, by an amount that "
        "unlabelled data cannot tell.",
    )


def _preparation(column: Any) -> str:
    if column.kind == "categorical":
        steps = [f"{len(column.categories)} categories"]
        steps += ["rare and unseen ones together"] if column.other else []
    else:
        steps = ["log"] if column.log else []
        steps += [f"mean {column.mean:.4g}, scale {column.scale:.4g}"]
    return "; ".join(
        [*steps, *([f"gaps marked, {column.fill} for them"] if column.indicator else [])]
    )


def split_names(given: Names) -> list[str] | None:
    """Return names separated by commas, or given one by one."""
    if given is None:
        return None
    return [name.strip() for entry in given for name in entry.split(",") if name.strip()]
