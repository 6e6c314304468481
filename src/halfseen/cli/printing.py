"""What commands print of what they found; where it is data, ``--json`` prints the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape

from halfseen.cli.terminal import Terminal, new_table, plain

if TYPE_CHECKING:
    from halfseen.alarms import Alarm
    from halfseen.data.preprocessors import ImagePreprocessor
    from halfseen.data.schema import TableSchema
    from halfseen.data.schema_inference import InferredTables
    from halfseen.explain import Explanation
    from halfseen.model.image_explanations import CoveredTiles
    from halfseen.model.model import Model

MOST_COLUMNS = 60
"""Columns that are listed; of more,"""
MANY_COLUMNS = 20
"""the first so many, and how many there are of each kind."""
MOST_IMPORTANT = 15
MOST_TOLD = 3
"""Rows whose reasons are told on the screen."""


def number(value: Any, sign: str = "") -> str:
    """Return a number in three places, or a long one in five digits; a dash for none."""
    if value is None or value != value:
        return "–"
    return f"{value:{sign}.3f}" if abs(value) < 100 else f"{value:{sign}.5g}"


# --- tables and models ---------------------------------------------------------------------


def print_schema(inferred: InferredTables, console: Console) -> None:
    """Print each column's role, kind and preparation, the classes, and the notes."""
    from halfseen.data.label_column import label_words

    schema = inferred.schema
    plain(console, f"Source: {inferred.source.table.where}, {inferred.source.rows:,} rows.")
    plain(console, f"Target: {inferred.target.table.where}, {inferred.target.rows:,} rows.")
    print_columns(schema, console)
    plain(console, f"Label: {schema.label}, {label_words(schema, inferred.class_counts)}.")
    for note in inferred.notes:
        plain(console, f"Note: {note}")


def schema_facts(inferred: InferredTables) -> dict[str, Any]:
    """Return the same as plain data."""
    schema = inferred.schema
    return {
        "source": {"path": inferred.source.table.where, "rows": inferred.source.rows},
        "target": {"path": inferred.target.table.where, "rows": inferred.target.rows},
        "label": schema.label,
        "task": schema.target_type.task,
        "classes": dict(zip(schema.class_names, inferred.class_counts, strict=True)),
        "columns": [{"name": c.name, "role": c.role, "kind": c.kind} for c in schema.columns],
        "id": schema.id,
        "dropped": schema.dropped,
        "notes": inferred.notes,
    }


def show_alarms(alarms: Sequence[Alarm], terminal: Terminal) -> None:
    """Show alarms, also with ``--quiet``."""
    from halfseen.alarms import sentences

    for sentence in sentences(alarms):
        terminal.result(f"Alarm: {sentence}")


def print_columns(schema: TableSchema, console: Console) -> None:
    table = new_table("column", "role", "kind", "preparation")
    shown = schema.columns
    if len(shown) > MOST_COLUMNS:
        shown = shown[:MANY_COLUMNS]
    for column in shown:
        style = "bold" if column.role == "missing" else None
        row = (column.name, column.role, column.kind, _preparation(column))
        table.add_row(*(escape(cell) for cell in row), style=style)
    for name in schema.id:
        table.add_row(escape(name), "id", "", "carried through")
    for name in schema.dropped[:MOST_COLUMNS]:
        table.add_row(escape(name), "dropped", "", "")
    console.print(table, highlight=False)
    if len(shown) < len(schema.columns):
        counts = Counter((column.role, column.kind) for column in schema.columns)
        words = ", ".join(f"{n:,} {role} {kind}" for (role, kind), n in sorted(counts.items()))
        rest = len(schema.columns) - len(shown)
        plain(console, f"{rest:,} more columns (--json lists all); in all: {words}.")


def _preparation(column: Any) -> str:
    fill, steps = column.fill, ["log"] if column.kind != "categorical" and column.log else []
    if column.kind == "categorical":
        steps += [f"{len(column.categories)} categories"]
        steps += ["rare and unseen ones together"] if column.other else []
    else:
        steps += [f"mean {column.mean:.4g}, scale {column.scale:.4g}"]
        fill = f"{fill:g}"
    return "; ".join([*steps, *([f"gaps marked, {fill} for them"] if column.indicator else [])])


def image_sentence(preprocessor: ImagePreprocessor) -> str:
    """Say what images become, and how much of them is missing."""
    channels, height, width = preprocessor.blocks.shape
    hidden, all_of = int(preprocessor.blocks.mask.sum()), height * width
    colour = "grey" if channels == 1 else f"{channels} channels"
    return (
        f"Images of {width} × {height} pixels, {colour}; {hidden:,} of the {all_of:,} pixels "
        f"({hidden / all_of:.0%}) are missing on the target"
    )


def print_metrics(metrics: Mapping[str, Any], console: Console) -> None:
    """Print what was measured on held-out source rows, where some were held out."""
    from halfseen.model.summaries import told

    if "held_out_source" in metrics:
        _print_measured(metrics, console)
    for sentence in told(metrics):
        plain(console, sentence)
    if "trained_on" in metrics:
        plain(console, f"Trained on {metrics['trained_on']}.")


def _print_measured(metrics: Mapping[str, Any], console: Console) -> None:
    from halfseen.model.summaries import held_out_rows
    from halfseen.targets import target_type_of

    words = {n: measure.words for n, measure in target_type_of(metrics).measures.items()}
    entries = held_out_rows(metrics)
    names = list(entries[0][2])
    headings = [words.get(name, name.replace("_", " ")) for name in names]
    table = new_table("", *headings, title="Held-out source rows", numbers=True)
    for who, _, measured in entries:
        values = map(measured.get, names)
        table.add_row(who, *("–" if value is None else f"{value:g}" for value in values))
    console.print(table, highlight=False)
    plain(
        console,
        "These are source rows: on a shifted target a model usually does worse, by an amount that "
        "unlabelled data cannot tell.",
    )


