"""`halfseen explain`: a model folder and rows in, the reasons of its answers out."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from halfseen.cli.fit_config import ModelFolder, Rename, part_and_table
from halfseen.cli.image_models import Skipped, takes_images
from halfseen.cli.report import is_page
from halfseen.cli.terminal import Force, Json, Terminal, new_table
from halfseen.errors import InputError, OptionError, installed_by
from halfseen.outputs import Output, check_outputs

if TYPE_CHECKING:
    from halfseen.model.model import Model

MOST_COLUMNS = 15
MOST_TOLD = 3
"""Rows that are told on the screen."""


def explain(
    model: ModelFolder,
    data: Annotated[
        Path, typer.Argument(help="Rows to explain: a file or a folder; images for their models.")
    ],
    rows: Annotated[int, typer.Option(min=1, help="How many rows to explain, the first.")] = 50,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Page to write: .html.")
    ] = None,
    rename: Rename = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the sample of orders and rows.")] = 0,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Say which columns move each row's answer, and which move the model overall.

    Contributions are Shapley values of the whole model in log-odds of a class, or in the unit of
    an amount: beginning with typical rows, they add up to the row's own. Nothing here says what
    causes what. Of images it says by how much covering each region moves the answer.

    Example: halfseen explain model/ new.csv -o reasons.html
    """
    from halfseen.model.pattern_model import load
    from halfseen.model.table_scoring import TableScorer

    terminal = Terminal(as_json=as_json)
    if output is not None:
        if output.suffix.lower() != ".html":
            raise OptionError(f"{output} must end in .html (--json gives everything as data).")
        page = Output(output, "the page", is_page)
        inputs = {"the model": model, "the rows": data}
        check_outputs([page], inputs, force=force)
    whole = load(model)
    if takes_images(whole, {"--output": output, "--rename": rename}):
        _explain_images(whole, data, rows, terminal)
        return
    loaded, table = part_and_table(whole, model, data, rename, terminal)
    TableScorer.of(loaded, table.names, where=table.where)  # says what a table lacks
    known = list(loaded.schema.cells())
    with terminal.status("Explaining"):
        found = loaded.explain(_first_rows(table, known, rows), seed=seed, where=table.where)
    moves = found.moved.replace("_", "-")
    shown = new_table("column", f"moves the {moves} by, on average", numbers=True)
    for name, value in list(found.importance.items())[:MOST_COLUMNS]:
        shown.add_row(escape(name), f"{value:.3f}" if value < 100 else f"{value:.5g}")
    terminal.results.print(shown, highlight=False)
    terminal.say(f"{len(found):,} rows, compared with {found.compared_with}.")
    for place in range(min(len(found), MOST_TOLD)):
        terminal.result(f"Row {place + 1}: {' '.join(found.told(place))}")
    if output is not None:
        with installed_by("report", "A page"):
            from halfseen.report.html import write_page
            from halfseen.report.reasons import reasons_page
        write_page(output, reasons_page(found, model.resolve().name, data.name))
        terminal.result(f"Page: {output}")
    terminal.document(found.to_dict() | {"page": output})


def _explain_images(model: Model, data: Path, most: int, terminal: Terminal) -> None:
    import numpy as np

    from halfseen.data.image_folders import open_folder
    from halfseen.model.explanations import cover_tiles
    from halfseen.model.table_scoring import image_batches

    skipped = Skipped()
    listed = skipped.note(open_folder(data), terminal)
    folder = replace(listed, files=listed.files[:most])
    batches = list(image_batches(model, folder, skipped))
    skipped.tell(terminal)
    if not batches:
        raise InputError(f"No image of {data} can be read.")
    files = [folder.names[place] for places, _ in batches for place in places]
    with terminal.status("Explaining"):
        found = cover_tiles(model, np.concatenate([images for _, images in batches]))
    down, across = ([f"{a}-{b - 1}" for a, b in pairwise(edges)] for edges in found.edges)
    title = "Covering a region moves the log-odds by, on average (– is missing)"
    shown = new_table("pixel rows", *across, title=title, numbers=True)
    for name, values in zip(down, found.importance, strict=True):
        shown.add_row(name, *("–" if value != value else f"{value:.2f}" for value in values))
    terminal.results.print(shown, highlight=False)
    terminal.say(f"{len(files):,} images, regions covered with the mean of what is observed.")
    for place, file in enumerate(files[:MOST_TOLD]):
        terminal.result(f"{file}: {found.told(place)}")
    terminal.document(
        found.to_dict() | {"files": files, "skipped": skipped.sentences, "notes": skipped.notes}
    )


def _first_rows(table: Any, names: list[str], most: int | None) -> Any:
    import pyarrow as pa

    absent = [name for name in names if name not in table.names]
    if absent:
        raise InputError(f"{table.where} has no column {absent[0]!r}, which the model knows.")
    batches, rows = [], 0
    for batch in table.batches(names):
        batches.append(batch if most is None else batch.slice(0, most - rows))
        rows += batches[-1].num_rows
        if most is not None and rows >= most:
            break
    return pa.Table.from_batches(batches)
