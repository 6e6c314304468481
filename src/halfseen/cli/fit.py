"""`halfseen fit`: two tables in, a model folder out."""

from __future__ import annotations

import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from halfseen.cli.fit_config import Config, check_place, going_on, save_model, with_settings
from halfseen.cli.inputs import OneSource, OneTarget, Sources, TablePaths, Targets, Unlabelled
from halfseen.cli.printing import print_metrics, print_schema, schema_facts, show_alarms
from halfseen.cli.terminal import Force, Json, Terminal
from halfseen.settings import FitSettings

if TYPE_CHECKING:
    from halfseen.data.schema_inference import InferredTables
    from halfseen.model.model import Model
    from halfseen.model.pattern_model import PatternModel


@with_settings
def fit(
    source: OneSource = None,
    target: OneTarget = None,
    sources: Sources = None,
    targets: Targets = None,
    unlabelled: Unlabelled = None,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write the model into.")
    ] = None,
    settings: FitSettings,
    config: Config = None,
    dry_run: Annotated[bool, typer.Option(help="Say what the columns are, and stop.")] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Learn from a complete, labelled table for one that lacks columns and labels.

    Tables are CSV, Parquet or Arrow files, or folders of them. Lists of columns are separated by
    commas, or given by repeating the option.

    Of several tables sources are pooled, and each set of columns that targets lack gets a model of
    its own in one folder.

    Example: halfseen fit source.csv target.csv --label click -o model/

    Few labels: rows whose label is empty teach what the missing columns say; --unlabelled FILE
    names more of them.

    Several tables: halfseen fit --source a.csv --source b.csv --target c.csv --label click -o m/
    """
    started, terminal = time.perf_counter(), Terminal(as_json=as_json)
    tables = TablePaths.given(source, target, sources, targets, unlabelled)
    read = tables.read() | {"the settings file": config}
    check_place(output, read, dry_run=dry_run, force=force)
    parts = tables.inferred(settings, terminal)
    models, documents = [], []
    for number, inferred in enumerate(parts, start=1):
        if len(parts) > 1:
            lacking = ", ".join(column.name for column in inferred.schema.missing)
            terminal.say(f"Part {number} of {len(parts)}, for tables that lack {lacking}:")
        document = describe(inferred, settings, terminal)
        if output is not None and not dry_run:
            model = fit_part(inferred, settings, output, terminal)
            document |= {"method": model.title, "metrics": model.metrics}
            document["alarms"] = model.metrics["alarms"]
            models.append(model)
        documents.append(document)
    whole = documents[0] if len(parts) == 1 else {"parts": documents}
    if output is None or not models:
        terminal.document(whole | {"model": None})
        return
    fitted: Model | PatternModel = models[0]
    if len(models) > 1:
        from halfseen.model.pattern_model import PatternModel

        fitted = PatternModel(tuple(models))
    terminal.document(whole | save_model(fitted, output, started, terminal))


def describe(inferred: InferredTables, settings: FitSettings, terminal: Terminal) -> dict[str, Any]:
    """Say what the columns are and what will be fitted; return the same as data."""
    from halfseen.alarms.table_alarms import table_alarms
    from halfseen.fitting.prepared_rows import is_resident

    print_schema(inferred, terminal.console)
    alarms = table_alarms(inferred)
    show_alarms(alarms, terminal)
    where = "tables in memory" if is_resident(inferred, settings) else "a sample of large tables"
    members = settings.members_for("table", classes=inferred.schema.target_type.networks)
    variants = settings.variants("table")
    names = [variant.name for variant in variants]
    networks = f" Networks: {', '.join(names)}." if "networks" in members else ""
    terminal.say(f"Members: {', '.join(members)}; {where}; seed {settings.seed}.{networks}")
    if networks:
        options = settings.options_for(variants[0])
        shown = "equally often" if options.training.balanced else "as often as they occur"
        terminal.say(f"Networks see classes {shown}; probabilities speak of the shares above.")
        terminal.settings(options)
    return schema_facts(inferred) | {"models": names, "seed": settings.seed, "alarms": alarms}


def fit_part(
    inferred: InferredTables, settings: FitSettings, output: Path, terminal: Terminal
) -> Model:
    """Fit one set of missing columns, and say how good the model is on held-out rows."""
    from halfseen.alarms.table_alarms import table_alarms
    from halfseen.api import fit_domains
    from halfseen.fitting.member_training import Hooks

    with going_on(output, terminal) as unfinished, terminal.fit_progress() as bar:
        hooks = Hooks(say=terminal.say, checkpoints=unfinished)
        if bar is not None:
            hooks = replace(hooks, progress=bar.training, part=bar.part)
        model = fit_domains(inferred, settings, hooks)
    if model.report is not None:
        command = shlex.join(["halfseen", *sys.argv[1:]])
        model.report = {**model.report, "command": command}
    print_metrics(model.metrics, terminal.console)
    show_alarms(model.alarms[len(table_alarms(inferred)) :], terminal)
    return model
