"""`halfseen evaluate`: a model folder and labelled target rows in, how good it is there out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from halfseen.cli.config import open_for
from halfseen.cli.fit import Rename, show_alarms
from halfseen.cli.terminal import Json, Terminal, new_table

__all__ = ["evaluate"]

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
    fit measured on held-out source rows.

    Example: halfseen evaluate model/ held_out.csv
    """
    from halfseen.model.loading import load_table_model
    from halfseen.model.scoring import evaluate_table

    terminal = Terminal(as_json=as_json)
    loaded = load_table_model(model)
    with terminal.status("Scoring"):
        found = evaluate_table(loaded, open_for(loaded, labelled, rename), label)
    if found["unlabelled"]:
        terminal.say(f"{found['unlabelled']:,} rows without a label are left out.")
    table = new_table("", "value", "95% interval", "expected at fit", "source's shares",
                      title=f"{found['rows']:,} labelled rows", numbers=True)  # fmt: skip
    for name, words in WORDS.items():
        measured = found["metrics"][name]
        table.add_row(
            words,
            _shown(measured["value"]),
            "–"
            if measured["interval"] is None
            else "{:.3f} to {:.3f}".format(*measured["interval"]),
            _shown(measured.get("expected")),
            _shown(found["baseline"][name]),
        )
    table.add_row("calibration error", _shown(found["calibration_error"]), "", "", "")
    terminal.results.print(table, highlight=False)
    for verdict in found["verdicts"]:
        terminal.result(verdict)
    show_alarms(found["alarms"], terminal)
    terminal.document(found)


def _shown(value: Any) -> str:
    return "–" if value is None else f"{value:.3f}"
