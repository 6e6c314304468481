"""Commands that ask a model about rows: `halfseen predict`, `evaluate` and `explain`."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer

from halfseen.cli.inputs import ModelFolder, Rename, open_rows
from halfseen.cli.printing import (
    print_evaluation,
    print_explanation,
    print_image_explanation,
    show_alarms,
)
from halfseen.cli.terminal import Force, Json, Terminal
from halfseen.errors import OptionError
from halfseen.outputs import Output, check_outputs

STANDARD_OUTPUT = Path("-")
Rows = Annotated[
    Path, typer.Argument(help="Rows to ask about: a file or a folder; images for their models.")
]


def predict(
    model: ModelFolder,
    data: Rows,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="File to write: .parquet, .csv or .arrow; - is CSV on standard output.",
        ),
    ] = STANDARD_OUTPUT,
    class_share: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CLASS=SHARE",
            help="A class's share of the table, where you know it: probabilities are corrected "
            "for it (repeatable).",
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Take every alarm as an error, and write nothing.")
    ] = False,
    force: Force = False,
    rename: Rename = None,
    as_json: Json = False,
) -> None:
    """Score the rows of a table or the images of a folder: a probability per class, and the class.

    A model of amounts gives the amount, and the ends of its 90 % interval as low and high. Rows
    keep their order, and id columns are carried through; images are named by their files.

    Example: halfseen predict model/ new.parquet -o scores.parquet

    In a pipe: halfseen predict model/ new.csv | head
    """
    from halfseen.model.table_scoring import is_scores, score_images, score_table

    piped = output == STANDARD_OUTPUT
    if piped and as_json:
        raise OptionError("--json prints to standard output, where the scores go: name a file, -o.")
    terminal = Terminal(as_json=as_json, piped=piped)
    if not piped:
        inputs = {"the model": model, "the table": data}
        check_outputs([Output(output, "the scores", is_scores)], inputs, force=force)
    of_tables = {"--class-share": class_share}
    asked = open_rows(model, data, rename, terminal, of_tables=of_tables, strict=strict)
    shares = _shares(class_share) if class_share else None
    with _written(output) as file, terminal.counter("scoring") as advance:
        if asked.table is not None:
            scored = score_table(
                asked.model, asked.table, file, class_shares=shares, strict=strict, on_rows=advance
            )
        else:
            scored = score_images(
                asked.model, asked.folder, file, refuse=asked.skipped, on_rows=advance
            )
    for note in scored.notes:
        terminal.say(f"Note: {note}")
    skipped = asked.skipped.tell(terminal)
    show_alarms(scored.alarms, terminal)
    unit, rate = "rows" if asked.table else "images", scored.rows / max(scored.seconds, 1e-9)
    name = "Standard output" if piped else output
    took = f"{scored.rows:,} {unit} in {scored.seconds:.2f} s, {rate:,.0f} {unit} a second."
    terminal.result(f"{name}: {took}")
    document = {"output": output, "rows": scored.rows, "seconds": round(scored.seconds, 3)}
    document |= {"notes": scored.notes, "alarms": scored.alarms}
    document |= {"class_shares": scored.class_shares}
    terminal.document(document if asked.table else document | skipped)


@contextmanager
def _written(output: Path) -> Iterator[Path]:
    """Give the file to write: the output, or one that goes to standard output when it is whole."""
    if output != STANDARD_OUTPUT:
        yield output
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "scores.csv")
        yield file
        with file.open("rb") as scores, suppress(BrokenPipeError):  # as of `head`
            shutil.copyfileobj(scores, sys.stdout.buffer)
            sys.stdout.flush()
            return
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _shares(given: list[str]) -> dict[str, float]:
    try:
        return {name: float(share) for name, _, share in (e.rpartition("=") for e in given)}
    except ValueError:
        raise OptionError(
            f"--class-share {' '.join(given)}: write CLASS=SHARE, a share from 0 to 1."
        ) from None


def evaluate(
    model: ModelFolder,
    labelled: Annotated[
        Path,
        typer.Argument(
            help="Rows of the target with their labels; of images a folder for each class."
        ),
    ],
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
    from halfseen.model.table_scoring import evaluate_images, evaluate_table

    terminal = Terminal(as_json=as_json)
    of_tables = {"--label": label}
    asked = open_rows(model, labelled, rename, terminal, of_tables=of_tables, labelled=True)
    with terminal.status("Scoring"):
        if asked.table is not None:
            measured = evaluate_table(asked.model, asked.table, label)
        else:
            measured = evaluate_images(asked.model, asked.folder, asked.skipped)
            measured |= asked.skipped.tell(terminal)
    print_evaluation(measured, asked.model, terminal)


def explain(
    model: ModelFolder,
    data: Rows,
    rows: Annotated[int, typer.Option(min=1, help="How many rows to explain, the first.")] = 50,
    rename: Rename = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the sample of orders and rows.")] = 0,
    as_json: Json = False,
) -> None:
    """Say which columns move each row's answer, and which move the model overall.

    Contributions are Shapley values of the whole model in log-odds of a class, or in the unit of
    an amount: beginning with typical rows, they add up to the row's own. Nothing here says what
    causes what. Of images it says by how much covering each region moves the answer.

    Example: halfseen explain model/ new.csv
    """
    from halfseen.model.image_explanations import explain_images
    from halfseen.model.table_scoring import explain_table

    terminal = Terminal(as_json=as_json)
    asked = open_rows(model, data, rename, terminal, of_tables={})
    if asked.table is None:
        with terminal.status("Explaining"):
            tiles, files = explain_images(asked.model, asked.folder, rows, asked.skipped)
        print_image_explanation(tiles, files, asked.skipped.tell(terminal), terminal)
        return
    with terminal.status("Explaining"):
        explanation = explain_table(asked.model, asked.table, rows=rows, seed=seed)
    print_explanation(explanation, terminal)
