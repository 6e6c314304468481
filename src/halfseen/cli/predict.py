"""`halfseen predict`: a model folder and a table in, scores out."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from halfseen.cli.fit_config import ModelFolder, Rename, part_and_table
from halfseen.cli.image_models import Skipped, takes_images
from halfseen.cli.printing import show_alarms
from halfseen.cli.terminal import Force, Json, Terminal
from halfseen.errors import OptionError
from halfseen.outputs import Output, check_outputs

STANDARD_OUTPUT = Path("-")


def predict(
    model: ModelFolder,
    data: Annotated[
        Path, typer.Argument(help="Rows to score: a file or a folder; images for their models.")
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="File to write: .parquet, .csv or .arrow; - is CSV on standard output.",
        ),
    ] = STANDARD_OUTPUT,
    use_missing: Annotated[
        bool, typer.Option(help="Score rows that have the missing block with it.")
    ] = False,
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
    from halfseen.model.loading import load
    from halfseen.model.table_scoring import check_output, is_scores, score_table

    piped = output == STANDARD_OUTPUT
    if piped and as_json:
        raise OptionError("--json prints to standard output, where the scores go: name a file, -o.")
    terminal = Terminal(as_json=as_json, piped=piped)
    if not piped:
        inputs = {"the model": model, "the table": data}
        check_outputs([Output(output, "the scores", is_scores)], inputs, force=force)
    whole = load(model)
    of_tables = {"--use-missing": use_missing, "--class-share": class_share, "--rename": rename}
    if takes_images(whole, of_tables):
        with _written(output) as file:
            _predict_images(whole, data, file, Skipped(strict=strict), terminal)
        return
    loaded, table = part_and_table(whole, model, data, rename, terminal)
    shares = _shares(loaded, class_share) if class_share else None
    with _written(output) as file, _progress(terminal, "rows") as advance:
        check_output(file, table)
        scored = score_table(
            loaded,
            table,
            file,
            use_missing=use_missing,
            target_prior=None if shares is None else list(shares.values()),
            strict=strict,
            on_rows=advance,
        )
    for note in scored.notes:
        terminal.say(f"Note: {note}")
    show_alarms(scored.alarms, terminal)
    rate = scored.rows / max(scored.seconds, 1e-9)
    took = f"{scored.rows:,} rows in {scored.seconds:.2f} s, {rate:,.0f} rows a second."
    terminal.result(f"{_named(output)}: {took}")
    told = {"output": output, "rows": scored.rows, "seconds": round(scored.seconds, 3)}
    told |= {"notes": scored.notes, "alarms": scored.alarms, "class_shares": shares}
    terminal.document(told)


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


def _named(output: Path) -> str:
    return "Standard output" if output == STANDARD_OUTPUT else str(output)


def _predict_images(
    model: Any, data: Path, output: Path, skipped: Skipped, terminal: Terminal
) -> None:
    from halfseen.data.image_folders import open_folder
    from halfseen.model.table_scoring import check_output, score_images

    check_output(output)
    folder = skipped.note(open_folder(data), terminal)
    with _progress(terminal, "images") as advance:
        scored = score_images(model, folder, output, refuse=skipped, on_rows=advance)
    skipped.tell(terminal)
    if folder.left_out:
        terminal.say(f"{folder.left_out:,} other files were left alone.")
    terminal.result(f"{_named(output)}: {scored.rows:,} images in {scored.seconds:.2f} s.")
    told = {"output": output, "rows": scored.rows, "seconds": round(scored.seconds, 3)}
    terminal.document(told | {"skipped": skipped.sentences, "notes": skipped.notes})


def _shares(model: Any, given: list[str]) -> dict[str, float]:
    """Return each class's share: those said, and the rest as on the source."""
    names, said = list(model.schema.class_names), {}
    if not names:
        raise OptionError("--class-share is for models of classes; this one predicts amounts.")
    for entry in given:
        name, _, text = entry.rpartition("=")
        try:
            said[name] = float(text)
        except ValueError:
            said[name] = -1.0
        if name not in names or not 0.0 <= said[name] <= 1.0:
            raise OptionError(
                f"--class-share {entry}: write CLASS=SHARE, with a class of the model "
                f"({', '.join(names)}) and a share from 0 to 1."
            )
    source = zip(names, model.class_prior.tolist(), strict=True)
    others = {name: share for name, share in source if name not in said}
    rest = 1.0 - sum(said.values())
    if rest < -1e-6 or (not others and rest > 1e-6):
        raise OptionError(f"--class-share: the shares sum to {1.0 - rest:.4g}, not to 1.")
    scale = max(rest, 0.0) / max(sum(others.values()), 1e-300)
    return {name: said.get(name, others.get(name, 0.0) * scale) for name in names}
