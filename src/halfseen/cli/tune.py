"""`halfseen tune`: search settings without a target label, for `halfseen fit --config`."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from halfseen.atomic_files import atomic_write, write_text
from halfseen.cli.fit_config import FIT_ALONE, Config, FitConfig, with_settings
from halfseen.cli.printing import print_schema, schema_facts
from halfseen.cli.site_tables import Sites
from halfseen.cli.terminal import Force, Json, Terminal, new_table, plain
from halfseen.outputs import Output, check_outputs, derived_path, head

_FOUND = "# Found by halfseen tune:"


@with_settings(leave_out=FIT_ALONE)
def tune(
    source: Annotated[Path, typer.Argument(help="Complete, labelled rows: a file or a folder.")],
    target: Annotated[Path, typer.Argument(help="Unlabelled rows that lack some columns.")],
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="TOML file to write the best settings into.")
    ],
    score: Annotated[
        str,
        typer.Option(
            help="Score without target labels that decides. dev is the paper's and takes one fit; "
            "agreement found better settings on our pairs (docs/selection.md) and takes three."
        ),
    ] = "dev",
    trials: Annotated[int, typer.Option(min=1, help="Fits of every model.")] = 20,
    jobs: Annotated[int, typer.Option(min=1, help="Fits at the same time.")] = 1,
    storage: Annotated[
        str | None,
        typer.Option(
            help="File or database address that keeps the trials, which several machines may "
            "share; a file beside the output by default."
        ),
    ] = None,
    settings: FitConfig,
    config: Config = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Search settings by a score that needs no target label.

    By default members, and whether they are taught; of networks learning rate and loss weights.

    Every model gets the same number of fits, the settings as given among them. A search that was
    stopped goes on when the same command is run again; with a larger --trials it is extended.

    Example: halfseen tune source.csv target.csv --label click -o best.toml
    """
    from halfseen.fitting.pipeline import is_resident
    from halfseen.members import NETWORKS
    from halfseen.networks.variants import variant_named
    from halfseen.tuning.spaces import MEMBERS
    from halfseen.tuning.table_search import MOST_ROWS, search_tables

    kept = storage or str(derived_path(output, ".journal"))
    sites = Sites.given(source, target)
    inputs = sites.read() | {"the settings file": config}
    check_outputs(_outputs(output, storage, kept), inputs, force=force)
    training, terminal = settings.settings(), Terminal(as_json=as_json)
    (found,) = sites.understood(settings, terminal)
    print_schema(found, terminal.console)
    if not is_resident(found, training):
        terminal.say(
            f"The tables are large: about {MOST_ROWS:,} rows of each stand for all in the search."
        )
    networks = NETWORKS in training.members_for("table", found.schema.target_type)
    names = ", ".join(training.models if networks else [MEMBERS])
    terminal.say(f"{trials} fits of each of {names}, kept in {kept}.")
    terminal.settings(training.options_for(variant_named(training.models[0])))

    def tell(trial: Any) -> None:
        value = "–" if trial.value is None else f"{trial.value:.4g}"
        state = "" if trial.state == "complete" else f" ({trial.state})"
        plain(
            terminal.errors,
            f"{trial.model}: {score} {value}{state}, {_words(trial.settings)}, "
            f"{trial.seconds:.0f} s {trial.note}".rstrip(),
        )

    budget: dict[str, Any] = {"score": score, "trials": trials, "n_jobs": jobs}
    try:
        result = search_tables(found, training, **budget, storage=kept, on_trial=tell)
    except KeyboardInterrupt:
        plain(terminal.errors, f"Stopped; {kept} keeps the trials. Run the command again to go on.")
        raise
    print_result(result, terminal.results)
    table = derived_path(output, ".csv")
    write_table(result, table)
    write_text(output, best_config(settings, result))
    terminal.say(f"All trials: {table}")
    terminal.result(f"Settings: {output}, for halfseen fit --config {output}")
    outcome = {"score": result.score, "best": result.best, "trials": result.trials}
    terminal.document(schema_facts(found) | outcome | {"settings": output, "table": table})


def _outputs(output: Path, storage: str | None, kept: str) -> list[Output]:
    """Return what a search writes: settings, trials, and the journal where it is a file."""

    def is_table(path: Path) -> bool:
        return re.match(rb"model,\w+,state\b", head(path)) is not None

    found = [
        Output(output, "the settings", lambda path: head(path).startswith(_FOUND.encode())),
        Output(derived_path(output, ".csv"), "the table of trials", is_table),
    ]
    if "://" in kept:
        return found
    journal = Output(
        Path(kept),
        "the journal of trials",
        lambda path: head(path).startswith(b'{"op_code"'),
        option="-o" if storage is None else "--storage",
        is_continued=True,
    )
    return [*found, journal]


def print_result(result: Any, console: Console) -> None:
    """Print, for every model, its score as given and at its best."""
    from halfseen.selection import SCORES

    better = SCORES[result.score].better
    title = f"{result.score} without target labels, {better} is better"
    headings = ("model", "as given", "best", "trials", "failed")
    table = new_table(*headings, title=title, numbers=True)
    for name in dict.fromkeys(trial.model for trial in result.trials):
        own = [trial for trial in result.trials if trial.model == name]
        states = [trial.state for trial in own]
        best = result.best_of(name)
        given = "–" if own[0].value is None else f"{own[0].value:.4g}"
        counts = (len(own), states.count("failed"))
        style = "bold" if best is result.best else None
        table.add_row(escape(name), given, f"{best.value:.4g}", *map(str, counts), style=style)
    console.print(table, highlight=False)
    plain(console, f"Best: {result.best.model} with {_words(result.best.settings)}.")
    plain(
        console,
        "The best of many scores is better than it will turn out to be: small differences are "
        "chance.",
    )


def write_table(result: Any, path: Path) -> None:
    rows = result.table()
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with atomic_write(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)


def best_config(config: FitConfig, result: Any) -> str:
    """Return the settings of the best trial as TOML that ``halfseen fit --config`` reads."""
    from halfseen.options import dotted
    from halfseen.tuning.spaces import MEMBERS, members_of

    best = result.best
    chosen = members_of(best.settings)
    settings = config.model_dump(exclude_none=True, exclude={"options"})
    settings |= {} if best.model == MEMBERS else {"models": [best.model]}
    if isinstance(config.class_weight, dict):
        settings["class_weight"] = [f"{name}={w}" for name, w in config.class_weight.items()]
    settings |= {n: v for n, v in chosen.items() if n in type(config).model_fields}
    found = {n: v for n, v in chosen.items() if n not in settings}
    lines = [
        f"{_FOUND} {result.score} {best.value:.6g}, the best of {len(result.trials)} trials.",
        *_toml(settings),
        "",
        "[options]",
        *_toml(dotted(config.options) | dotted(found)),
    ]
    return "\n".join(lines) + "\n"


def _toml(settings: Mapping[str, Any]) -> list[str]:
    # A JSON text, number, boolean or list of them is TOML too, but for null and DEL.
    return [
        f"{name} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f")
        for name, value in settings.items()
        if value is not None
    ]


def _words(settings: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in settings.items()
    )
