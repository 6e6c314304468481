"""`halfseen evaluate`: a model folder and labelled target rows in, how good it is there out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from halfseen.cli.fit_config import ModelFolder, Rename, part_and_table
from halfseen.cli.image_models import Skipped, takes_images
from halfseen.cli.printing import show_alarms
from halfseen.cli.terminal import Json, Terminal, new_table

if TYPE_CHECKING:
    from halfseen.model.model import Model


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
    from halfseen.model.loading import load
    from halfseen.model.table_scoring import evaluate_table
    from halfseen.targets import class_name

    terminal = Terminal(as_json=as_json)
    whole = load(model)
    if takes_images(whole, {"--label": label, "--rename": rename}):
        loaded, names = whole, tuple(map(class_name, whole.preprocessor.classes))
        found = _of_images(whole, labelled, terminal)
    else:
        loaded, data = part_and_table(whole, model, labelled, rename, terminal)
        names = tuple(loaded.schema.class_names)
        with terminal.status("Scoring"):
            found = evaluate_table(loaded, data, label)
    if found["unlabelled"]:
        terminal.say(f"{found['unlabelled']:,} rows without a label are left out.")
    headings = ("", "value", "95% interval", "expected at fit")
    table = new_table(*headings, title=f"{found['rows']:,} labelled rows", numbers=True)
    kind = loaded.target_type
    for name, (words, _) in kind.measures.items():
        measured = found["metrics"][name]
        ends = measured["interval"]
        interval = "–" if ends is None else " to ".join(map(_shown, ends))
        table.add_row(words, _shown(measured["value"]), interval, _shown(measured.get("expected")))
    terminal.results.print(table, highlight=False)
    beside = new_table(
        "instead of the model",
        *(measure.words for measure in kind.measures.values()),
        f"its {kind.row_loss_words} above the model's",
        title="Simpler predictions",
        numbers=True,
    )
    for name, other in {kind.baseline_words: found["baseline"], **found["others"]}.items():
        value, ends = other["gain"]["value"], other["gain"]["interval"]
        above = f"{_shown(value, '+')} ({' to '.join(_shown(end, '+') for end in ends)})"
        beside.add_row(name, *(_shown(other[measure]) for measure in kind.measures), above)
    terminal.results.print(beside, highlight=False)
    if loaded.preprocessor.classes:
        pairs = zip(names, found["predicted"], found["observed"], strict=True)
        told = ", ".join(f"{name} {said:.1%} ({true:.1%})" for name, said, true in pairs)
        terminal.result(f"Class shares as predicted (and as they are): {told}.")
    for verdict in found["verdicts"]:
        terminal.result(verdict)
    show_alarms(found["alarms"], terminal)
    terminal.document(found)


def _of_images(model: Model, labelled: Path, terminal: Terminal) -> dict[str, Any]:
    from halfseen.data.image_folders import open_folder
    from halfseen.model.table_scoring import evaluate_images

    skipped = Skipped()
    folder = skipped.note(open_folder(labelled, labelled=True, fewest=1), terminal)
    with terminal.status("Scoring"):
        found = evaluate_images(model, folder, skipped)
    skipped.tell(terminal)
    return found | {"skipped": skipped.sentences, "notes": skipped.notes}


def _shown(value: Any, sign: str = "") -> str:
    if value is None:
        return "–"
    return f"{value:{sign}.3f}" if abs(value) < 100 else f"{value:{sign}.5g}"
