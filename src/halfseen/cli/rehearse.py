"""`halfseen rehearse`: which model and which score would have won, on a slice of the source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from halfseen.cli.config import read_config
from halfseen.cli.fit import Names, print_understanding, split_names, understanding, understood
from halfseen.cli.terminal import Force, Json, Terminal, new_table, plain, plain_data
from halfseen.outputs import Output, check_outputs, head

__all__ = ["rehearse"]

_FOUND = b'{\n "source": {\n  "path": '
"""How the JSON file begins."""


def rehearse(
    source: Annotated[Path, typer.Argument(help="Complete, labelled rows: a file or a folder.")],
    target: Annotated[Path, typer.Argument(help="Unlabelled rows that lack some columns.")],
    label: Annotated[str | None, typer.Option(help="Column of the source to predict.")] = None,
    missing: Annotated[
        Names, typer.Option(help="Columns never measured on the target, beside those found.")
    ] = None,
    keep: Annotated[
        Names, typer.Option(help="Columns measured on the target, although they look otherwise.")
    ] = None,
    models: Annotated[
        Names, typer.Option(help="Models to rehearse beside logistic regression and trees.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Trainings of each model.")] = 3,
    share: Annotated[
        float, typer.Option(min=0.05, max=0.95, help="Share of the source that plays the target.")
    ] = 1 / 3,
    rows: Annotated[int, typer.Option(min=100, help="Most rows of each table to read.")] = 10_000,
    checks: Annotated[
        bool, typer.Option(help="Check assumptions and estimate bounds on the slice.")
    ] = True,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="JSON file to write everything found into."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML file with the settings of `halfseen fit`.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Rehearse on your own data which model, and which way of choosing one, would have won.

    The source rows that look like the target play it: their labels and missing block are known,
    and hidden from the models. No label of the target is needed, nor used.

    Example: halfseen rehearse source.csv target.csv --label click
    """
    from halfseen.files import write_text
    from halfseen.networks.methods import method_named
    from halfseen.rehearsal import MODELS
    from halfseen.rehearsal import rehearse as run

    terminal = Terminal(as_json=as_json)
    given = {
        "label": label,
        "missing": split_names(missing),
        "keep": split_names(keep),
        "models": split_names(models),
    }
    settings = read_config(config, {name: v for name, v in given.items() if v is not None})
    if "models" not in settings.model_fields_set:
        settings = settings.model_copy(update={"models": list(MODELS)})
    if output is not None:
        found_before = Output(output, "what is found", lambda path: head(path).startswith(_FOUND))
        inputs = {
            "the source table": source,
            "the target table": target,
            "the settings file": config,
        }
        check_outputs([found_before], inputs, force=force)
    training = settings.settings()
    with terminal.status("Reading the tables"):
        tables = settings.open(source), settings.open(target)
    found = understood(*tables, settings, terminal.errors)
    print_understanding(found, terminal.console)
    terminal.settings(training.options_for(method_named(training.models[0]), resident=True))
    try:
        result = run(
            found,
            training,
            seeds=seeds,
            share=share,
            rows=rows,
            checks=checks,
            progress=terminal.progress,
            say=terminal.say,
        )
    except KeyboardInterrupt:
        plain(terminal.errors, "Nothing was written; the runs finished so far stand above.")
        raise
    print_rehearsal(result, terminal.results)
    document = understanding(found) | result.to_dict()
    if output is not None:
        write_text(output, json.dumps(plain_data(document), indent=1) + "\n")
        terminal.say(f"Everything found: {output}")
    terminal.document(document)


def print_rehearsal(result: Any, console: Console) -> None:
    """Print models, scores, checks and the verdict."""
    headings = ("", "cross-entropy", "AUC", "accuracy")
    models = new_table(*headings, title="Models on the slice", numbers=True)
    for name in result.models:
        deviation = result.deviation(name)
        entropy = f"{result.mean(name, 'cross_entropy'):.4f}"
        entropy += "" if deviation != deviation else f" ± {deviation:.4f}"
        others = (_number(result.mean(name, metric)) for metric in ("auc", "accuracy"))
        models.add_row(name, entropy, *others)
    console.print(models, highlight=False)
    scores = new_table(
        "",
        "would have chosen",
        "cross-entropy lost",
        "rank correlation",
        title="Scores without labels",
    )
    for choice in result.choices:
        rank = _number(choice.rank_correlation, 2)
        scores.add_row(choice.score, choice.model, f"{choice.lost:.4f}", rank)
    console.print(scores, highlight=False)
    if result.checks is not None:
        print_checks(result.checks, console)
    plain(console, result.verdict)
    plain(console, result.trust)


def print_checks(checks: Any, console: Console) -> None:
    """Print the assumptions and the terms of the bounds, on the slice."""
    table = new_table(
        "", "value", "how far to trust it", title="Adaptation-Imputation on the slice"
    )
    for term in (*checks.bound.terms, *checks.imputation):
        table.add_row(f"{term.name}, {term.symbol}", f"{term.value:.3f}", term.trust)
    table.add_row("sum of the first three", f"{checks.bound.total:.3f}", "no guarantee")
    table.add_row("error on the slice", f"{checks.error:.3f}", "known here")
    console.print(table, highlight=False)
    before, after = checks.effect.before, checks.effect.after
    plain(
        console,
        f"Slice and rest are told apart with an AUC of {before.auc:.3f} in the observed columns "
        f"and of {after.auc:.3f} in the latents (proxy A-distance {before.proxy_a_distance:.2f} "
        f"and {after.proxy_a_distance:.2f}).",
    )
    for change, name in (
        (checks.conditional, "Assumption 3, p(z2 | z1) the same"),
        (checks.posterior, "Assumption 4, p(y | ẑ) the same"),
    ):
        word = "does not hold" if change.changed else "nothing speaks against it"
        plain(
            console,
            f"{name}: {word} (largest change {change.largest:.3f}, p = {change.p_value:.3f}).",
        )
    plain(
        console,
        f"Learned back from its own labels of the slice, a classifier errs on "
        f"{checks.consistency.back:.1%} of the rest, against {checks.consistency.forth:.1%}.",
    )


def _number(value: float, digits: int = 4) -> str:
    return "–" if value != value else f"{value:.{digits}f}"
