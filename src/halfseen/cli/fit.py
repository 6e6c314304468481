"""`halfseen fit`: two tables in, a model folder out."""

from __future__ import annotations

import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from halfseen.cli.fit_config import Config, FitConfig, with_settings
from halfseen.cli.fit_output import check_place, going_on, save_model
from halfseen.cli.printing import print_metrics, print_schema, schema_facts, show_alarms
from halfseen.cli.site_tables import OneSource, OneTarget, Sites, Sources, Targets
from halfseen.cli.terminal import Force, Json, Terminal

if TYPE_CHECKING:
    from halfseen.parallel import Ranks


@with_settings()
def fit(
    source: OneSource = None,
    target: OneTarget = None,
    sources: Sources = None,
    targets: Targets = None,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write the model into.")
    ] = None,
    settings: FitConfig,
    config: Config = None,
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
    from halfseen.parallel import joined

    sites = Sites.given(source, target, sources, targets)
    read = sites.read() | {"the settings file": config}
    with joined() as ranks:
        terminal = Terminal(as_json=as_json, silent=not ranks.is_first)
        ranks.from_first(lambda: check_place(output, read, dry_run=dry_run, force=force))
        _fit(sites, settings, None if dry_run else output, terminal, ranks)


def _fit(
    sites: Sites, config: FitConfig, output: Path | None, terminal: Terminal, ranks: Ranks
) -> None:
    """Fit every part that was understood; without an output only tell."""
    from halfseen.model.pattern_model import PatternModel

    started = time.perf_counter()
    config.settings()  # says what contradicts itself, before any table is read
    parts = ranks.from_first(lambda: sites.understood(config, terminal))
    models, documents = [], []
    for number, found in enumerate(parts, start=1):
        if len(parts) > 1:
            lacking = ", ".join(column.name for column in found.schema.missing)
            terminal.say(f"Part {number} of {len(parts)}, for tables that lack {lacking}:")
        model, document = _fit_part(found, config, output, terminal, ranks)
        models.append(model)
        documents.append(document)
    shown = documents[0] if len(parts) == 1 else {"parts": documents}
    if output is None:
        terminal.document(shown | {"model": None})
        return
    if not ranks.is_first:
        return
    whole = models[0] if len(models) == 1 else PatternModel(tuple(models))
    terminal.document(shown | save_model(whole, output, started, terminal))


def _fit_part(
    found: Any, config: FitConfig, output: Path | None, terminal: Terminal, ranks: Ranks
) -> tuple[Any, dict[str, Any]]:
    """Fit what was understood of one source and one target; without an output only tell."""
    from halfseen.alarms import refuse
    from halfseen.alarms.table_alarms import table_alarms
    from halfseen.fitting.member_training import Hooks
    from halfseen.fitting.pipeline import fit_tables, is_resident
    from halfseen.members import NETWORKS
    from halfseen.networks.variants import variant_named

    settings = config.settings()
    print_schema(found, terminal.console)
    alarms = table_alarms(found)
    if config.strict:
        refuse(alarms)
    show_alarms(alarms, terminal)
    resident = is_resident(found, settings)
    options = settings.options_for(variant_named(settings.models[0]), resident=resident)
    if found.class_counts:
        balanced = options.training.balanced
        shown = "equally often, by oversampling" if balanced else "as often as they occur"
        terminal.say(f"Training shows classes {shown}; probabilities speak of the shares above.")
    where = "in memory" if resident else "streamed from disk"
    members = settings.members_for("table", found.schema.target_type)
    models = f" Networks: {', '.join(settings.models)}." if NETWORKS in members else ""
    terminal.say(f"Members: {', '.join(members)}; tables {where}; seed {settings.seed}.{models}")
    if ranks.size > 1:
        terminal.say(f"{ranks.size} processes share every batch.")
    terminal.settings(options)
    document = schema_facts(found) | {"models": settings.models, "seed": settings.seed}
    document["alarms"] = alarms
    if output is None:
        return None, document
    with going_on(output, terminal) as unfinished, terminal.fit_progress() as bar:
        hooks = Hooks(say=terminal.say, checkpoints=unfinished)
        if bar is not None:
            hooks = replace(hooks, progress=bar.training, part=bar.part)
        fit = fit_tables(found, settings, hooks)
    model = fit.model
    if not ranks.is_first:
        return model, document
    if config.strict:
        refuse(model.alarms)
    if config.report_data != "none":
        from halfseen.report.facts import facts_of_fit

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
