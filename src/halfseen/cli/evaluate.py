"""`halfseen evaluate`: a model folder and labelled target rows in, how good it is there out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from halfseen.cli.arguments import Rename
from halfseen.cli.showing import show_alarms
from halfseen.cli.terminal import Json, Terminal, new_table

WORDS = {"accuracy": "accuracy", "auc": "AUC", "cross_entropy": "cross-entropy"}


def evaluate(
    model: Annotated[Path, typer.Argument(help="Folder that `halfseen fit` wrote.")],
    labelled: Annotated[Path, typer.Argument(help="Rows of the target with their labels.")],
    label: Annotated[
        str | None, typer.Option(help="Column of the labels, where it is not called as at fit.")
    ] = None,
    rename: Rename = None,
    as_json: Json = False,
) -> None:
    """Measure a model on labelled rows: a few dozen of the target's are worth every estimate.

    Rows without a label are left out. Intervals are 95% bootstrap intervals; expected is what the
    fit measured, on labelled target rows where it had some and else on held-out source rows.

    Example: halfseen evaluate model/ held_out.csv
    """
    from halfseen.cli.config import part_and_table
    from halfseen.model.patterns import load
    from halfseen.model.scoring import evaluate_table

    terminal = Terminal(as_json=as_json)
    loaded, data = part_and_table(load(model), model, labelled, rename, terminal)
    with terminal.status("Scoring"):
        found = evaluate_table(loaded, data, label)
    if found["unlabelled"]:
        terminal.say(f"{found['unlabelled']:,} rows without a label are left out.")
    headings = ("", "value", "95% interval", "expected at fit")
    table = new_table(*headings, title=f"{found['rows']:,} labelled rows", numbers=True)
    for name, words in WORDS.items():
        measured = found["metrics"][name]
        table.add_row(
            words,
            _shown(measured["value"]),
            "–"
            if measured["interval"] is None
            else "{:.3f} to {:.3f}".format(*measured["interval"]),
            _shown(measured.get("expected")),
        )
    error = found["calibration"]
    interval = "{:.3f} to {:.3f}".format(*error["interval"])
    table.add_row("calibration error", _shown(error["value"]), interval, "")
    terminal.results.print(table, highlight=False)
    beside = new_table(
        "instead of the model",
        *WORDS.values(),
        "its cross-entropy above the model's",
        title="Simpler predictions",
        numbers=True,
    )
    for name, other in {"the source's class shares": found["baseline"], **found["others"]}.items():
        gain = other["gain"]
        above = f"{gain['value']:+.3f} ({gain['interval'][0]:+.3f} to {gain['interval'][1]:+.3f})"
        beside.add_row(name, *(_shown(other[measure]) for measure in WORDS), above)
    terminal.results.print(beside, highlight=False)
    shares = zip(
        loaded.schema.class_names, error["predicted_shares"], error["observed_shares"], strict=True
    )
    told = ", ".join(f"{name} {said:.1%} ({true:.1%})" for name, said, true in shares)
    terminal.result(f"Class shares as predicted (and as they are): {told}.")
    for verdict in found["verdicts"]:
        terminal.result(verdict)
    show_alarms(found["alarms"], terminal)
    terminal.document(found)


def _shown(value: Any) -> str:
    return "–" if value is None else f"{value:.3f}"
