"""`halfseen predict`: a model folder and a table in, scores out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from halfseen.cli.config import open_for
from halfseen.cli.fit import Rename, show_alarms
from halfseen.cli.fit_images import Skipped
from halfseen.cli.terminal import Force, Json, Terminal
from halfseen.errors import InputError
from halfseen.outputs import Output, check_outputs

if TYPE_CHECKING:
    from halfseen.evidence import PriorEstimate

__all__ = ["predict"]


def predict(
    model: Annotated[Path, typer.Argument(help="Folder that `halfseen fit` wrote.")],
    data: Annotated[
        Path, typer.Argument(help="Rows to score: a file or a folder; images for their models.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File to write: .parquet, .csv or .arrow.")
    ],
    use_missing: Annotated[
        bool, typer.Option(help="Score rows that have the missing block with it.")
    ] = False,
    correct_prior: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE",
            help="Labelled source rows that the model was not fitted on: probabilities are "
            "corrected for the class proportions estimated with them, or refused.",
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

    Rows keep their order, and id columns are carried through; images are named by their files.

    Example: halfseen predict model/ new.parquet -o scores.parquet
    """
    from halfseen.front.fronts import ImageFront
    from halfseen.model.loading import load
    from halfseen.model.scoring import check_output, is_scores, score_table

    terminal = Terminal(as_json=as_json)
    inputs = {"the model": model, "the table": data, "the labelled table": correct_prior}
    check_outputs([Output(output, "the scores", is_scores)], inputs, force=force)
    loaded = load(model)
    if isinstance(loaded.front, ImageFront):
        if use_missing or correct_prior is not None:
            raise InputError("--use-missing and --correct-prior are for models of tables.")
        _predict_images(loaded, data, output, Skipped(strict=strict), terminal)
        return
    with terminal.status("Reading the table"):
        table = open_for(loaded, data, rename)
    check_output(output, table)
    prior = None
    if correct_prior is not None:
        if use_missing:
            raise InputError("--correct-prior and --use-missing cannot be combined.")
        prior = _estimated(loaded, open_for(loaded, correct_prior, rename), table, terminal)
    with _progress(terminal, "rows") as advance:
        scored = score_table(
            loaded,
            table,
            output,
            use_missing=use_missing,
            prior=prior,
            strict=strict,
            on_rows=advance,
        )
    for note in scored.notes:
        terminal.say(f"Note: {note}")
    show_alarms(scored.alarms, terminal)
    rate = scored.rows / max(scored.seconds, 1e-9)
    terminal.result(
        f"{output}: {scored.rows:,} rows in {scored.seconds:.2f} s, {rate:,.0f} rows a second."
    )
    terminal.document(
        {
            "output": output,
            "rows": scored.rows,
            "seconds": round(scored.seconds, 3),
            "notes": scored.notes,
            "alarms": scored.alarms,
            "target_prior": _proportions(loaded, prior),
        }
    )


@contextmanager
def _progress(terminal: Terminal, unit: str) -> Iterator[Callable[[int], None]]:
    """Show how many were scored; give the function that is told of more."""
    columns = (
        TextColumn("scoring"),
        BarColumn(),
        TextColumn(f"{{task.completed:,.0f}} {unit}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=terminal.errors, transient=True) as progress:
        task = progress.add_task("scoring", total=None)
        yield lambda count: progress.advance(task, count)


def _predict_images(
    model: Any, data: Path, output: Path, skipped: Skipped, terminal: Terminal
) -> None:
    """Score a folder of images."""
    from halfseen.front.image_folders import open_folder
    from halfseen.model.scoring import check_output, score_images

    check_output(output)
    with _progress(terminal, "images") as advance:
        scored = score_images(model, open_folder(data), output, refuse=skipped, on_rows=advance)
    skipped.tell(terminal)
    terminal.result(f"{output}: {scored.rows:,} images in {scored.seconds:.2f} s.")
    terminal.document(
        {
            "output": output,
            "rows": scored.rows,
            "seconds": round(scored.seconds, 3),
            "skipped": skipped.sentences,
        }
    )


def _estimated(model: Any, held_out: Any, table: Any, terminal: Terminal) -> PriorEstimate:
    """Return the table's class proportions, or refuse with the reasons."""
    from halfseen.model.prior import estimate_table_prior

    with terminal.status("Estimating class proportions"):
        found = estimate_table_prior(model, held_out, table)
    if not found.trustworthy:
        raise InputError(f"{found.verdict} Score without --correct-prior.")
    shares = ", ".join(
        f"{name} {share:.1%} ({low:.1%} to {high:.1%})"
        for name, share, (low, high) in zip(
            model.schema.class_names, found.prior, found.interval, strict=True
        )
    )
    terminal.say(f"Class proportions estimated for {table.path}: {shares}.")
    return found


def _proportions(model: Any, found: PriorEstimate | None) -> dict[str, Any] | None:
    if found is None:
        return None
    names = model.schema.class_names
    return {
        name: {"share": share, "interval": interval}
        for name, share, interval in zip(names, found.prior, found.interval, strict=True)
    }
