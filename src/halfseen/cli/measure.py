"""`halfseen measure`: which missing columns, and which rows, are worth measuring."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from halfseen.cli.inputs import ModelFolder, Rename, open_rows
from halfseen.cli.printing import number
from halfseen.cli.terminal import Force, Json, Terminal, new_table
from halfseen.errors import OptionError
from halfseen.outputs import Output, check_outputs

if TYPE_CHECKING:
    from halfseen.model.model import Model


def measure(
    model: ModelFolder,
    data: Annotated[
        Path | None, typer.Argument(help="Rows of the target, to be told which to measure first.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(help="Missing columns to look at (repeatable); all by default."),
    ] = None,
    cost: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=COST",
            help="What measuring a column costs, one where others are given (repeatable).",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File for the rows: .parquet, .csv or .arrow."),
    ] = None,
    force: Force = False,
    rename: Rename = None,
    as_json: Json = False,
) -> None:
    """Say which missing columns are worth measuring on the target, and on which rows first.

    Of columns: by how much the answers would get better, with 90 % intervals, from labelled source
    rows that count as their like occurs on the target. Of rows: by how much surer measuring the
    columns makes their answer, in expectation; the most useful rows come first. The model must have
    been fitted with --value-of-missing.

    Example: halfseen measure model/ --cost hba1c=3

    Rows: halfseen measure model/ new.csv --columns hba1c -o first.csv
    """
    from halfseen.model.loading import load
    from halfseen.model.pattern_model import PatternModel
    from halfseen.model.table_scoring import is_worth, rank_table

    terminal, costs = Terminal(as_json=as_json), _costs(cost or ())
    names = [name for given in columns or () for name in given.split(",")]
    if (data is None) != (output is None):
        raise OptionError("Rows are written to a file: give both a table and -o, or neither.")
    if data is None or output is None:
        loaded = load(model)
        parts = loaded.parts if isinstance(loaded, PatternModel) else (loaded,)
        documents = [_told(part, names, costs, terminal) for part in parts]
        terminal.document(documents[0] if len(parts) == 1 else {"parts": documents})
        return
    inputs = {"the model": model, "the table": data}
    check_outputs([Output(output, "the rows", is_worth)], inputs, force=force)
    asked = open_rows(model, data, rename, terminal, of_tables={"measure": True})
    assert asked.table is not None
    document = _told(asked.model, names, costs, terminal)
    rows = rank_table(asked.model, asked.table, output, names)
    terminal.result(f"{output}: {rows:,} rows, the most useful to measure first.")
    terminal.document(document | {"output": output, "rows": rows})


def _costs(given: Any) -> dict[str, float]:
    try:
        return {name: float(cost) for name, _, cost in (each.rpartition("=") for each in given)}
    except ValueError:
        raise OptionError(f"--cost {' '.join(given)}: write COLUMN=COST, a number.") from None


def _told(
    model: Model, columns: list[str], costs: dict[str, float], terminal: Terminal
) -> dict[str, Any]:
    """Print what each set of columns brings, and what the figures rest on; return it as data."""
    from halfseen.model.value_of_measuring import evidence_of

    sets, measures = model.value_of_measuring(columns, costs), model.target_type.measures
    heads = [f"{measures[name].words} better by" for name in sets[0]["gains"]]
    table = new_table("measuring", *heads, *(["per cost"] if costs else []))
    for each in sets:
        cells = [
            f"{number(value)} ({number(low)} to {number(high)})"
            for value, low, high in each["gains"].values()
        ]
        if costs:
            first = next(iter(each["gains"].values()))[0]
            cells.append(f"{number(first / each['cost'])}")
        table.add_row(" + ".join(each["columns"]), *cells)
    terminal.console.print(table)
    evidence = evidence_of(model)
    for sentence in evidence["says"]:
        terminal.say(sentence)
    return {"sets": sets} | evidence