def print_model(model: Model, terminal: Terminal) -> None:
    """Print what a model expects, what it was trained on, and how good it was."""
    from halfseen.data.label_column import label_words
    from halfseen.data.preprocessors import ImagePreprocessor

    preprocessor = model.preprocessor
    terminal.result(f"{model.title}, trained with seed {model.seed}.")
    if isinstance(preprocessor, ImagePreprocessor):
        terminal.result(f"Predicts the class: {', '.join(map(str, preprocessor.classes))}.")
        origin = {
            "bytes": "from files or bytes",
            "unit": "given as numbers from -1 to 1",
            "own": "given as numbers, as in training",
        }[preprocessor.scale]
        terminal.result(f"{image_sentence(preprocessor)}; {origin}.")
    else:
        schema = preprocessor.schema
        names = ", ".join(schema.class_names) or label_words(schema, ())
        terminal.result(f"Predicts {schema.label}: {names}.")
        print_columns(schema, terminal.results)
    for role, table in model.training_data.items():
        files = table["files"] or [{"name": "in memory", "sha256": table["sha256"]}]
        names = ", ".join(file["name"] for file in files)
        hashes = ", ".join(file["sha256"][:12] for file in files)
        terminal.result(f"Trained on {role} {names}: {table['rows']:,} rows, SHA-256 {hashes}.")
    if model.metrics:
        print_metrics(model.metrics, terminal.results)
    versions = ", ".join(f"{name} {version}" for name, version in model.versions.items())
    terminal.result(f"Versions: {versions}.")
    for networks in model.networks_members[:1]:
        terminal.settings(networks.options)


# --- what a model says of rows ---------------------------------------------------------------


def print_evaluation(evaluation: dict[str, Any], model: Model, terminal: Terminal) -> None:
    """Print what was measured on labelled rows, beside simpler predictions."""
    from halfseen.targets import class_name

    kind = model.target_type
    if evaluation["unlabelled"]:
        terminal.say(f"{evaluation['unlabelled']:,} rows without a label are left out.")
    headings = ("", "value", "95% interval", "expected at fit")
    table = new_table(*headings, title=f"{evaluation['rows']:,} labelled rows", numbers=True)
    for name, (words, _) in kind.measures.items():
        measured = evaluation["metrics"][name]
        interval = " to ".join(map(number, measured["interval"] or [None]))
        table.add_row(words, number(measured["value"]), interval, number(measured.get("expected")))
    terminal.results.print(table, highlight=False)
    columns = [measure.words for measure in kind.measures.values()]
    above = f"its {kind.row_loss_words} above the model's"
    table = new_table(
        "instead of the model", *columns, above, title="Simpler predictions", numbers=True
    )
    others = {kind.baseline_words: evaluation["baseline"], **evaluation["others"]}
    for name, other in others.items():
        value, ends = other["gain"]["value"], other["gain"]["interval"]
        above = f"{number(value, '+')} ({' to '.join(number(end, '+') for end in ends)})"
        table.add_row(name, *(number(other[measure]) for measure in kind.measures), above)
    terminal.results.print(table, highlight=False)
    if names := [class_name(value) for value in model.preprocessor.classes]:
        pairs = zip(names, evaluation["predicted"], evaluation["observed"], strict=True)
        told = ", ".join(f"{name} {said:.1%} ({true:.1%})" for name, said, true in pairs)
        terminal.result(f"Class shares as predicted (and as they are): {told}.")
    for verdict in evaluation["verdicts"]:
        terminal.result(verdict)
    show_alarms(evaluation["alarms"], terminal)
    terminal.document(evaluation)


def print_explanation(explanation: Explanation, terminal: Terminal) -> None:
    """Print what moves a table's answers, and those of the first rows."""
    moves = explanation.moved.replace("_", "-")
    table = new_table("column", f"moves the {moves} by, on average", numbers=True)
    for name, value in list(explanation.importance.items())[:MOST_IMPORTANT]:
        table.add_row(escape(name), number(value))
    terminal.results.print(table, highlight=False)
    terminal.say(f"{len(explanation):,} rows, compared with {explanation.compared_with}.")
    for place in range(min(len(explanation), MOST_TOLD)):
        terminal.result(f"Row {place + 1}: {' '.join(explanation.told(place))}")
    terminal.document(explanation.to_dict())


def print_image_explanation(
    tiles: CoveredTiles, files: list[str], skipped: dict[str, Any], terminal: Terminal
) -> None:
    """Print which regions move the answers about images, and about the first ones."""
    down, across = ([f"{a}-{b - 1}" for a, b in pairwise(edges)] for edges in tiles.edges)
    title = "Covering a region moves the log-odds by, on average (– is missing)"
    table = new_table("pixel rows", *across, title=title, numbers=True)
    for name, values in zip(down, tiles.importance, strict=True):
        table.add_row(name, *("–" if value != value else f"{value:.2f}" for value in values))
    terminal.results.print(table, highlight=False)
    terminal.say(f"{len(files):,} images, regions covered with the mean of what is observed.")
    for place, file in enumerate(files[:MOST_TOLD]):
        terminal.result(f"{file}: {tiles.told(place)}")
    terminal.document(tiles.to_dict() | {"files": files} | skipped)
