"""`halfseen rehearse`: which model and which score would have won, on a slice of the source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from halfseen.cli.fit_config import FIT_ALONE, Config, FitConfig, with_settings
from halfseen.cli.printing import print_schema, schema_facts
from halfseen.cli.site_tables import OneSource, OneTarget, Sites, Sources, Targets
from halfseen.cli.terminal import Force, Json, Terminal, new_table, plain, plain_data
from halfseen.errors import InputError
from halfseen.outputs import Output, check_outputs, head

_FOUND = b'{\n "source": {\n  "path": '
"""How the JSON file begins."""


@with_settings(leave_out=FIT_ALONE)
def rehearse(
    source: OneSource = None,
    target: OneTarget = None,
    sources: Sources = None,
    targets: Targets = None,
    *,
    settings: FitConfig,
    repeats: Annotated[
        int, typer.Option(min=1, help="MemberTraining of each model, with a seed each.")
    ] = 3,
    share: Annotated[
        float, typer.Option(min=0.05, max=0.95, help="Share of the source that plays the target.")
    ] = 1 / 3,
    rows: Annotated[int, typer.Option(min=100, help="Most rows of each table to read.")] = 10_000,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="JSON file to write everything found into."),
    ] = None,
    config: Config = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Rehearse on your own data which model, and which way of choosing one, would have won.

    What `halfseen fit` would fit stands beside simpler tools. The source rows that look like the
    target play it: their labels and missing block are known, and hidden from the models. No label
    of the target is needed, nor used. Of several sources
    (--source) each plays the target in turn, and the others are learned from.

    Example: halfseen rehearse source.csv target.csv --label click
    """
    from halfseen.atomic_files import write_text
    from halfseen.networks.variants import variant_named
    from halfseen.rehearsal import rehearse as run

    terminal = Terminal(as_json=as_json)
    sites = Sites.given(source, target, sources, targets)
    if output is not None:
        found_before = Output(output, "what is found", lambda path: head(path).startswith(_FOUND))
        inputs = sites.read() | {"the settings file": config}
        check_outputs([found_before], inputs, force=force)
    training = settings.settings()
    found, *others = sites.understood(settings, terminal)
    if others:
        raise InputError(
            "The targets lack different columns: rehearse for those that lack the same ones, one "
            "set at a time."
        )
    print_schema(found, terminal.console)
    terminal.settings(training.options_for(variant_named(training.models[0])))
    try:
        by_site = run(
            found,
            training,
            repeats=repeats,
            share=share,
            rows=rows,
            progress=terminal.progress,
            say=terminal.say,
        )
    except KeyboardInterrupt:
        plain(terminal.errors, "Nothing was written; the runs finished so far stand above.")
        raise
    for site, result in by_site.items():
        if site:
            terminal.result(f"{site} as the target:")
        print_rehearsal(result, terminal.results)
    document = schema_facts(found)
    if len(by_site) > 1:
        print_sites(by_site, terminal.results)
        document["sites"] = {site: result.to_dict() for site, result in by_site.items()}
    else:
        document |= by_site[""].to_dict()
    if output is not None:
        write_text(output, json.dumps(plain_data(document), indent=1) + "\n")
        terminal.say(f"Everything found: {output}")
    terminal.document(document)


def print_rehearsal(result: Any, console: Console) -> None:
    from halfseen.rehearsal import shown

    loss, *others = result.measures
    measured = ("", *result.measures.values())
    models = new_table(*measured, title="Models on the slice", numbers=True)
    for name in result.models:
        deviation = result.deviation(name)
        cost = shown(result.loss(name))
        cost += "" if deviation != deviation else f" ± {shown(deviation)}"
        models.add_row(name, cost, *(shown(result.mean(name, metric)) for metric in others))
    console.print(models, highlight=False)
    judged = ("", "would have chosen", f"{result.measures[loss]} lost")
    scores = new_table(*judged, title="Scores without labels")
    for choice in result.choices:
        scores.add_row(choice.score, choice.model, shown(choice.lost))
    console.print(scores, highlight=False)
    plain(console, result.verdict)
    plain(console, result.trust)


def print_sites(by_site: Any, console: Console) -> None:
    """Print each model's loss on every site that played the target, and their mean."""
    from halfseen.rehearsal import shown

    first = next(iter(by_site.values()))
    words = next(iter(first.measures.values()))
    title = f"{words[0].upper()}{words[1:]} by site"
    table = new_table("", *by_site, "mean", title=title, numbers=True)
    means = {}
    for name in first.models:
        losses = [result.loss(name) for result in by_site.values()]
        means[name] = sum(losses) / len(losses)
        table.add_row(name, *(shown(loss) for loss in (*losses, means[name])))
    console.print(table, highlight=False)
    best = min(means, key=means.__getitem__)
    plain(console, f"{best} would have won on average over the sites, with {shown(means[best])}.")
