"""What commands say of two tables and of a model: columns, classes, alarms, metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape

from halfseen.cli.terminal import Terminal, new_table, plain

if TYPE_CHECKING:
    from halfseen.alarms import Alarm

MOST_COLUMNS = 60
"""Columns that are listed; of more,"""
MANY_COLUMNS = 20
"""the first so many, and how many there are of each kind."""


def print_schema(found: Any, console: Console) -> None:
    """Print each column's role, kind and preparation, the classes, and the notes."""
    from halfseen.data.label_column import label_words

    schema = found.schema
    plain(console, f"Source: {found.source.table.where}, {found.source.rows:,} rows.")
    plain(console, f"Target: {found.target.table.where}, {found.target.rows:,} rows.")
    print_columns(schema, console)
    plain(console, f"Label: {schema.label}, {label_words(schema, found.class_counts)}.")
    for note in found.notes:
        plain(console, f"Note: {note}")


def show_alarms(alarms: Sequence[Alarm], terminal: Terminal) -> None:
    """Show alarms, also with ``--quiet``."""
    from halfseen.alarms import sentences

    for sentence in sentences(alarms):
        terminal.result(f"Alarm: {sentence}")


def schema_facts(found: Any) -> dict[str, Any]:
    """Return what was understood of two tables as plain data."""
    schema = found.schema
    return {
        "source": {"path": found.source.table.where, "rows": found.source.rows},
        "target": {"path": found.target.table.where, "rows": found.target.rows},
        "label": schema.label,
        "task": schema.target_type.task,
        "classes": dict(zip(schema.class_names, found.class_counts, strict=True)),
        "columns": [
            {"name": column.name, "role": column.role, "kind": column.kind}
            for column in schema.columns
        ],
        "id": schema.id,
        "dropped": schema.dropped,
        "notes": found.notes,
    }


def print_columns(schema: Any, console: Console) -> None:
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


def print_metrics(metrics: Any, console: Console) -> None:
    """Print what was measured on held-out source rows, where some were held out."""
    from halfseen.model.summaries import told

    if "held_out_source" in metrics:
        _print_measured(metrics, console)
    for sentence in told(metrics):
        plain(console, sentence)
    if "trained_on" in metrics:
        plain(console, f"Trained on {metrics['trained_on']}.")


def _print_measured(metrics: Any, console: Console) -> None:
    from halfseen.model.summaries import member_words
    from halfseen.targets import target_type_of

    kind = target_type_of(metrics)
    words = {name: measure.words for name, measure in kind.measures.items()}
    headings = [
        words.get(name, name.replace("_", " "))
        for name in metrics["held_out_source"]["without_missing_block"]
    ]
    table = new_table("", *headings, title="Held-out source rows", numbers=True)
    rows = {
        "missing block hidden, as on the target": "without_missing_block",
        "missing block shown": "with_missing_block",
    }
    shown = [(title, metrics["held_out_source"].get(key)) for title, key in rows.items()]
    alone = metrics["members"] if len(metrics["members"]) > 1 else {}
    shown += [(f"{member_words(name, kind)} alone", found) for name, found in alone.items()]
    for title, measured in shown:
        if measured:
            table.add_row(title, *("–" if v is None else f"{v:g}" for v in measured.values()))
    console.print(table, highlight=False)
    plain(
        console,
        "These are source rows: on a shifted target a model usually does worse, by an amount that "
        "unlabelled data cannot tell.",
    )


def _preparation(column: Any) -> str:
    if column.kind == "categorical":
        steps = [f"{len(column.categories)} categories"]
        steps += ["rare and unseen ones together"] if column.other else []
    else:
        steps = ["log"] if column.log else []
        steps += [f"mean {column.mean:.4g}, scale {column.scale:.4g}"]
    fill = column.fill if column.kind == "categorical" else f"{column.fill:g}"
    return "; ".join([*steps, *([f"gaps marked, {fill} for them"] if column.indicator else [])])
